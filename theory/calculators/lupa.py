"""Local SGD with periodic averaging: its time."""

from __future__ import annotations

from fractions import Fraction

from verify_rates.theory.calculators.lines import function, pace_of, printed
from verify_rates.theory.calculators.messages import Network, ring_all_reduce
from verify_rates.theory.calculators.streams import same_maximum
from verify_rates.theory.evidence import Found

# lupa.6: a is the latency and b the time per word of one message.
ROUND = "2*(n-1)*a + 2*(n-1)/n*d*b"
TOTAL = "T*T_comp + (T/H)*(2*(n-1)*a + 2*(n-1)/n*d*b)"
PACE = "T_comp + (T_tx + lat)/H"


def seconds(n: int, d: int, H: int, T: int) -> Found:
    """lupa.6: T local steps by the events of the step function, each averaging a ring that is played message by message."""
    from verify_rates.theory.timeline import timeline

    a, b, T_comp = Fraction(3), Fraction(1, 4), Fraction(2)
    net = Network(n, a, b)
    vectors = [[i * d + j for j in range(d)] for i in range(n)]
    if ring_all_reduce(net, vectors) != [[sum(column) for column in zip(*vectors, strict=True)]] * n:
        return Found.count(1, 1)
    events = timeline("local_sgd", {"H": H}, compute=float(T_comp), latency=0.0, bandwidth=8.0, size=float(net.seconds), steps=T).events
    took = max(e.arrives for e in events)  # sums of quarters: no rounding
    said = function(TOTAL, "T T_comp H n a d b")(T, T_comp, H, n, a, d, b)
    return Found(took, took, float(said), "==", proves=True, message=f"{took:g} s, said are {float(said):g} s")


def pace(H: int) -> Found:
    """lupa.6 per step, from the step function's time line."""
    return Found.count(int(not same_maximum(pace_of("local_sgd", {"H": H}), printed(PACE, H=H))), 1, proves=True)
