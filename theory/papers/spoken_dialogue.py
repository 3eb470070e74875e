"""Chain-of-Thought Training for Open E2E Spoken Dialogue Systems: a training recipe for speech models, scored by WER and dialogue metrics.

It has no optimisation method, rate, cost formula or schedule, so there is no claim to check.
"""

from verify_rates.theory.claims import Paper

PAPER = Paper(
    "Chain-of-Thought Training for Open E2E Spoken Dialogue Systems",
    "arXiv 2506.00722",
    rows=("000-13",),
    kind="off-topic",
    reason="a training recipe for speech models; no optimisation method, rate, cost formula or schedule",
)
