"""Ring all-reduce jobs that share a cluster: contention, iteration time, SJF-BCO, baselines and exact search; with checks.

Servers hold GPUs, numbered server by server.  A job asks for G GPUs at once and keeps them until its F iterations are done.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators.streams import choose, positive, ring_all_reduce, whole
from verify_rates.theory.evidence import Found


@dataclass(frozen=True)
class Job:
    """A training job.

    Attributes
    ----------
    G, F : GPUs and iterations.
    m : size of the gradient.
    compute : slots of an iteration without communication, forward (per-sample times batch) plus backward.
    """

    G: int
    F: int
    m: Any = 0
    compute: Any = 1

    def __post_init__(self) -> None:
        whole(self.G, "G")
        whole(self.F, "F")
        positive(self.m, "m", zero=True)
        positive(self.compute, "compute")


@dataclass(frozen=True)
class Cluster:
    """Servers and their links; times in slots.

    Attributes
    ----------
    servers : GPUs of every server.
    b_i, b_e, C : size per slot within a server, between servers without contention, and of adding.
    xi1, xi2, alpha : share of contending jobs that are heard, slots per server used, and the example f = k + alpha*(k-1).
    """

    servers: tuple[int, ...]
    b_i: Any = math.inf
    b_e: Any = 1
    C: Any = math.inf
    xi1: Any = 1
    xi2: Any = 0
    alpha: Any = 0

    def __post_init__(self) -> None:
        if not self.servers:
            raise UsageError("a cluster needs at least one server.")
        for o in self.servers:
            whole(o, "the GPUs of a server")
        if not 0 < self.xi1 <= 1:
            raise UsageError(f"xi1 must be in (0, 1], not {self.xi1!r}.")
        positive(self.xi2, "xi2", zero=True)
        positive(self.alpha, "alpha", zero=True)
        positive(self.b_e, "b_e")

    @property
    def home(self) -> list[int]:
        """Server of every GPU."""
        return [s for s, o in enumerate(self.servers) for _ in range(o)]


Placed = tuple[int, tuple[int, ...]]  # (job, GPUs)


class Schedule(NamedTuple):
    """Jobs with their GPUs in the order of decision; a GPU works through its jobs in that order."""

    makespan: Any
    placed: tuple[Placed, ...]
    loads: tuple[Any, ...] = ()  # U: estimated slots per GPU
    theta: int = 0
    kappa: int = 0


def contention(counts: Sequence[Sequence[int]], jobs: Sequence[Job]) -> list[int]:
    """p_j of every active job: the most spread jobs on a server that it uses, itself included; 0 within one server (rar_scheduling.7).

    Parameters
    ----------
    counts : per job its GPUs on every server.

    >>> contention([[1, 1], [1, 1], [2, 0]], [Job(2, 1), Job(2, 1), Job(2, 1)])
    [2, 2, 0]
    """
    spread = [[0 < y < job.G for y in row] for row, job in zip(counts, jobs, strict=True)]
    heard = [sum(column) for column in zip(*spread, strict=True)]
    return [max((h for used, h in zip(row, heard, strict=True) if used), default=0) for row in spread]


def bandwidth(cluster: Cluster, servers_used: int, p: int, least_one: bool = True) -> Any:
    """Size per slot of a job's ring (rar_scheduling.9): b_i within a server, else ``b_e/f(k)``, ``k = xi1*p``.

    Differs from the source with ``least_one``: k is at least 1, since k < 1 (xi1 < 1, no other job) would raise the bandwidth above
    b_e, or make it infinite or negative.

    >>> bandwidth(Cluster((1, 1), b_e=8, alpha=1), 2, 2)
    2.6666666666666665
    """
    if servers_used == 1:
        return cluster.b_i
    k = cluster.xi1 * p
    k = max(1, k) if least_one else k
    slowed = k + cluster.alpha * (k - 1)
    return cluster.b_e / slowed if slowed else math.inf


def iteration_slots(job: Job, cluster: Cluster, servers_used: int, p: int) -> Any:
    """Slots of one iteration (rar_scheduling.11): ring, additions, overhead per server, compute, nothing overlapped.

    >>> iteration_slots(Job(2, 1, m=4, compute=1), Cluster((1, 1), b_e=8), 2, 1)
    1.5
    """
    w, m = job.G, job.m
    exchange = m * 2 * (w - 1) / w / bandwidth(cluster, servers_used, p) if w > 1 else 0
    return exchange + (m * (w - 1) / w / cluster.C if w > 1 else 0) + cluster.xi2 * servers_used + job.compute


def play(jobs: Sequence[Job], cluster: Cluster, placed: Sequence[Placed]) -> tuple[Any, list[int]]:
    """(makespan, end of every job) in slots, slot by slot; a job starts once every earlier job on its GPUs has ended (rar_scheduling.12).

    Errors: UsageError where no running job completes an iteration in a slot (its iteration is longer than a slot).
    """
    home = cluster.home
    counts = {j: [sum(home[g] == s for g in gpus) for s in range(len(cluster.servers))] for j, gpus in placed}
    ends: dict[int, int] = {}
    left = {j: jobs[j].F for j, _ in placed}
    now = 0
    while len(ends) < len(placed):
        active = [
            j
            for i, (j, gpus) in enumerate(placed)
            if j not in ends and all(other in ends or not set(gpus) & set(theirs) for other, theirs in placed[:i])
        ]
        heard = contention([counts[j] for j in active], [jobs[j] for j in active])
        speed = {j: 1 / iteration_slots(jobs[j], cluster, sum(c > 0 for c in counts[j]), p) for j, p in zip(active, heard, strict=True)}
        whole_speed = {j: math.floor(v) for j, v in speed.items()}
        if not any(whole_speed.values()):
            raise UsageError("no job completes an iteration in a slot; take longer slots.")
        # Nothing changes until the first job ends, so that many slots pass at once.
        slots = min(-(-left[j] // v) for j, v in whole_speed.items() if v)
        now += slots
        for j, v in whole_speed.items():
            left[j] -= v * slots
            if left[j] <= 0:
                ends[j] = now
    return now, [ends[j] for j in range(len(jobs)) if j in ends]


def estimate(job: Job, cluster: Cluster) -> Any:
    """Slots of a job alone on as few servers as possible: a lower end of its time, rho_hat/u."""
    per_slot = math.floor(1 / iteration_slots(job, cluster, _fewest(job, cluster), 1))
    if not per_slot:
        raise UsageError("a job's iteration is longer than a slot; take longer slots.")
    return -(-job.F // per_slot)


def _fewest(job: Job, cluster: Cluster) -> int:
    total = 0
    for used, size in enumerate(sorted(cluster.servers, reverse=True), 1):
        total += size
        if total >= job.G:
            return used
    raise UsageError(f"a job asks for {job.G} GPUs, the cluster has {total}.")


def sjf_bco(jobs: Sequence[Job], cluster: Cluster, T: int, spare: Any = 1, estimates: Sequence[Any] | None = None) -> Schedule:
    """The paper's scheduler: smallest jobs first, bisection on the limit theta, a scan over kappa.

    Parameters
    ----------
    T : the largest limit theta.
    spare : lambda >= 1; how many times its GPUs a large job's servers must have.
    estimates : slots of every job (rho_hat/u); by default :func:`estimate`.

    Errors: UsageError where no limit up to T admits all jobs.

    >>> sjf_bco([Job(1, 3), Job(1, 2)], Cluster((2,)), 8).makespan
    3
    """
    whole(T, "T")
    if spare < 1:
        raise UsageError(f"spare must be at least 1, not {spare!r}.")
    rho = [estimate(j, cluster) for j in jobs] if estimates is None else list(estimates)
    best: Schedule | None = None
    left, right = 1, T
    while left <= right:
        theta = (left + right) // 2
        found = _over_kappa(jobs, cluster, theta, spare, rho)
        if found is not None and (best is None or found.makespan < best.makespan):
            best, right = found, theta - 1
        else:
            left = theta + 1
    if best is None:
        raise UsageError(f"no limit up to T = {T} admits all jobs; take a larger one.")
    return best


def _over_kappa(jobs: Sequence[Job], cluster: Cluster, theta: int, spare: Any, rho: Sequence[Any]) -> Schedule | None:
    best: Schedule | None = None
    order = sorted(range(len(jobs)), key=lambda j: jobs[j].G)
    for kappa in range(1, max(j.G for j in jobs) + 1):
        placed, loads = [], [0 for _ in cluster.home]
        for j in order:
            gpus = _least_loaded(jobs[j].G, _candidates(jobs[j], cluster, loads, kappa, spare), loads, theta, rho[j])
            if gpus is None:  # loads never fall, so waiting for a job to end admits nothing more
                break
            for g in gpus:
                loads[g] += rho[j]
            placed.append((j, gpus))
        else:
            made = Schedule(play(jobs, cluster, placed)[0], tuple(placed), tuple(loads), theta, kappa)
            if best is None or made.makespan < best.makespan:
                best = made
    return best


def _candidates(job: Job, cluster: Cluster, loads: Sequence[Any], kappa: int, spare: Any) -> list[int]:
    """All GPUs for a small job; for a large one those of the least loaded servers that have enough."""
    home = cluster.home
    if kappa >= job.G:
        return list(range(len(home)))
    on = [[g for g, s in enumerate(home) if s == server] for server in range(len(cluster.servers))]
    chosen: list[int] = []
    for server in sorted(range(len(on)), key=lambda s: Fraction(sum(loads[g] for g in on[s])) / len(on[s])):
        if len(chosen) >= spare * job.G:
            break
        chosen += on[server]
    return chosen


def _least_loaded(G: int, candidates: Sequence[int], loads: Sequence[Any], theta: Any, rho: Any) -> tuple[int, ...] | None:
    idle = [g for g in candidates if loads[g] + rho <= theta]
    return tuple(sorted(sorted(idle, key=lambda g: (loads[g], g))[:G])) if len(idle) >= G else None


def baseline(name: str, jobs: Sequence[Job], cluster: Cluster, seed: int = 0) -> Schedule:
    """ "first_fit" (the lowest GPUs that are free earliest), "list" (least loaded GPUs, jobs as given) or "random".

    >>> baseline("list", [Job(1, 3), Job(1, 2), Job(1, 2)], Cluster((2,))).makespan
    4
    """
    rng = np.random.default_rng([seed, len(jobs)])
    loads: list[Any] = [0 for _ in cluster.home]
    pick: dict[str, Callable[[Job], list[int]]] = {
        "first_fit": lambda job: sorted(range(len(loads)), key=lambda g: (loads[g] > sorted(loads)[job.G - 1], g)),
        "list": lambda job: sorted(range(len(loads)), key=lambda g: (loads[g], g)),
        "random": lambda job: rng.permutation(len(loads)).tolist(),
    }
    chooser = choose(name, pick, "baseline")
    placed = []
    for j, job in enumerate(jobs):
        _fewest(job, cluster)
        gpus = tuple(sorted(chooser(job)[: job.G]))
        for g in gpus:
            loads[g] += estimate(job, cluster)
        placed.append((j, gpus))
    return Schedule(play(jobs, cluster, placed)[0], tuple(placed), tuple(loads))


def brute_force(jobs: Sequence[Job], cluster: Cluster) -> Schedule:
    """The least makespan over all orders and placements (a few jobs on a few GPUs)."""
    gpus = range(len(cluster.home))
    best: Schedule | None = None
    for order in itertools.permutations(range(len(jobs))):
        for sets in itertools.product(*(itertools.combinations(gpus, jobs[j].G) for j in order)):
            made = Schedule(play(jobs, cluster, tuple(zip(order, sets, strict=True)))[0], tuple(zip(order, sets, strict=True)))
            if best is None or made.makespan < best.makespan:
                best = made
    if best is None:
        raise UsageError("a job asks for more GPUs than the cluster has.")
    return best


# --- checks ---------------------------------------------------------------------------------------------------------------


def _plain(sizes: Sequence[Sequence[int]]) -> list[Job]:
    """Jobs (G, slots) without communication: an iteration is a slot."""
    return [Job(g, f) for g, f in sizes]


def _instances(gpus: int, most: int, lengths: Sequence[int]) -> Iterator[list[Job]]:
    """All lists of up to ``most`` jobs in the scheduler's order."""
    kinds = [(g, f) for g in range(1, gpus + 1) for f in lengths]
    for count in range(1, most + 1):
        for chosen in itertools.product(kinds, repeat=count):
            if list(chosen) == sorted(chosen, key=lambda c: c[0]):
                yield _plain(chosen)


def lemma_2(sizes: Sequence[Sequence[int]], gpus: int, T: int) -> Found:
    """rar_scheduling.2: the largest load beside the limit that the bisection returns."""
    found = sjf_bco(_plain(sizes), Cluster((gpus,)), T)
    top = float(max(found.loads))
    return Found(top, top, float(found.theta), "==", proves=True, message=f"largest load {top:g}, limit returned {found.theta}")


def lemma_2_repaired(gpus: int, most: int) -> Found:
    """rar_scheduling.2.repaired: the largest load never exceeds the returned limit, over all small instances."""
    wrong, cases = 0, 0
    for jobs in _instances(gpus, most, (1, 2)):
        found = sjf_bco(jobs, Cluster((gpus,)), sum(j.F for j in jobs))
        cases += 1
        wrong += max(found.loads) > found.theta
    return Found.count(wrong, cases, proves=True)


def lemma_3(servers: Sequence[int], most: int) -> Found:
    """rar_scheduling.3: makespan against n_g times the largest load (the smaller reading), exact estimates, all small instances."""
    wrong, cases, worst = 0, 0, Fraction(0)
    for jobs in _instances(sum(servers), most, (1, 3)):
        found = sjf_bco(jobs, Cluster(tuple(servers)), 24)
        ratio = Fraction(found.makespan, max(j.G for j in jobs) * max(found.loads))
        worst, cases, wrong = max(worst, ratio), cases + 1, wrong + (ratio > 1)
    return Found.count(wrong, cases, proves=True)


def lemma_3_contention(servers: Sequence[int], alpha: int) -> Found:
    """rar_scheduling.3.contention: two jobs of two GPUs that both leave the middle server; a slot holds 8 iterations of a job alone."""
    jobs = [Job(2, 8, m=Fraction(1, 9), compute=Fraction(1, 72))] * 2
    cluster = Cluster(tuple(servers), b_e=Fraction(1), alpha=alpha)
    found = sjf_bco(jobs, cluster, 24)
    bound = 2 * max(found.loads)
    said = f"makespan {found.makespan}, n_g times the largest load {bound}, placed {found.placed}"
    return Found(float(found.makespan), float(found.makespan), float(bound), proves=True, message=said)


def against_optimum(sizes: Sequence[Sequence[int]], gpus: int, what: str) -> Found:
    """rar_scheduling.4 and .5 with exact estimates and no communication (phi = u = l = 1): largest load, or makespan over n_g."""
    jobs, cluster = _plain(sizes), Cluster((gpus,))
    found, best = sjf_bco(jobs, cluster, 32), brute_force(jobs, cluster)
    n_g = max(j.G for j in jobs)
    value, bound = (max(found.loads), least_load(jobs, gpus)) if what == "load" else (found.makespan, n_g * best.makespan)
    return Found(float(value), float(value), float(bound), proves=True, message=f"{what} {value}, said at most {bound}")


def least_load(jobs: Sequence[Job], gpus: int) -> int:
    """The smallest possible largest load over all placements (theta*)."""
    return min(
        max(sum(j.F for j, s in zip(jobs, sets, strict=True) if g in s) for g in range(gpus))
        for sets in itertools.product(*(itertools.combinations(range(gpus), j.G) for j in jobs))
    )


def graham(gpus: int, most: int) -> Found:
    """rar_scheduling.5.repaired: single-GPU jobs with exact estimates stay within 2 - 1/N of the optimum, over all small instances."""
    wrong, cases = 0, 0
    for count in range(1, most + 1):
        for lengths in itertools.product((1, 2, 3), repeat=count):
            jobs = [Job(1, f) for f in lengths]
            cases += 1
            wrong += sjf_bco(jobs, Cluster((gpus,)), 16).makespan > (2 - Fraction(1, gpus)) * least_load(jobs, gpus)
    return Found.count(wrong, cases, proves=True)


def contention_of_rings(servers: Sequence[int], sizes: Sequence[int]) -> Found:
    """rar_scheduling.7 and .13: against rings that are laid and links that are counted, for all placements; p is at most max O_s."""
    home = Cluster(tuple(servers)).home
    jobs = [Job(g, 1) for g in sizes]
    wrong, cases = 0, 0
    for sets in itertools.product(*(itertools.combinations(range(len(home)), g) for g in sizes)):
        if len(set().union(*map(set, sets))) < sum(sizes):
            continue
        rings = [{(home[a], home[b]) for a, b in zip(s, (*s[1:], s[0]), strict=True) if home[a] != home[b]} for s in sets]
        leaving = [{a for a, _ in ring} for ring in rings]  # servers whose link the job's ring takes
        said = contention([[sum(home[g] == s for g in gpus) for s in range(len(servers))] for gpus in sets], jobs)
        counted = [max((sum(s in other for other in leaving) for s in mine), default=0) for mine in leaving]
        cases += 1
        wrong += said != counted or max(said) > max(servers)
    return Found.count(wrong, cases, proves=True)


def heard() -> Found:
    """rar_scheduling.8 and .10, as used by the iteration time: k = xi1*p, and xi2 per server."""
    cluster = Cluster((1,) * 8, b_e=Fraction(4), xi1=Fraction(1, 2), xi2=Fraction(1, 8))
    wrong = sum(bandwidth(cluster, 2, p) != Fraction(4) / (Fraction(1, 2) * p) for p in range(2, 7))
    slots = [iteration_slots(Job(1, 1), cluster, used, 0) for used in (1, 2, 5)]
    wrong += [s - 1 for s in slots] != [Fraction(1, 8), Fraction(2, 8), Fraction(5, 8)]
    return Found.count(wrong, 6)


def bandwidth_falls(alpha: int, xi1: float, p: int, least_one: bool) -> Found:
    """rar_scheduling.9: f(alpha, 1) = 1 and f rises with k, so no spread job has more than b_e; p = 1 is a job that is alone."""
    value = bandwidth(Cluster((1, 1), b_e=1.0, alpha=alpha, xi1=xi1), 2, p, least_one)
    top = 1e300 if math.isinf(value) or value < 0 else float(value)
    return Found(top, top, 1.0, proves=True, message=f"bandwidth {value} of b_e = 1 with k = {xi1 * p:g}")


def ring_slots(w: int) -> Found:
    """rar_scheduling.11: against the ring, played message by message, then compute and overhead."""
    job = Job(w, 1, m=Fraction(12), compute=Fraction(3))
    cluster = Cluster((1,) * w, b_e=Fraction(5), C=Fraction(7), xi2=Fraction(1, 9))
    played = ring_all_reduce(w, Fraction(12), 1 / bandwidth(cluster, w, 1), add=lambda x: x / 7).seconds
    return Found.count(int(iteration_slots(job, cluster, w, 1) != played + Fraction(w, 9) + 3), 1)


def monotone_slots() -> Found:
    """rar_scheduling.11.monotone: an iteration never gets shorter with contention or with servers, over small parameters."""
    wrong, cases = 0, 0
    for w, m, alpha, xi1, xi2 in itertools.product((2, 3, 8), (1, 5), (0, 1), (Fraction(1, 2), 1), (0, Fraction(1, 4))):
        cluster = Cluster((1,) * 8, b_i=Fraction(100), b_e=Fraction(2), C=Fraction(7), alpha=alpha, xi1=xi1, xi2=xi2)
        job = Job(w, 1, m=Fraction(m))
        table = [[iteration_slots(job, cluster, used, p) for p in (1, 2, 3, 6)] for used in range(1, w + 1)]
        cases += 1
        wrong += any(row != sorted(row) for row in table) or any(list(c) != sorted(c) for c in zip(*table, strict=True))
    return Found.count(wrong, cases, proves=True)


def completion(G: int) -> Found:
    """rar_scheduling.12: a job alone ends after ceil(F/floor(1/tau)) slots, played slot by slot."""
    wrong, cases = 0, 0
    for F, compute in itertools.product((1, 5, 9), (Fraction(1, 3), Fraction(2, 5), Fraction(1))):
        tau = iteration_slots(Job(G, F, compute=compute), Cluster((G,)), 1, 0)
        played, _ = play([Job(G, F, compute=compute)], Cluster((G,)), [(0, tuple(range(G)))])
        per_slot, slots, done = math.floor(1 / tau), 0, 0
        while done < F:
            slots, done = slots + 1, done + per_slot
        cases += 1
        wrong += played != slots
    return Found.count(wrong, cases)


def progress(compute: int) -> Found:
    """rar_scheduling.12.progress: iterations in a slot of a job whose iteration takes ``compute`` slots; every job must progress."""
    per_slot = math.floor(1 / iteration_slots(Job(1, 1, compute=Fraction(compute)), Cluster((1,)), 1, 0))
    return Found(float(per_slot), float(per_slot), 1.0, ">=", proves=True, message=f"floor(1/{compute}) = {per_slot} iterations a slot")


def volumes(w: int, per_worker: bool) -> Found:
    """rar_scheduling.14: what a worker sends in a ring, and what a parameter server (or a worker of it) sends and receives."""
    m = Fraction(12)
    ring = ring_all_reduce(w, m, 1).sent[0]
    pushes, pulls = [(i, "server", m) for i in range(w)], [("server", i, m) for i in range(w)]
    place = 0 if per_worker else "server"
    counted = sum(size for a, b, size in pushes + pulls if place in (a, b))
    assert ring == 2 * m * (w - 1) / w
    return Found(float(counted), float(counted), float(2 * w * m), "==", proves=True, message=f"{counted} counted, 2*w*m = {2 * w * m}")
