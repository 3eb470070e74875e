"""AET-SGD (arXiv 2112.13935): asynchronous SGD with rounds of s_r = c*r local steps."""

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper("AET-SGD: Asynchronous Event-triggered SGD", "arXiv 2112.13935", rows=("002-10",), kind="schedule (no theorem known)")

CALCULATOR = "verify_rates.theory.calculators.aet_sgd:"

CLAIMS = [
    Claim(
        "aet_sgd.1",
        "K = c*R*(R+1)/2 local steps take R = (-1+sqrt(1+8*K/c))/2 rounds (rounded down), about sqrt(2*K/c).",
        kind="identity",
        check=CALCULATOR + "round_count",
        grid=product(c=(1, 10), most=3000),
        source="derived",
    ),
    Claim(
        "aet_sgd.1.table",
        "K = 120000, c = 10: R = 154, 777 times less than every step and 77.7 times less than every 10 steps.",
        kind="table",
        check=CALCULATOR + "saving",
        grid=({"whole": True, "against": 1, "said": 777, "digits": 1}, {"whole": True, "against": 10, "said": 77.7, "digits": 0.1}),
        source="derived",
        expect="fails",
    ),
    Claim(
        "aet_sgd.1.repaired",
        "Those factors belong to R = 154.4 before rounding; 154 whole rounds save 779 and 77.9 times.",
        kind="table",
        check=CALCULATOR + "saving",
        grid=(
            {"whole": False, "against": 1, "said": 777, "digits": 1},
            {"whole": False, "against": 10, "said": 77.7, "digits": 0.1},
            {"whole": True, "against": 1, "said": 779, "digits": 1},
            {"whole": True, "against": 10, "said": 77.9, "digits": 0.1},
        ),
        source="derived",
    ),
    Claim(
        "aet_sgd.2",
        "R rounds send R*|E| messages, |E| the directed edges.",
        kind="identity",
        check=CALCULATOR + "message_count",
        grid=product(n=(2, 5), R=(1, 7)),
        source="derived",
    ),
    Claim(
        "aet_sgd.2.time",
        "A round takes Max(s_r*T_comp, delay) with a bounded lag.",
        kind="identity",
        check=CALCULATOR + "round_time",
        grid=({"said": "ROUND_TIME", "delay": 1, "lag": 0}, {"said": "ROUND_TIME", "delay": 4, "lag": 5}),
        source="derived",
        expect="fails",
    ),
    Claim(
        "aet_sgd.2.repaired",
        "Equal rounds take Max(s*T_comp, (s*T_comp + delay)/(d_round + 1)).",
        kind="identity",
        check=CALCULATOR + "round_time",
        grid=product(said="ROUND_TIME_REPAIRED", delay=(0, 1, 4, 9), lag=(0, 1, 2, 5), length=(1, 3)),
        source="derived",
    ),
    Claim(
        "aet_sgd.2.growth",
        "Delay tolerance grows: with a lag of at least 1 nobody waits once s_r*T_comp >= delay.",
        kind="property",
        check=CALCULATOR + "growing_rounds_hide",
        grid=({},),
        source="derived",
    ),
]
