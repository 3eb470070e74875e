"""Messages made at a server, masks that everybody knows, sums that were sent, steps that depend on a remainder, and coins."""

import itertools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
import sympy as sp

from verify_rates.solvers.method import Method, UsageError, get_method
from verify_rates.solvers.words import PerWorker, Shared, SharedQueue, Unsupported, chance, compress, delay, each, grad, mean, spread
from verify_rates.theory.timeline import coins, events, round_seconds_by_simulation, timeline
from verify_rates.theory.timeline.coins import expected_time
from verify_rates.theory.timeline.events import EventWorld, Sent, period_steps
from verify_rates.theory.timeline.line import Costs
from verify_rates.theory.timeline.simulate import ClockWorld
from verify_rates.theory.traffic import traffic

GIVEN = {"compute": 1.0, "latency": 0.3, "bandwidth": 8.0, "size": 4.0}
T_comp, T_tx, T_tx_1, T_tx_2, lat, T_enc = sp.symbols("T_comp T_tx T_tx_1 T_tx_2 lat T_enc", nonnegative=True)
RTOL = 1e-9
SIGMAS = 5  # of a simulated mean: about one false alarm in a million


def form(name, hyper=None, **more):
    return timeline(name, hyper or {}, **GIVEN | {"bytes_share": 0.1} | more).formula


# --- messages of a server --------------------------------------------------------------------------------------------


def test_a_message_of_the_server_travels_back(monkeypatch):
    assert form("saef") == T_comp + 2 * T_tx + 2 * lat and form("saef_one_way") == T_comp + T_tx + lat
    assert form("saef", encode=0.2) == T_comp + 2 * T_enc + 2 * T_tx + 2 * lat  # the server compresses as well
    given = GIVEN | {"bytes_share": 0.1}
    two_way = timeline("zero_one_adam", {"beta": 0.5}, **given)
    witness = round_seconds_by_simulation("zero_one_adam", {"beta": 0.5}, engine="steps", **given)
    assert two_way.seconds_per_step == pytest.approx(witness, rel=RTOL)
    assert two_way.formula == sp.Max(T_comp + 2 * T_tx_1 + 2 * lat, 2 * T_tx_1 + T_tx_2 + lat)
    monkeypatch.setattr(EventWorld, "_broadcast", lambda self, v: v)
    assert form("saef") == form("saef_one_way")


def test_what_the_server_alone_needs_is_not_sent_down(monkeypatch):
    message = 3 * (32 + 7)
    sent = traffic("saef", d=100, n=4, compressor="topk:3")
    assert (sent.up_per_step, sent.down_per_step, sent.messages_per_round) == (message, message, 1)
    back = traffic("saef_one_way", d=100, n=4, compressor="topk:3")
    assert (back.up_per_step, back.down_per_step) == (message, 3 * message)
    adam = traffic("zero_one_adam", {"beta": 0.5}, d=100, n=4, compressor="topk:3")  # the squares need the average on all workers
    assert adam.up_per_step == adam.down_per_step == 3200 + message
    monkeypatch.setattr(events.GraphWorld, "average", lambda self: frozenset())
    monkeypatch.setattr(events.GraphWorld, "fetch", lambda self, v: self.fetched.update(range(99)))
    assert traffic("saef", d=100, n=4, compressor="topk:3").down_per_step == 4 * message


# --- masks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("H", [1, 2, 5])
def test_a_mask_that_all_know_has_no_places(monkeypatch, H):
    """salientgrads.3: 32*k bits a round each way; and the same in time."""
    sent = traffic("salientgrads", {"H": H}, d=100, n=4, compressor="topk:7")
    assert sent.up_per_round == sent.down_per_round == 32 * 7
    given = GIVEN | {"size": 400.0, "compressor": "topk:7"}
    assert timeline("salientgrads", {"H": H}, **given).seconds_per_round == pytest.approx(H + 32 * 7 / 8 + 0.3, rel=RTOL)
    assert timeline("loscar", {"H": H}, **given).seconds_per_round == pytest.approx(H + 32 * 7 / 8 + 0.3, rel=RTOL)
    monkeypatch.setattr(EventWorld, "on_mask", lambda self, v, mask: v)
    assert traffic("salientgrads", {"H": H}, d=100, n=4, compressor="topk:7").up_per_round == 3200


def test_masks_of_unknown_length_depend_on_the_data():
    assert traffic("salientgrads", d=100, n=4, compressor="hard_threshold:0.5").depends_on_data


# --- sums ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("periods", [(2, 2, 2, 2), (2, 3, 2, 4), (3, 2, 4, 2), (4, 4, 4, 4), (2, 4, 3, 3), (1, 2, 3, 1)])
def test_averages_of_several_time_scales(monkeypatch, periods):
    """mt_dao.12: 1/K_x + 1/K_1 + 1/K_2 + 1/K_v vectors a step, where no momentum can be told from the other's averages."""
    hyper = dict(zip(("K_x", "K_1", "K_2", "K_v"), periods, strict=True)) | {"beta_2": 0.5, "omega_2": 0.25}
    said = sum(1 / k for k in periods) - (1 / periods[2] if periods[1] == 1 else 0)  # K_1 = 1 tells every average gradient
    assert traffic("mt_dao", hyper, d=10, n=4).up_per_step == pytest.approx(320 * said, rel=RTOL)
    monkeypatch.setattr(Sent, "within", lambda self, parts: True)
    assert traffic("mt_dao", hyper, d=10, n=4).up_per_step <= 320 * said * (1 + RTOL)
    if periods == (2, 2, 2, 2):
        assert traffic("mt_dao", hyper, d=10, n=4).up_per_step < 320 * said


@pytest.mark.parametrize("periods", [(2, 2, 2, 2), (4, 2, 2, 4), (2, 4, 4, 2)])
def test_seconds_of_several_time_scales(periods):
    """mt_dao.13: T_comp + r*T_allreduce, r that of mt_dao.12, the all-reduces holding the link one after the other."""
    hyper = dict(zip(("K_x", "K_1", "K_2", "K_v"), periods, strict=True)) | {"beta_2": 0.5, "omega_2": 0.25}
    r = sum(sp.Rational(1, k) for k in periods)
    assert sp.expand(form("mt_dao", hyper, link="blocking") - T_comp - r * (T_tx + lat)) == 0


def test_gradient_tracking_sends_two_vectors(monkeypatch):
    """W(x - gamma y) does not tell W y."""
    assert traffic("gradient_tracking", d=10, n=4, topology="ring").up_per_step == 2 * 2 * 320
    monkeypatch.setattr(Sent, "within", lambda self, parts: True)
    assert traffic("gradient_tracking", d=10, n=4, topology="ring").up_per_step == 2 * 320


class Two(NamedTuple):
    x: Shared
    u: PerWorker
    v: PerWorker


class Weights(NamedTuple):
    gamma: float
    a: float = 1.0
    b: float = 1.0


def _sums(s, w, h, t):
    """Two sums of the same two gradients, with weights of their own."""
    g, k = grad(w, s.x), grad(w, s.x)
    return Two(x=s.x - mean(w, g + k) - mean(w, h.a * g + h.b * k), u=s.u, v=s.v)


@pytest.mark.parametrize(("a", "b", "sent"), [(1.0, 1.0, 1), (3.0, 3.0, 1), (1 / 3, 1 / 3, 1), (1.0, 2.0, 2), (1.0, 0.0, 2)])
def test_a_sum_is_known_in_its_own_proportions(a, b, sent):
    made = Method("sums", _sums, Two, Weights)
    assert traffic(made, {"a": a, "b": b}, d=10, n=4).up_per_step == 320 * sent


# --- remainders ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("P", [2, 3, 5])
def test_steps_that_differ_within_a_round(monkeypatch, P):
    """saef averages the residuals every P steps, though each of its steps is a round."""
    saef = get_method("saef_one_way")
    assert period_steps(saef, saef.hypers(gamma=1.0, P=P)) == P
    message = 3 * 39
    assert traffic("saef_one_way", {"P": P}, d=100, n=4, compressor="topk:3").up_per_step == pytest.approx(message + 3200 / P, rel=RTOL)
    witness = round_seconds_by_simulation("saef_one_way", {"P": P}, engine="steps", **GIVEN, bytes_share=0.1)
    line = timeline("saef_one_way", {"P": P}, **GIVEN, bytes_share=0.1)
    assert line.seconds_per_step == pytest.approx(witness / P, rel=RTOL)
    monkeypatch.setattr(events._Step, "__mod__", lambda self, period: int(self) % period)
    try:
        assert timeline("saef_one_way", {"P": P}, **GIVEN, bytes_share=0.1).seconds_per_step < line.seconds_per_step
    except Unsupported as error:
        assert "do not repeat" in str(error)


def test_whole_numbers_are_constants():
    """A schedule would be read at its first step alone, and 1 in 4 synchronisations would count as all, or none."""
    for read in (lambda h: traffic("zero_one_adam", h, d=10, n=4), lambda h: timeline("zero_one_adam", h, **GIVEN)):
        with pytest.raises(UsageError, match="sync must be a number here"):
            read({"beta": 0.5, "sync": [1, 0, 0, 0]})
        assert read({"beta": 0.5, "gamma": lambda t: t / 10}) is not None


# --- coins -----------------------------------------------------------------------------------------------------------

MODELS_ALONE = {"p_1": 0.0, "p_2": 0.0}


class Late(NamedTuple):
    x: Shared
    q: SharedQueue


class Odds(NamedTuple):
    gamma: float
    tau: int = 2
    p: float = 0.5


def _late(s, w, h, t):
    """Averages that arrive late, and every now and then one more."""
    g = grad(w, s.x)
    q, arrived = delay(w, s.q, mean(w, compress(w, g)))
    x = s.x - h.gamma * arrived
    if chance(w, h.p):
        x = x - h.gamma * mean(w, grad(w, x))
    return Late(x=x, q=q)


LATE = Method("late", _late, Late, Odds)


@dataclass
class Tossing(ClockWorld):
    """The step function with clocks and coins of its own generator: knows no states and no chain."""

    rng: Any = None

    def chance(self, p):
        return bool(self.rng.random() < p)


def simulated(method, hyper, given, steps, seed=0):
    """Mean seconds of a step and their standard error, by means of 40 batches."""
    bits = 8 * given["size"]
    costs = Costs((given["compute"],), 0.0, given["latency"], given["bandwidth"], bits * given.get("bytes_share", 1), bits, False)
    world = Tossing(cost=costs, rng=np.random.default_rng(seed))
    h = method.hypers(**{"gamma": 1.0} | hyper)
    s, ends = world.start(method, h, 0.0), []
    for t in range(steps):
        s = method.state(*map(world.settle, method.step(s, world, h, t)))
        world.events.clear()
        if (t + 1) % (steps // 41) == 0:
            ends.append(world.free["compute", 0])
    paces = np.diff(ends) / (steps // 41)
    return paces.mean(), paces.std(ddof=1) / np.sqrt(len(paces))


def test_a_renewal_takes_what_its_branches_take():
    rng = np.random.default_rng(0)
    for _ in range(20):
        p, compute, latency, tx = (float(v) for v in rng.uniform(0.05, 1, 4))
        given = {"compute": compute, "latency": latency, "bandwidth": 32.0, "size": 4.0 * tx}
        found = expected_time("mt_dao_sgdm", {"p_x": p} | MODELS_ALONE, **given)
        assert found.exact and found.low == found.high == pytest.approx(compute + p * (tx + latency), rel=RTOL)


@pytest.mark.parametrize("p", [0, 1])
def test_coins_that_cannot_fall_otherwise_are_none(p):
    line = timeline("mt_dao_sgdm", {"p_x": p} | MODELS_ALONE, **GIVEN)
    assert line.seconds_per_step == expected_time("mt_dao_sgdm", {"p_x": p} | MODELS_ALONE, **GIVEN).seconds_per_step == 1 + p * 4.3


@pytest.mark.parametrize(
    ("method", "hyper"), [(LATE, {}), (LATE, {"tau": 3, "p": 0.2}), (get_method("mt_dao_sgdm"), {"p_x": 0.25, "p_1": 0.5, "p_2": 0.0})]
)
def test_chains_of_several_states_against_a_simulation(monkeypatch, method, hyper):
    given = GIVEN | {"bytes_share": 0.5, "latency": 2.5}
    found = expected_time(method, hyper, **given)
    mean_seconds, error = simulated(method, hyper, given, 4100)
    assert found.exact and found.states > 1 and abs(found.seconds_per_step - mean_seconds) < SIGMAS * error
    monkeypatch.setattr(coins, "MOST_STATES", 0)
    guessed = expected_time(method, hyper, steps=4000, **given)
    width = guessed.high - guessed.low
    assert not guessed.exact and 0 < width < 0.1 * mean_seconds
    assert abs(guessed.seconds_per_step - found.seconds_per_step) < SIGMAS / 2 * width
    monkeypatch.undo()
    whole = coins.outcomes
    monkeypatch.setattr(coins, "outcomes", lambda *a: itertools.islice(whole(*a), 1))  # heads alone
    assert abs(expected_time(method, hyper, **given).seconds_per_step - mean_seconds) > SIGMAS * error


@pytest.mark.parametrize("p", [0.125, 0.5, 0.75])
def test_expected_traffic(monkeypatch, p):
    sent = traffic("mt_dao_sgdm", {"p_x": p} | MODELS_ALONE, d=10, n=4)
    assert sent.up_per_step == pytest.approx(320 * p, rel=RTOL) and any("probability" in note for note in sent.notes)
    late = traffic(LATE, {"p": p}, d=100, n=4, compressor="topk:3")
    assert late.up_per_step == pytest.approx(3 * 39 + 3200 * p, rel=RTOL) and late.messages_per_round == pytest.approx(1, rel=RTOL)
    whole = coins.outcomes
    monkeypatch.setattr(coins, "outcomes", lambda *a: itertools.islice(whole(*a), 1))
    assert traffic("mt_dao_sgdm", {"p_x": p} | MODELS_ALONE, d=10, n=4).up_per_step != pytest.approx(320 * p, rel=RTOL)


class One(NamedTuple):
    x: Shared
    e: PerWorker


def _unlike(s, w, h, t):
    g = grad(w, s.x)
    return One(x=s.x - h.gamma * mean(w, each(w, 0.5, g, spread(w, s.x))), e=s.e)


def test_coins_of_every_worker():
    """ec_lsvrg: both values are there anyway; where what is sent depends on the coin, nothing is said."""
    assert form("ec_lsvrg", {"p": 0.5}) == 3 * T_comp + T_tx + lat
    assert traffic("ec_lsvrg", {"p": 0.5}, d=100, n=4, compressor="topk:3").up_per_step == 3 * 39
    with pytest.raises(Unsupported, match="differs from worker to worker"):
        timeline(Method("unlike", _unlike, One, Odds), **GIVEN)


def _many(s, w, h, t):
    x = s.x - h.gamma * mean(w, grad(w, s.x))
    for _ in range(coins.MOST_COINS + 1):
        x = x - mean(w, grad(w, x)) if chance(w, h.p) else x
    return One(x=x, e=s.e)


def test_what_coins_cannot_be():
    with pytest.raises(UsageError, match="at most 10 coins"):
        expected_time(Method("many", _many, One, Odds), **GIVEN)
    with pytest.raises(UsageError, match="steps must be"):
        expected_time("mt_dao_sgdm", {"p_x": 0.5}, steps=3, **GIVEN)
    assert "to be expected" in str(expected_time("gd", **GIVEN)) and expected_time("gd", **GIVEN).seconds_per_step == 5.3
