"""Formulas and protocols that are no step functions; claims name them by dotted path."""
