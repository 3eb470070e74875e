"""Ring-all-reduce scheduling: the checks notice broken rules; the calculators work on a larger case and refuse bad input."""

from fractions import Fraction

import pytest

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators import rar_scheduling as rar
from verify_rates.theory.calculators.rar_scheduling import Cluster, Job


def test_another_contention_is_noticed(monkeypatch):
    honest = rar.contention
    monkeypatch.setattr(rar, "contention", lambda counts, jobs: [p + 1 for p in honest(counts, jobs)])
    assert rar.contention_of_rings((2, 2), (2, 2)).lower > 0


def test_another_iteration_time_is_noticed(monkeypatch):
    honest = rar.iteration_slots
    monkeypatch.setattr(rar, "iteration_slots", lambda *a: honest(*a) / 2)
    assert rar.ring_slots(3).lower > 0 and rar.heard().lower > 0
    monkeypatch.setattr(rar, "iteration_slots", lambda job, cluster, used, p: 1 / Fraction(used + p))
    assert rar.monotone_slots().lower > 0


def test_another_bandwidth_is_noticed(monkeypatch):
    monkeypatch.setattr(rar, "bandwidth", lambda cluster, used, p, least_one=True: 2 * cluster.b_e)
    assert rar.bandwidth_falls(0, 1.0, 2, True).lower > 1 and rar.heard().lower > 0


def test_another_clock_is_noticed(monkeypatch):
    honest = rar.play
    monkeypatch.setattr(rar, "play", lambda *a: (honest(*a)[0] * 3, []))
    assert rar.completion(1).lower > 0 and rar.lemma_3((2,), 2).lower > 0 and rar.graham(2, 2).lower > 0


def test_a_scheduler_that_ignores_its_limit_is_noticed(monkeypatch):
    honest = rar._least_loaded
    monkeypatch.setattr(rar, "_least_loaded", lambda G, candidates, loads, theta, rho: honest(G, candidates, loads, 99, rho))
    assert rar.lemma_2_repaired(1, 3).lower > 0


def test_volumes_count_what_is_sent(monkeypatch):
    found = rar.volumes(4, False)
    assert found.lower == found.bound and rar.volumes(4, True).lower < found.bound


def test_one_job_slows_down_among_others():
    cluster = Cluster((2, 2), b_e=Fraction(8))
    job = Job(2, 80, m=Fraction(1), compute=Fraction(1, 40))
    alone, _ = rar.play([job], cluster, [(0, (0, 2))])
    shared, ends = rar.play([job, job], cluster, [(0, (0, 2)), (1, (1, 3))])
    assert alone < shared and ends == [shared, shared]


def test_the_scheduler_against_baselines_and_the_optimum():
    jobs = [Job(1, 3), Job(2, 2), Job(1, 1), Job(2, 1)]
    cluster = Cluster((2, 1))
    best, found = rar.brute_force(jobs, cluster).makespan, rar.sjf_bco(jobs, cluster, 20).makespan
    others = [rar.baseline(name, jobs, cluster).makespan for name in ("first_fit", "list", "random")]
    assert best <= found and best <= min(others) and found <= max(others)


def test_a_cluster_of_twenty_servers_is_scheduled():
    jobs = [Job(g, 200 + 10 * i, m=Fraction(1, 50), compute=Fraction(1, 50)) for i, g in enumerate([1] * 20 + [2] * 6 + [4] * 8 + [8] * 4)]
    cluster = Cluster((4, 8, 16, 4), b_i=Fraction(1000), b_e=Fraction(4), C=Fraction(100), xi2=Fraction(1, 1000))
    found = rar.sjf_bco(jobs, cluster, 200)
    assert {j for j, _ in found.placed} == set(range(len(jobs))) and max(found.loads) <= found.theta
    assert all(len(gpus) == jobs[j].G for j, gpus in found.placed)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Job(0, 1), "G must be a whole number"),
        (lambda: Job(1, 1, compute=float("nan")), "compute must be positive and finite"),
        (lambda: Cluster(()), "at least one server"),
        (lambda: Cluster((2,), xi1=2), r"xi1 must be in \(0, 1\]"),
        (lambda: rar.sjf_bco([Job(3, 1)], Cluster((2,)), 4), "asks for 3 GPUs"),
        (lambda: rar.sjf_bco([Job(1, 9)], Cluster((2,)), 4), "no limit up to T = 4"),
        (lambda: rar.play([Job(1, 1, compute=2)], Cluster((1,)), [(0, (0,))]), "no job completes an iteration"),
        (lambda: rar.baseline("lst", [Job(1, 1)], Cluster((1,))), "did you mean 'list'"),
        (lambda: rar.brute_force([Job(3, 1)], Cluster((2,))), "more GPUs than the cluster has"),
    ],
)
def test_bad_input_is_one_sentence(call, words):
    with pytest.raises(UsageError, match=words):
        call()
