"""Figures are compared by their data: each column against what it stands for, and each formula against a broken copy of itself."""

from __future__ import annotations

import dataclasses
import json
import math

import matplotlib as mpl
import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from verify_rates import figure_data, figure_files, figure_plots
from verify_rates.cli import main
from verify_rates.figure_data import COMPARED, Frame
from verify_rates.figure_files import DPI, FIGURES, figures, write
from verify_rates.solvers.method import UsageError
from verify_rates.theory.claims import claims

# Rounding of closed forms: a few hundred operations of 1.1e-16 each.
RTOL_FORMULA = 1e-12
# The two ends of a worst case are at most 1e-6 apart, relatively (worst_case.solve.WIDE); the bound is tight only for arbitrary memories:
# with empty ones the worst case lies below it.
WIDE = 1e-6
POINTS_PER_INCH = 72

SMALL = {
    "error-feedback": {"kept": (15,), "steps": 4, "solved": (1, 2), "seeds": 3, "engine": "numpy"},
    "time-per-step": {"points": 9, "simulated": 5},
    "time-to-accuracy": {"taus": (0, 3, 6, 9), "deltas": (0.003, 0.03, 0.3, 1.0)},
    "methods": {"compared": COMPARED[:3] + COMPARED[5:6], "rounds": 30, "records": 5, "seeds": 2, "grid": (0.125, 1.0), "engine": "numpy"},
}


@pytest.fixture(scope="module")
def frames() -> dict[str, Frame]:
    return {name: FIGURES[name].make(**SMALL[name]) for name in FIGURES}


# --- data ---------------------------------------------------------------------------------------------------------------


def published_rate(L, mu, delta):
    """The rate as printed, written down independently of the claim."""
    s, q = math.sqrt(1 - delta), (L - mu) / (L + mu)
    return (((1 - s) * q + math.sqrt((1 - s) ** 2 * q**2 + 4 * s)) / 2) ** 2


def test_error_feedback_shows_the_published_rate(frames):
    c, letters = frames["error-feedback"].columns, frames["error-feedback"].parameters["letters"][0]
    rate = published_rate(letters["L"], letters["mu"], letters["delta"])
    np.testing.assert_allclose(c["bound"][0], rate ** c["steps"], rtol=RTOL_FORMULA)
    s = math.sqrt(1 - letters["delta"])
    assert letters["gamma"] == pytest.approx(2 / (letters["L"] + letters["mu"]) * (1 - s) / (1 + s), rel=RTOL_FORMULA)


def test_error_feedback_in_its_order(frames):
    """Runs <= worst case <= bound, and the instance that is run lies between the ends."""
    c = frames["error-feedback"].columns
    at = c["solved"].astype(int)
    assert (c["topk"][0, at] < c["lower"][0]).all() and (c["randk"][0, at] < c["lower"][0]).all()
    assert (c["lower"] <= c["upper"]).all() and (c["upper"][0] <= c["bound"][0, at] * (1 + WIDE)).all()
    assert (c["replayed"] >= c["lower"] * (1 - WIDE)).all() and (c["replayed"] <= c["upper"] * (1 + WIDE)).all()
    assert (c["lower"][0] > 0.999 * c["bound"][0, at]).all(), "the figure's point: the bound is nearly attained"
    assert (c["randk_low"] <= c["randk"]).all() and (c["randk"] <= c["randk_high"]).all()


def test_error_feedback_notices_a_broken_claim(monkeypatch, frames):
    broken = dataclasses.replace(claims()["ef.any"], bound="((1-s)*q + s)**N*V0")
    monkeypatch.setattr(figure_data, "_claim", lambda claim_id: broken)
    other = figure_data.data_error_feedback(**SMALL["error-feedback"])
    assert "bound" in other.difference(frames["error-feedback"], FIGURES["error-feedback"].rtol)


def closed_pace(entry, compute, latency, tx):
    """Seconds per step, written down independently of the time line (deco.11 and deco.13)."""
    tx, tau = tx * entry["bytes_share"], entry["hyper"].get("tau", 0)
    return max(compute, tx, (compute + tx + latency) / (tau + 1))


def test_time_per_step_is_the_closed_form_and_the_simulation(frames):
    c, p = frames["time-per-step"].columns, frames["time-per-step"].parameters
    dense = 8 * p["size"]
    for k, entry in enumerate(p["methods"]):
        by_latency = [closed_pace(entry, p["compute"], lat, dense / p["bandwidth"]) for lat in c["latency"]]
        by_bandwidth = [closed_pace(entry, p["compute"], p["latency"], dense / bw) for bw in c["bandwidth"]]
        np.testing.assert_allclose(c["by_latency"][k], by_latency, rtol=RTOL_FORMULA)
        np.testing.assert_allclose(c["by_bandwidth"][k], by_bandwidth, rtol=RTOL_FORMULA)
    for axis in ("latency", "bandwidth"):
        among = np.searchsorted(c[axis], c[f"simulated_{axis}"])
        np.testing.assert_allclose(c[f"simulated_by_{axis}"], c[f"by_{axis}"][:, among], rtol=FIGURES["time-per-step"].rtol)


def test_time_per_step_notices_another_network(frames):
    other = figure_data.data_time_per_step(latency=0.11, **SMALL["time-per-step"])
    assert other.difference(frames["time-per-step"], 1e-9)


def deco_bound(gamma, N, *, n, L, F0, sigma2, zeta2_sup, tau, delta):
    """deco.5, written down independently of the claim."""
    noise = 4 * (1 - delta) * zeta2_sup / delta**2 + 2 * (1 - delta) * sigma2 / delta + 2 * tau * sigma2 / n
    return 4 * F0 / (gamma * N) + 2 * L * gamma * sigma2 / n + 4 * L**2 * gamma**2 * noise


def deco_step(*, L, tau, delta, **_):
    return 1 / (4 * L * max(1, math.sqrt(tau**2 + 2 * (1 - delta) / delta**2)))


def test_steps_are_the_fewest_that_the_bound_allows(frames):
    """At T the bound meets eps with the step size found; at T - 1 no step size does (a fine grid up to the largest one)."""
    c, p = frames["time-to-accuracy"].columns, frames["time-to-accuracy"].parameters
    for a, tau in enumerate(c["tau"]):
        for b, delta in enumerate(c["delta"]):
            letters = {**p["letters"], "tau": tau, "delta": delta}
            T, gamma, top = c["steps"][a, b], c["gamma"][a, b], deco_step(**letters)
            assert 0 < gamma <= top * (1 + RTOL_FORMULA)
            assert deco_bound(gamma, T, **letters) <= p["eps"] * (1 + RTOL_FORMULA)
            tried = deco_bound(top * np.linspace(1e-4, 1, 10_000), T - 1, **letters)
            assert (tried > p["eps"]).all()


def test_time_to_accuracy_is_steps_times_pace_and_its_optimum_the_smallest(frames):
    c, p = frames["time-to-accuracy"].columns, frames["time-to-accuracy"].parameters
    tx = 32 * p["d"] * c["bytes_share"] / p["bandwidth"]
    pace = np.maximum(np.maximum(p["compute"], tx), (p["compute"] + tx + p["latency"]) / (c["tau"][:, None] + 1))
    np.testing.assert_allclose(c["seconds"], c["steps"] * pace, rtol=RTOL_FORMULA)
    a, b = np.searchsorted(c["tau"], c["optimum"][0]), np.searchsorted(c["delta"], c["optimum"][1])
    assert c["seconds"][a, b] == c["seconds"].min() < c["synchronous"][0]
    assert c["synchronous"][0] == pytest.approx(c["seconds"][0, -1], rel=RTOL_FORMULA)
    kept = np.round(c["delta"] * p["d"])
    np.testing.assert_allclose(c["bytes_share"], np.minimum(1, kept * (32 + 24) / (32 * p["d"])), rtol=RTOL_FORMULA)  # 2^23 < d <= 2^24


def test_methods_at_their_best_step(frames):
    """GD by hand: the gap of every step size of the grid, bits of dense vectors, and the synchronous time."""
    from verify_rates.problems import get_problem

    c, p = frames["methods"].columns, frames["methods"].parameters
    problem = get_problem(**p["problem"])

    def gap(step):
        x, gaps = np.zeros(problem.d), []
        for _ in range(p["total_rounds"] + 1):
            gaps.append(problem.value(x) - problem.constants.f_star[0])
            x = x - step * problem.grads(x).mean(axis=0)
        return np.array(gaps)

    best = min((g / p["L"] for g in p["grid"]), key=lambda step: gap(step)[-1])
    assert c["gamma"][0] == pytest.approx(best, rel=RTOL_FORMULA)
    np.testing.assert_allclose(c["gap"][0], gap(best)[c["rounds"][0].astype(int)], rtol=FIGURES["methods"].rtol)
    assert c["bits_per_round"].tolist() == [32 * 30, 3 * (32 + 5), 3 * (32 + 5), 32 * 30]
    tx = c["bits_per_round"] / p["bandwidth"]
    steps = np.array([1, 1, 1, 8])  # local SGD computes eight gradients a round
    np.testing.assert_allclose(c["seconds_per_round"], steps * p["compute"] + tx + p["latency"], rtol=RTOL_FORMULA)
    np.testing.assert_allclose(c["bits"], c["rounds"] * c["bits_per_round"][:, None], rtol=RTOL_FORMULA)


def test_bits_are_those_that_a_run_counts(frames):
    """Where a method compresses, the engine counts what it sends; the figure's bits are the same."""
    from verify_rates.solvers.engine.run import simulate

    c, p = frames["methods"].columns, frames["methods"].parameters
    history = simulate("ef_sgd", "logistic", {"gamma": 0.1}, steps=5, compressor=p["methods"][2]["compressor"], engine="numpy")
    assert history.bits[0, -1] == 5 * c["bits_per_round"][2]


# --- frames -------------------------------------------------------------------------------------------------------------


def test_frames_survive_json(frames):
    for frame in frames.values():
        again = Frame.from_json(frame.to_json())
        assert again.difference(frame, 0.0) == "" and again.columns.keys() == frame.columns.keys()


@pytest.mark.parametrize("name", FIGURES)
def test_every_changed_number_is_noticed(frames, name):
    """One entry of every column in turn, moved by twice the tolerance."""
    frame, rtol = frames[name], FIGURES[name].rtol
    for column, values in frame.columns.items():
        changed = values.copy()
        place = np.unravel_index(np.flatnonzero(np.isfinite(values) & (values != 0))[-1], values.shape)
        changed[place] *= 1 + 2 * rtol
        other = dataclasses.replace(frame, columns={**frame.columns, column: changed})
        assert other.difference(frame, rtol).startswith(column)
    assert frame.difference(frame, 0.0) == ""
    assert dataclasses.replace(frame, parameters={**frame.parameters, "link": "x"}).difference(frame, rtol).startswith("link")
    shorter = {k: v[:-1] for k, v in frame.columns.items()}
    assert "shape" in dataclasses.replace(frame, columns=shorter).difference(frame, rtol)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": "methods", "parameters": {}, "columns": {"x": ["a"]}}'])
def test_what_is_no_frame_is_refused(text):
    with pytest.raises(UsageError, match="no frame"):
        Frame.from_json(text)


# --- files --------------------------------------------------------------------------------------------------------------


WIDTHS = {"neurips": (5.5, 5.5), "icml": (3.25, 6.75), "jmlr": (6.0, 6.0)}  # inches: column, page


@pytest.mark.parametrize(("name", "venue"), [*((name, venue) for name in FIGURES for venue in ("neurips", "icml")), ("methods", "jmlr")])
def test_files_have_the_venues_width_and_the_parameters(tmp_path, frames, name, venue):
    before = dict(mpl.rcParams)
    pdf, png, data = write(frames[name], tmp_path, venue)
    assert dict(mpl.rcParams) == before, "settings leaked"
    width = WIDTHS[venue][FIGURES[name].wide]
    with Image.open(png) as image:
        assert image.width == pytest.approx(width * DPI, abs=1)
        about, caption = json.loads(image.text["parameters"]), image.text["Description"]
        assert np.asarray(image.convert("L")).std() > 10, "an empty picture"
    assert about["parameters"] == json.loads(json.dumps(frames[name].parameters)) and about["venue"] == venue
    assert caption == FIGURES[name].caption
    raw = pdf.read_bytes()
    box = raw.split(b"/MediaBox [")[1].split(b"]")[0].split()
    assert float(box[2]) == pytest.approx(width * POINTS_PER_INCH, abs=0.01)
    keywords = raw.split(b"/Keywords (")[1].split(b")\n")[0].replace(b"\\(", b"(").replace(b"\\)", b")")
    assert json.loads(keywords.replace(b"\\\n", b"")) == about
    assert b"/Type3" not in raw and b"/CIDFontType2" in raw  # TrueType outlines, as venues ask for
    assert Frame.from_json(data.read_text()).difference(frames[name], 0.0) == ""


def test_the_same_data_give_the_same_bytes(tmp_path, frames):
    once, twice = tmp_path / "a", tmp_path / "b"
    for folder in (once, twice):
        folder.mkdir()
        write(frames["time-per-step"], folder)
    assert all((once / f.name).read_bytes() == f.read_bytes() for f in twice.iterdir())


def test_latex_is_never_run(tmp_path, frames, monkeypatch):
    """Not even where the user's own settings ask for it."""
    from matplotlib import texmanager

    def refuse(*args, **kwargs):
        raise AssertionError("LaTeX was asked for")

    monkeypatch.setattr(texmanager.TexManager, "make_tex", refuse)
    for venue in figure_plots.venues():
        assert figure_plots.style(venue)["text.usetex"] is False
    with mpl.rc_context({"text.usetex": True}):
        write(frames["error-feedback"], tmp_path)


def test_no_label_lies_over_another(frames):
    settings = figure_plots.style("icml", False, 0.68)
    figure = figure_plots.fig_error_feedback(frames["error-feedback"], settings)
    boxes = [t.get_window_extent() for t in figure.axes[0].texts]
    assert len(boxes) == 3
    assert not any(a.overlaps(b) and min(a.y1, b.y1) - max(a.y0, b.y0) > 0.35 * a.height for i, a in enumerate(boxes) for b in boxes[:i])


# --- command ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch):
    """The command with the small versions."""
    for name, recipe in FIGURES.items():
        made = dataclasses.replace(recipe, make=lambda name=name, make=recipe.make: make(**SMALL[name]))
        monkeypatch.setitem(figure_files.FIGURES, name, made)


def run(*arguments):
    return CliRunner().invoke(main, ["figures", *map(str, arguments)])


def test_the_command_writes_and_compares(tmp_path, small):
    out = tmp_path / "new" / "figures"
    made = run("--out", out, "--only", "time-per-step", "--only", "methods")
    assert made.exit_code == 0 and sorted(f.name for f in out.iterdir()) == sorted(
        f"{name}.{kind}" for name in ("time-per-step", "methods") for kind in ("pdf", "png", "json")
    )
    same = run("--out", out, "--only", "time-per-step", "--check")
    assert same.exit_code == 0 and same.stdout == "time-per-step: as stored\n"
    stored = out / "time-per-step.json"
    data = json.loads(stored.read_text())
    data["columns"]["by_latency"][0][0] *= 1.001
    stored.write_text(json.dumps(data))
    before = stored.read_bytes()
    changed = run("--out", out, "--only", "time-per-step", "--check", "--json")
    assert changed.exit_code == 1 and json.loads(changed.stdout)[0]["difference"].startswith("by_latency[0, 0]")
    assert stored.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--only", "metods"), "did you mean 'methods'"),
        (("--venue", "neurisp"), "did you mean 'neurips'"),
        (("--check",), "no stored data"),
    ],
)
def test_wrong_input_is_said_before_the_work(tmp_path, monkeypatch, arguments, sentence):
    for name, recipe in FIGURES.items():
        monkeypatch.setitem(figure_files.FIGURES, name, dataclasses.replace(recipe, make=lambda: pytest.fail("work was begun")))
    result = run("--out", tmp_path, *arguments)
    assert result.exit_code == 2 and sentence in result.stderr


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot make the folder"):
        figures(tmp_path / "file" / "figures", only="methods")


@pytest.mark.slow
def test_the_figure_of_the_readme_is_what_the_command_makes():
    from pathlib import Path

    docs = Path(__file__).resolve().parents[1] / "docs" / "figures"
    assert (docs / "error-feedback.png").stat().st_size < 200_000
    [found] = figures(docs, only="error-feedback", check=True)
    assert found.difference == ""
