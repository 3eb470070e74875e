"""What ships: tests that run over the whole catalogue must not meet the methods that other tests register."""

from verify_rates.solvers.method import methods


def shipped():
    """The methods of ``solvers/methods/``, by name, whatever else has been registered."""
    return {name: m for name, m in methods().items() if m.step.__module__.startswith("verify_rates.")}
