"""Checks of the statements on ACCO that are no bounds."""

from __future__ import annotations

import numpy as np

from verify_rates.theory.evidence import Found, relative, trace

STEPS = 100


def mismatch_identity(problem: str, gamma: float, seed: int) -> Found:
    """acco.1: ``y_{t+1} - x_{t+1} = (gamma/2)*mean_i(g_t - gt_t)``, gt the half at the estimate, and no mismatch at the start."""
    _, states, gradients = trace("acco", problem, {"gamma": gamma}, STEPS, seed=seed, sigma2=0.5)
    mismatch = [s.y - s.x for s in states]
    said = [gamma / 2 * np.mean(g - gt, axis=0) for gt, g in gradients]
    return Found.identity(relative([mismatch[0], *(e - p for e, p in zip(mismatch[1:], said, strict=True))], [s.x for s in states]))


def noise_free_is_gd(problem: str, gamma: float) -> Found:
    """acco.4: without noise the estimate is the model, and the model is that of gradient descent."""
    _, acco, _ = trace("acco", problem, {"gamma": gamma}, STEPS)
    _, gd, _ = trace("gd", problem, {"gamma": gamma}, STEPS)
    off = [s.y - s.x for s in acco] + [s.x - r.x for s, r in zip(acco, gd, strict=True)]
    return Found.identity(relative(off, [s.x for s in gd]))


def stability(scheme: str, limit: float) -> Found:
    """acco.5: the stability limit of ``gamma*lam``, from the characteristic polynomial of the step function."""
    from verify_rates.theory.quadratic import quadratic

    reading = quadratic("acco", {}) if scheme == "acco" else quadratic("dd_ef_sgd", {"tau": 1}, compressor="identity")
    value = float(reading.stability_limit(1.0))
    return Found(value, value, limit, "==", proves=True, message=f"stable up to gamma*lam = {value:.12g}")
