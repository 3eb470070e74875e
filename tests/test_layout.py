"""The house: folders and package list agree, layers are complete, and every docstring's example runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import tomllib
from pathlib import Path

import pytest

import verify_rates

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("solvers", "problems", "theory", "proofs_check")
MOST_LINES = 30  # of a step function: a definition that is read at one sight
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())


def packages_on_disk():
    found = {"verify_rates"}
    for folder in FOLDERS:
        for init in (ROOT / folder).rglob("__init__.py"):
            found.add(".".join(("verify_rates", *init.parent.relative_to(ROOT).parts)))
    return found


def modules():
    """Every module of the installed package, the mapped folders included."""
    found = []
    for name in sorted(packages_on_disk()):
        package = importlib.import_module(name)
        found.append(name)
        found += [f"{name}.{m.name}" for m in pkgutil.iter_modules(package.__path__) if not m.ispkg]
    return found


def test_the_package_list_is_what_the_folders_hold():
    assert set(CONFIG["tool"]["setuptools"]["packages"]) == packages_on_disk()


def test_every_python_file_lies_in_a_package():
    for folder in FOLDERS:
        for file in (ROOT / folder).rglob("*.py"):
            assert (file.parent / "__init__.py").exists(), f"{file.relative_to(ROOT)} would not be installed"


def test_the_layers_name_every_module_that_people_touch():
    (layers,) = [c["layers"] for c in CONFIG["tool"]["importlinter"]["contracts"] if c["type"] == "layers"]
    listed = set(re.split(r"\s*:\s*", layers[0]))
    assert listed == {f"verify_rates.{f.stem}" for f in (ROOT / "verify_rates").glob("*.py") if f.stem != "__init__"}


def test_the_version_is_said_once():
    assert verify_rates.__version__ == CONFIG["project"]["version"]


def test_every_public_name_can_be_had():
    for name in verify_rates.__all__:
        assert getattr(verify_rates, name) is not None
    assert set(verify_rates.__all__) <= set(dir(verify_rates))
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = verify_rates.no_such_name


def test_constraints_are_names_and_versions():
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert lines and all(re.fullmatch(r"[a-z0-9.-]+==[0-9][0-9A-Za-z.]*", line) for line in lines)
    pinned = {line.split("==")[0] for line in lines}
    extras = CONFIG["project"]["optional-dependencies"]
    for wanted in (*CONFIG["project"]["dependencies"], *extras["dev"], *extras["docs"]):
        assert re.split(r"[^A-Za-z0-9._-]", wanted)[0].lower() in pinned


@pytest.mark.parametrize("name", modules())
def test_examples_in_docstrings(name):
    module = importlib.import_module(name)
    found = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    assert found.failed == 0


# --- the pytest plugin ------------------------------------------------------------------------------------------------

CLAIMS = """
import verify_rates as vr
from verify_rates.theory.evidence import Found

CLAIMS = [
    vr.Claim("plug.true", "s", check="plugged:right", grid=({},), source="derived"),
    vr.Claim("plug.false", "s", check="plugged:wrong", grid=({},), source="derived"),
    vr.Claim("plug.known", "s", check="plugged:wrong", grid=({},), source="derived", expect="fails"),
    vr.Claim("plug.open", "s", not_checkable="an order without constants", source="derived"),
]


def right():
    return Found(1.0, 1.0, 2.0, proves=True)


def wrong():
    return Found(3.0, 3.0, 2.0)
"""


@pytest.fixture
def inner(pytester, monkeypatch):
    monkeypatch.setenv("VERIFY_RATES_CACHE", str(pytester.path / "cache"))
    return pytester


def test_a_users_claims_become_tests(inner):
    file = inner.makepyfile(plugged=CLAIMS)
    result = inner.runpytest_subprocess("-p", "no:cacheprovider", "--verify-rates", file)
    result.assert_outcomes(passed=2, failed=1, skipped=1)
    result.stdout.fnmatch_lines(["*claim plug.false is refuted (expected: holds)*"])


def test_one_claim_can_be_chosen(inner):
    file = inner.makepyfile(plugged=CLAIMS)
    result = inner.runpytest_subprocess("-p", "no:cacheprovider", "--verify-rates", file, "-k", "plug.true")
    result.assert_outcomes(passed=1, deselected=3)


def test_without_the_option_nothing_is_collected(inner):
    inner.makepyfile(plugged=CLAIMS)
    assert inner.runpytest_subprocess("-p", "no:cacheprovider", "plugged.py").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_broken_file_is_one_sentence(inner):
    inner.makepyfile(plugged="x = 1\ny = 1/0\n")
    result = inner.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:python", "--verify-rates", "plugged.py")
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*line 2 of plugged.py failed with ZeroDivisionError*"])


def test_step_functions_are_short():
    import inspect

    from shipped import shipped

    lines = {name: len(inspect.getsource(m.step).splitlines()) for name, m in shipped().items()}
    assert max(lines.values()) <= MOST_LINES, {name: k for name, k in lines.items() if k > MOST_LINES}
