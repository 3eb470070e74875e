"""Time line of a method from its step function: who waits for whom, and which cycle sets the pace."""

from verify_rates.theory.timeline.line import EventGraph, TimeLine, round_seconds_by_simulation, timeline

__all__ = ["EventGraph", "TimeLine", "round_seconds_by_simulation", "timeline"]
