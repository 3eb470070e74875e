"""An independent checker of chained potentials: standard library and the checker of single certificates, no solver.

A chain states that ``measure <= rate`` after N steps (or of its mean over the steps) whenever ``initial <= initial_value`` at the start, by
N links that speak of one step each.  ``V_1, ..., V_{N-1}`` are quadratic forms of the features of a state plus multiples of its function
gaps, ``V_0 = rate/initial_value*initial``, and ``V_N = 0``.  A link says, of an arbitrary state and the one after a step,

    V_k(before) - V_{k+1}(after) - gain >= 0,        gain = what the step adds to the measure,

and gives nonnegative multipliers of inequalities that hold in the class, each rebuilt here.  It is accepted if ``V_k - V_{k+1} - gain + sum
multiplier*(smaller side - larger side)`` has no function value left, no negative constant and positive semidefinite Gram forms.  Summed up,
all gains are at most ``V_0``.  That the coordinates are those of a named method is for ``confirm`` to say, as with single certificates.

Use: ``python -m verify_rates.proofs_check.chain_checker FILE [key=value ...]``; one sentence, exit code 0 (accepted) or 1 (refused).
"""

import sys

from verify_rates.proofs_check.checker import (
    Refused,
    Statement,
    Sum,
    _index,
    _keys,
    _list,
    _need,
    fraction,
    main,
    seal,
    semidefinite,
    vector,
)

FORMAT = "verify-rates chain 1"
FIELDS = [
    "format",
    "about",
    "class",
    "workers",
    "compressor",
    "zeta2_star",
    "features",
    "statements",
    "potentials",
    "links",
    "rate",
    "sha256",
]
ABOUT = ["method", "hyper", "steps", "measure", "initial", "initial_value", "take"]
STEP = ["unknowns", "points", "minimiser", "messages", "before", "after", "initial", "gain"]
NO_FORM = {"const": "0", "values": [], "squares": []}
MAX_STEPS = 2000


class Step(Statement):
    """One step: its unknowns, points and messages, and the features of the state before and after."""

    def __init__(self, made, given):
        _keys(given, STEP, "a step")
        shared = {k: made[k] for k in ("class", "workers", "compressor", "zeta2_star")}
        own = {k: given[k] for k in ("unknowns", "points", "minimiser", "messages")}
        super().__init__({**shared, **own, "infimum": None, "least": [], "initial": [], "measure": given["gain"]})
        self.gain = self.measure
        self.start = None if given["initial"] is None else self._form(given["initial"])
        self.before, self.after = (None if given[k] is None else self._features(given[k]) for k in ("before", "after"))

    def _features(self, given):
        means, deviations, gaps = _list(given, "features", 3)
        vectors = [[vector(v, self.sizes, "a feature") for v in _list(part, "features")] for part in (means, deviations)]
        return (*vectors, [self._form(f) for f in _list(gaps, "features")])

    def potential(self, total, w, potential, features):
        """Add w times a potential of the features."""
        for matrix, vectors in zip(potential[:2], features[:2]):  # noqa: B905, any Python
            _need(len(matrix) == len(vectors), "a potential does not fit the features")
            for i, row in enumerate(matrix):
                for j, c in enumerate(row):
                    total.product((1 if i == j else 2) * w * c, vectors[i], vectors[j])
        _need(len(potential[2]) == len(features[2]), "a potential does not fit the function gaps")
        for c, form in zip(potential[2], features[2]):  # noqa: B905
            total.form(w * c, form)


def _potential(given):
    """Lower triangles of the matrices of means and of deviations, and weights of the gaps."""
    means, deviations, gaps = _list(given, "a potential", 3)
    rows = [[_list(row, "a row of a potential", i + 1) for i, row in enumerate(_list(part, "a potential"))] for part in (means, deviations)]
    return [[[fraction(c) for c in row] for row in part] for part in rows] + [[fraction(c) for c in _list(gaps, "gaps")]]


def _link(step, row, before, after, start):
    """Check one link: V before (or the start's share) less V after and what is gained is nonnegative."""
    total, seen = Sum(step.sizes, step.values), set()
    if before is None:
        total.form(start, step.start)
    else:
        step.potential(total, 1, before, step.before)
    if after is not None:
        step.potential(total, -1, after, step.after)
    total.form(-1, step.gain)
    for entry in row:
        _need(isinstance(entry, list) and len(entry) > 1, "a multiplier is [kind, numbers, value]")
        name, w = tuple(map(repr, entry[:-1])), fraction(entry[-1], "a multiplier")
        _need(w >= 0 and name not in seen, "a multiplier is negative or given twice")
        seen.add(name)
        step.inequality(total, w, *entry[:-1])
    _need(not any(total.values), "function values are left over")
    _need(total.const >= 0, "constants are left over")
    _need(all(map(semidefinite, total.grams)), "a Gram form is not positive semidefinite")


def check_chain(made, expected=None):
    """The proved sentence; Refused if the chain does not prove it, or states something else than expected."""
    _keys(made, FIELDS, "a chain")
    _need(made["format"] == FORMAT, f"the format must be {FORMAT!r}")
    _need(made["sha256"] == seal(made), "the sha256 does not match the content")
    about, rate = _keys(made["about"], ABOUT, "about"), fraction(made["rate"], "the rate")
    reach = fraction(about["initial_value"], "initial_value")
    _need(reach > 0 and rate >= 0, "the rate and the value at the start must be positive")
    try:
        steps = [Step(made, s) for s in _list(made["statements"], "statements")]
        potentials = [_potential(p) for p in _list(made["potentials"], "potentials")]
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise error if isinstance(error, Refused) else Refused(f"the chain is malformed ({type(error).__name__})") from None
    links = _list(made["links"], "links")
    N = len(links)
    _need(2 <= N <= MAX_STEPS and len(potentials) == N - 1, "a chain of N links has N - 1 potentials, N from 2 on")
    stated = {**made["class"], **about, "workers": made["workers"], "rate": str(rate)}
    _need(about["steps"] == str(N), f"it states {about['steps']} steps, but has {N} links")
    _need(about["take"] in ("last", "mean"), "what it bounds is the last or the mean")
    for key, value in (expected or {}).items():
        _need(str(stated.get(key, "nothing")) == str(value), f"the chain states {key} = {stated.get(key, 'nothing')!s}, not {value}")
    ends = [None, *potentials, None]
    for k, link in enumerate(links):
        number, row = _list(link, "a link", 2)
        step = steps[_index(number, len(steps), "a step")]
        _need((step.before is None) == (k == 0) and (step.start is None) == (k > 0), f"link {k} does not begin as it should")
        _need((step.after is None) == (k == N - 1), f"link {k} does not end as it should")
        try:
            _link(step, _list(row, "multipliers"), ends[k], ends[k + 1], rate / reach)
        except Refused as why:
            raise Refused(f"link {k}: {why}") from None
    what = f"{about['measure']} <= {rate} after" if about["take"] == "last" else f"the mean {about['measure']} <= {rate} over"
    kind = "nonconvex" if steps[0].mu < 0 else f"{steps[0].mu}-strongly convex" if steps[0].mu else "convex"
    return (
        f"{what} {N} steps of the method written in it, called {about['method']}, if {about['initial']} <= {reach} at the start, for "
        f"{'any number of workers, each with its own' if made['workers'] == 'any' else 'every'} {steps[0].L}-smooth {kind} f"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], check_chain))
