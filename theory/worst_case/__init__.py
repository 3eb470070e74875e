"""Exact worst cases by performance estimation."""
