"""CapsFusion: Rethinking Image-Text Data at Scale: how captions for image-text training data are made.

It has no optimisation method, rate, cost formula or schedule, so there is no claim to check.
"""

from verify_rates.theory.claims import Paper

PAPER = Paper(
    "CapsFusion: Rethinking Image-Text Data at Scale",
    "arXiv 2310.20550",
    rows=("000-20",),
    kind="off-topic",
    reason="about the making of training data; no optimisation method, rate, cost formula or schedule",
)
