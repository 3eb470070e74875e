"""Sum-preserving resource allocation (SSRN 4442740).  In our letters the sector [eps, K] is [b, c], lambda is lam, l is L."""

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper(
    "Distributed delay-tolerant strategies for equality-constraint sum-preserving resource allocation",
    "SSRN 4442740",
    rows=("002-18",),
    kind="convergence (constrained)",
)

CALCULATOR = "verify_rates.theory.calculators.resource_allocation:"
QUANTISERS = ("linear", "log(d=0.2)", "log(d=1)")
ALL = (*QUANTISERS, "uniform", "saturation")
EXTREMES = product(graph=("ring", "star", "complete"), n=6, mu=(0.2, 1.0), bent=(False, True), c=(0.1, 0.5, 0.9), seed=0)

CLAIMS = [
    Claim(
        "resource_allocation.1",
        "The sum of the shares is kept exactly: in the agent form with symmetric weights, in the link form with an odd g besides.",
        method="resource_agent",
        kind="property",
        check=CALCULATOR + "sum_kept",
        grid=(
            *product(form=("agent", "link"), g=("uniform", "saturation", "cube"), n=(2, 5), seed=(0, 1)),
            *product(form="agent", g="floor", n=(2, 5), seed=0),
        ),
        source="derived",
    ),
    Claim(
        "resource_allocation.1.even",
        "The link form keeps the sum for any g: without an odd g it does not (two agents, one step).",
        kind="property",
        check=CALCULATOR + "sum_kept",
        grid=product(form="link", g="floor", n=2, seed=0),
        source="a reading without the condition",
        expect="fails",
    ),
    Claim(
        "resource_allocation.1.delays",
        "Time-stamped messages keep the sum at every update where both directions of a link have the same delay.",
        kind="property",
        check=CALCULATOR + "stamped",
        grid=product(alike=True, g=("linear", "uniform"), n=(2, 4), taubar=(0, 3), seed=0),
        source="derived",
    ),
    Claim(
        "resource_allocation.1.delays.any",
        "Time-stamped messages keep the sum at every update whatever the delays: it is off until two agents have heard each other.",
        kind="property",
        check=CALCULATOR + "stamped",
        grid=product(alike=False, g="linear", n=(2, 4), taubar=1, seed=0),
        source="a reading without the condition",
        expect="fails",
    ),
    Claim(
        "resource_allocation.2",
        "Step condition of sibling papers, eta < (b/c)*lam_2/(u*c^2*lam_n^2), as recalled: it diverges for g(z) = z/2 between two agents.",
        kind="property",
        check=CALCULATOR + "sibling",
        grid=product(repaired=False, g=("half", "linear"), n=(2, 3), share=((99, 100),)),
        source="recalled from sibling papers",
        provenance="recalled",
        expect="fails",
    ),
    Claim(
        "resource_allocation.2.repaired",
        "With b in the place of the ratio b/c the condition implies that of resource_allocation.3, as b*lam_2 <= c*lam_n.",
        kind="property",
        check=CALCULATOR + "sibling",
        grid=product(repaired=True, g=("half", "linear"), n=(2, 3), share=((1, 2), (99, 100))),
        source="derived",
    ),
    Claim(
        "resource_allocation.3",
        "Descent of the link form: F falls by at least eta*(1 - eta*l*c*lam_n/2)*psi'L_q psi for every eta < 2/(l*c*lam_n).",
        check=CALCULATOR + "descent",
        grid=tuple({"g": g, **p} for g in ALL for p in EXTREMES if p["bent"] and p["mu"] < 1 and p["c"] != 0.5),
        source="derived",
    ),
    Claim(
        "resource_allocation.3.limit",
        "With g(z) = z and equal curvature the limit 2/(l*lam_n) is sharp.",
        kind="iff",
        check=CALCULATOR + "step_limit",
        grid=product(graph=("ring", "star", "complete"), n=(2, 5), seed=0),
        source="derived",
    ),
    Claim(
        "resource_allocation.3.switching",
        "Descent and convergence where links take turns and one step of every window has none.",
        kind="property",
        check=CALCULATOR + "switching",
        grid=product(g=("linear", "log(d=1)"), n=5, window=(2, 4), c=0.5, seed=(0, 1)),
        source="derived",
    ),
    Claim(
        "resource_allocation.4",
        "Linear rate of the link form under strong convexity: factor 1 - 2*mu*eta*b*lam_2*(1 - eta*l*c*lam_n/2).",
        check=CALCULATOR + "linear_rate",
        grid=tuple({"g": g, **p} for g in QUANTISERS for p in EXTREMES if p["bent"] == (p["mu"] < 1)),
        source="derived",
    ),
    Claim(
        "resource_allocation.5",
        "Sector of the log quantiser: exp(-d/2)*z^2 <= z*q(z) <= exp(d/2)*z^2, both ends reached.",
        kind="property",
        check=CALCULATOR + "log_sector",
        grid=product(d=((1, 5), (1, 1), (2, 1))),
        source="derived",
    ),
    Claim(
        "resource_allocation.6",
        "Agent form: ceil(log2(#levels)) + 1 bits a message, 0 counted among the levels (the link form quantises what it has received).",
        check=CALCULATOR + "code_bits",
        grid=product(levels=tuple(range(1, 34)), zero=True),
        source="derived",
    ),
    Claim(
        "resource_allocation.6.magnitudes",
        "The same number of bits suffices with #levels the magnitudes other than 0: at 1, 2, 4, 8 ... the message 0 is one too many.",
        check=CALCULATOR + "code_bits",
        grid=product(levels=tuple(range(1, 10)), zero=False),
        source="a reading of #levels",
        expect="fails",
    ),
    Claim(
        "resource_allocation.6.delays",
        "Unknown delays up to taubar: updating every taubar+1 ticks takes the steps of the dynamics without delays.",
        kind="property",
        check=CALCULATOR + "slow_clock",
        grid=product(form=("link", "agent"), g=("linear", "log(d=1)"), n=5, taubar=(0, 3), seed=0),
        source="derived",
    ),
]
