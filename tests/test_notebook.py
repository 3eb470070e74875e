"""The notebook runs as it is shown, every result in it shows itself, and it would fail where the story did."""

from __future__ import annotations

import copy
import importlib.util
from pathlib import Path

import jupytext
import nbclient
import pytest

import verify_rates as vr
from verify_rates.solvers.method import UsageError
from verify_rates.verdicts import Verdict

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "notebooks" / "verify_rates_in_ten_minutes.py"
# A kernel starts in seconds; compiling the method takes up to twenty on a busy machine.
TIMEOUT = 300
TABLES = ("<table", "<div")
PROVED = (Verdict.HOLDS, Verdict.CERTIFIED)


def execute(notebook):
    made = copy.deepcopy(notebook)
    nbclient.NotebookClient(made, timeout=TIMEOUT, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}).execute()
    return made


@pytest.fixture(scope="module")
def source():
    return jupytext.read(SOURCE)


@pytest.fixture(scope="module")
def executed(source):
    return execute(source)


def code(notebook):
    return [c for c in notebook.cells if c.cell_type == "code"]


def test_it_runs_and_every_result_shows_itself(executed):
    shown = {c.source.splitlines()[-1]: c.outputs for c in code(executed) if c.outputs}
    for name in ("history", "worst", "reading", "line", "sent", "held", "refuted"):
        html = [o.data["text/html"] for o in shown[name] if "text/html" in o.get("data", {})]
        assert html and html[0].lstrip().startswith(TABLES), f"{name} shows no table"
    assert any("image/png" in o.get("data", {}) for o in shown["axes = history.plot()"])
    assert "reproduced" in shown["print(again.sentence)"][0].text


def test_it_asserts_what_it_says(source):
    assert sum(c.source.count("assert ") for c in code(source)) >= 8


def without_runs(source):
    """The story without its runs, which have to be compiled."""
    short = copy.deepcopy(source)
    cells = [c for c in code(short) if not c.source.startswith(("as_it_stands", "axes =", "problem ="))]
    short.cells = [c for c in cells if "ends(" not in c.source]
    return short


def test_the_short_story_goes_well(source):
    execute(without_runs(source))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('lets={"gamma": "(1-beta)/L"}', 'lets={"gamma": "delta*(1-beta)/(4*L)"}'),  # nothing is refuted then
        ("return State(x=s.x - vr.mean(w, sent), m=m, e=p - sent)", "return State(x=s.x - vr.mean(w, sent), m=m, e=p)"),
    ],
)
def test_a_story_that_goes_wrong_fails(source, right, wrong):
    broken = without_runs(source)
    assert sum(right in c.source for c in broken.cells) == 1
    for cell in broken.cells:
        cell.source = cell.source.replace(right, wrong)
    with pytest.raises(nbclient.exceptions.CellExecutionError):
        execute(broken)


def build():
    spec = importlib.util.spec_from_file_location("build", SOURCE.parent / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_notebooks_are_made_and_checked(tmp_path, monkeypatch, capsys):
    """On a small source: the notebook carries outputs; a check writes nothing; a failing cell is told."""
    module = build()
    assert module.sources() == [SOURCE]
    head = SOURCE.read_text().split("# %% [markdown]")[0]
    (tmp_path / "small.py").write_text(head + "# %%\n1 + 1\n")
    monkeypatch.setattr(module, "HERE", tmp_path)
    assert module.main(["--check"]) == 0 and not list(tmp_path.glob("*.ipynb"))
    assert module.main([]) == 0
    [cell] = jupytext.read(tmp_path / "small.ipynb").cells
    assert cell.outputs[0].data["text/plain"] == "2"
    (tmp_path / "small.py").write_text(head + "# %%\n1 / 0\n")
    assert module.main(["--check"]) == 1 and "ZeroDivisionError" in capsys.readouterr().err


# --- claims as objects, as the notebook gives them -------------------------------------------------------------------------


def claim(number, bound):
    setting = {"method": "gd", "measure": "distance", "bound": bound, "lets": {"gamma": "1/L"}, "source": "a test"}
    return vr.Claim(f"object.{number}", "A claim that lies in no file.", grid=({"L": 1, "mu": 0.5, "N": 1},), **setting)


def test_claims_are_checked_as_objects_beside_patterns():
    right, wrong = claim(1, "(1 - gamma*mu)**(2*N)*V0"), claim(2, "(1 - gamma*mu)**(4*N)*V0")
    report = vr.check(["matcha.1", right, wrong], jobs=1)
    assert [r.claim.id for r in report] == ["matcha.1", "object.1", "object.2"] and report.exit_code == 1
    assert report["object.1"].verdict in PROVED and report["object.2"].verdict is Verdict.REFUTED
    [alone] = vr.check(right)
    assert alone.verdict in PROVED and not alone.cached


def test_an_id_that_is_taken_is_refused():
    with pytest.raises(UsageError, match=r"two claims are called 'rates\.8'"):
        vr.check(["rates.*", vr.Claim("rates.8", "Another.", not_checkable="it is another", source="a test")])
