"""``verify-rates``: progress and complaints on stderr, data on stdout, one exit code."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from verify_rates import __version__
from verify_rates.solvers.method import UsageError
from verify_rates.solvers.words import Unsupported

INTERNAL_ERROR, USAGE, INTERRUPTED, BROKEN_PIPE = 3, 2, 130, 141
EXIT_CODES = """Exit codes: 0 every verdict is what its claim expects, 1 some is not, 2 wrong input, 3 internal error, 4 something is
inconclusive, 5 nothing was selected, 130 interrupted."""


def say(sentence: str) -> None:
    """One line on stderr."""
    click.echo(" ".join(sentence.split()), err=True)


class Front(click.Group):
    """The command group; every way to fail ends in one sentence and an exit code."""

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> Any:  # type: ignore[override]
        extra.pop("standalone_mode", None)
        try:
            code = super().main(args, "verify-rates", standalone_mode=False, **extra)
        except click.ClickException as e:
            code = self._usage(e.format_message())
        except (UsageError, Unsupported) as e:
            code = self._usage(str(e))
        except (KeyboardInterrupt, click.Abort):
            say("verify-rates: interrupted.")
            code = INTERRUPTED
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has gone; what is buffered has no other way out
            code = BROKEN_PIPE
        except Exception as e:  # the last resort: the user gets a sentence, the developer a file
            from verify_rates.solvers.own import fault
            from verify_rates.userfile import loaded

            sentence = fault(e, loaded)
            code = self._usage(sentence) if sentence else self._internal(e)
        sys.exit(code if isinstance(code, int) else 0)

    @staticmethod
    def _usage(sentence: str) -> int:
        say(f"verify-rates: {sentence}")
        return USAGE

    @staticmethod
    def _internal(e: Exception) -> int:
        import tempfile
        import traceback

        with tempfile.NamedTemporaryFile("w", prefix="verify-rates-", suffix=".txt", delete=False) as f:
            traceback.print_exception(e, file=f)
        say(f"verify-rates: internal error, {type(e).__name__}: {e}; the traceback is in {f.name}.")
        return INTERNAL_ERROR

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            from verify_rates.solvers.method import nearest

            raise nearest(args[0], self.commands, "command")
        return super().resolve_command(ctx, args)


class Value(click.ParamType):
    """A finite number, or an expression in the letters, as ``2/3`` or ``sqrt(2)``."""

    name = "number"

    def __init__(self, whole: bool = False, least: float | None = None) -> None:
        self.whole, self.least = whole, least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from verify_rates.arguments import number

        what = param.opts[0] if param else "a value"
        made = number(value, what=what) if isinstance(value, str) else value
        if self.whole and made != int(made):
            raise UsageError(f"{what} must be a whole number, not {value!r}.")
        if self.least is not None and made < self.least:
            raise UsageError(f"{what} must be at least {self.least:g}, not {value!r}.")
        return int(made) if self.whole else made


class Measured(click.ParamType):
    """A quantity with its unit, or a file that was measured, as ``model:FILE``."""

    name = "text"

    def __init__(self, role: str) -> None:
        self.role = role

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from verify_rates.arguments import measured

        made = measured(value, self.role) if isinstance(value, str) else value
        return COUNT.convert(made, param, ctx) if self.role == "d" else made


class Workers(Value):
    """A number of workers, or ``any``."""

    name = "number|any"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == "any" else super().convert(value, param, ctx)


COUNT, NATURAL, NUMBER, WORKERS = Value(whole=True, least=1), Value(whole=True, least=0), Value(), Workers(whole=True, least=1)
PAIRS = click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...")
FROM = click.option(
    "--from", "files", multiple=True, metavar="FILE.py", help="A file with your own methods and claims; THIS RUNS THE PYTHON CODE IN IT."
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


@click.group(cls=Front, epilog=EXIT_CODES, invoke_without_command=True, context_settings=_CONTEXT)
@click.version_option(__version__, message="verify-rates %(version)s")
@click.pass_context
def main(ctx: click.Context) -> int | None:
    """Write a distributed optimisation method once; run it, find its exact worst case, and check the rates that papers claim."""
    if ctx.invoked_subcommand is not None:
        return None
    click.echo(ctx.get_help(), err=True)
    return USAGE


# --- helpers ----------------------------------------------------------------------------------------------------------


def _load(files: Sequence[str]) -> list[Any]:
    from verify_rates.userfile import load_all

    return load_all(files)


def _writable(path: str | None) -> None:
    """UsageError before the work, not after it."""
    if path in (None, "-"):
        return
    folder = Path(str(path)).parent
    if not folder.is_dir():
        raise UsageError(f"cannot write {path!r}: the folder {str(folder)!r} does not exist.")
    if Path(str(path)).is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(f"cannot write {path!r}: it is a folder, or its folder cannot be written.")


def _print(table: Any) -> None:
    """A rich table on stdout; where that is no terminal, as wide as it needs to be and without trailing blanks."""
    from rich.console import Console

    console = Console(highlight=False)
    if console.is_terminal:
        return console.print(table)
    wide = Console(highlight=False, width=200, no_color=True)
    with wide.capture() as capture:
        wide.print(table)
    return click.echo("\n".join(line.rstrip() for line in capture.get().splitlines()))


def _print_json(data: Any) -> None:
    import json

    from verify_rates.verdicts import _plain

    click.echo(json.dumps(_plain(data), indent=1, ensure_ascii=False, allow_nan=False))


SHORT_CELL, LEAST_TEXT = 20, 24  # cells up to so long are never cut; the longest text of a row gets at least so much room


def _print_rows(rows: Sequence[Mapping[str, Any]], title: str = "") -> None:
    """Rows as a table; as one paragraph a row where a terminal is too narrow for it."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    names = list(rows[0] if rows else ())
    widest = {name: max(len(str(row[name])) for row in rows) for name in names}
    console = Console(highlight=False)
    whole = {name: k == 0 or widest[name] <= SHORT_CELL for k, name in enumerate(names)}
    least = sum(max(len(name), widest[name] if whole[name] else SHORT_CELL // 2) + 2 for name in names)
    if console.is_terminal and least + LEAST_TEXT > console.width and len(names) > 2:
        return _print_paragraphs(console, rows, title)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, title=title or None, title_justify="left")
    for name in names:
        table.add_column(name, no_wrap=whole[name], overflow="fold")
    for row in rows:
        table.add_row(*(Text(str(v)) for v in row.values()))
    return _print(table)


def _print_paragraphs(console: Any, rows: Sequence[Mapping[str, Any]], title: str) -> None:
    from rich.padding import Padding
    from rich.text import Text

    if title:
        console.print(Text(title, style="italic"))
    for row in rows:
        (_, first), *others = row.items()
        *told, (_, last) = others
        console.print(Text(str(first), style="bold"), Text("; ".join(f"{k} {v}" for k, v in told if v != "-")))
        console.print(Padding(Text(str(last)), (0, 0, 0, 4)))


def _print_facts(facts: Mapping[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for name, value in facts.items():
        table.add_row(name, Text(str(value)))
    _print(table)


# --- check and replay -------------------------------------------------------------------------------------------------


@main.command()
@click.argument("globs", nargs=-1, metavar="[GLOB]...")
@click.option("--suite", type=click.Choice(["quick", "full"]), default="quick", show_default=True, help="How much is checked.")
@FROM
@click.option("--data", metavar="FILE", help="Run on this LIBSVM file (plain or gzip) in place of the embedded data.")
@click.option("--json", "json_out", metavar="FILE|-", help="Write the report as JSON; - prints it on stdout, alone.")
@click.option("--junit", metavar="FILE", help="Write the report as JUnit XML, a testcase per claim.")
@click.option("--seed", type=NATURAL, default=0, show_default=True, help="Seed of every random draw.")
@click.option("--jobs", type=COUNT, help="Processes at once (default: all processors).")
@click.option("--strict", is_flag=True, help="Inconclusive verdicts and warnings exit with 1 (not-checkable claims never do).")
@click.option("--fresh", is_flag=True, help="Compute everything, even what is kept from earlier runs.")
@click.option("--witness-dir", metavar="DIR", help="Where witnesses of refuted claims are written (default: in the cache).")
def check(globs, suite, files, data, json_out, junit, seed, jobs, strict, fresh, witness_dir):
    """Check claims against exact worst cases and runs.

    GLOB selects claims by id, for example 'deco.*'; without one all are checked.  Results are kept, so that an interrupted
    run goes on where it stopped.
    """
    for path in (json_out, junit):
        _writable(path)
    for file in files:
        if not Path(file).is_file():
            raise UsageError(f"there is no file {file!r}; give the path of a Python file.")
    report = _checked(globs, strict, suite=suite, files=files, data=data, seed=seed, jobs=jobs, fresh=fresh)
    _deliver(report, json_out, junit)
    _keep_witnesses(report, witness_dir, files)
    return report.exit_code


def _checked(globs: Sequence[str], strict: bool, **settings: Any) -> Any:
    import dataclasses
    import warnings

    from verify_rates import pipeline
    from verify_rates.progress import Progress
    from verify_rates.store import StoreWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", StoreWarning)
        with Progress() as progress:
            report = pipeline.check(globs, progress=progress, **settings)
    told = [*report.warnings, *(str(w.message) for w in caught)]
    if not report.results and not report.interrupted and not report.errors:
        wanted = ", ".join(map(repr, globs)) or "what was asked for"
        say(f"verify-rates: no claim matches {wanted}; 'verify-rates list --kind claims' shows all.")
    return dataclasses.replace(report, strict=strict, warnings=told)


def _deliver(report: Any, json_out: str | None, junit: str | None) -> None:
    if json_out == "-":
        click.echo(report.dumps(), nl=False)
    elif len(report):
        _print(report.table())
        click.echo(report.summary())
    for line in report.remarks():
        say(line)
    if report.interrupted:
        say("verify-rates: interrupted; what is finished is kept, and the same command goes on from there.")
    if json_out not in (None, "-"):
        report.save(json_out)
    if junit:
        from verify_rates.junit import save

        save(report, junit)


def _keep_witnesses(report: Any, folder: str | None, files: Sequence[str]) -> None:
    """A refuted claim's witness as a file, and the command that replays it."""
    import json

    from verify_rates.store import cache_folder, write_atomically
    from verify_rates.theory.claims import collect
    from verify_rates.verdicts import Verdict, _plain
    from verify_rates.witness import stored

    owners = {c.id: str(Path(f).resolve()) for f, module in zip(files, _load(files), strict=True) for c in collect(module)}
    for r in report.results:
        if r.verdict is Verdict.REFUTED and r.witness:
            path = (Path(folder) if folder else cache_folder() / "witnesses") / f"{_file_name(r.claim.id)}.json"
            source = owners.get(r.claim.id, "")
            made = stored(r.claim.id, r.witness, source)
            try:
                write_atomically(path, json.dumps(_plain(made), indent=1) + "\n")
            except OSError as e:
                raise UsageError(f"cannot write the witness {str(path)!r}: {e.strerror or e}.") from None
            given = f" --from {source}" if source else ""
            say(f"{r.claim.id} is refuted; replay it with: verify-rates replay {path}{given}")


def _file_name(claim_id: str) -> str:
    import hashlib
    import re

    safe = re.sub(r"[^A-Za-z0-9._-]", "_", claim_id).lstrip(".")
    return safe if safe == claim_id else f"{safe}-{hashlib.sha256(claim_id.encode()).hexdigest()[:8]}"


@main.command()
@click.argument("file")
@FROM
@AS_JSON
def replay(file, files, as_json):
    """Run the witness of a refuted claim again; the claim of a file of yours needs that file by --from.

    Exits with 0 when the violation is reproduced and with 1 when it is not.
    """
    _load(files)
    from verify_rates.witness import replay as again

    found = again(file)
    if as_json:
        _print_json(found.to_json())
    else:
        click.echo(found.sentence)
    return 0 if found.reproduced and found.factor == 1 else 1


# --- list and show ----------------------------------------------------------------------------------------------------


@main.command(name="list")
@click.option(
    "--kind", metavar="KIND", help="methods, claims, papers, compressors, problems, topologies or measures (default: names of all)."
)
@FROM
@AS_JSON
def list_(kind, files, as_json):
    """List what there is."""
    from verify_rates.listing import KINDS, catalogue

    modules = _load(files)
    if kind is not None:
        rows = catalogue(kind, *modules)
        return _print_json(rows) if as_json else _print_rows(rows)
    everything = {name: catalogue(name, *modules) for name in KINDS}
    if as_json:
        return _print_json(everything)
    return _print_rows([{"kind": k, "count": len(rows), "names": ", ".join(r["name"] for r in rows)} for k, rows in everything.items()])


@main.command()
@click.argument("name")
@FROM
@AS_JSON
def show(name, files, as_json):
    """Show a method, claim, paper, compressor, problem, topology or measure.

    Of a method: its fields and words, the readings that apply and why others do not, the claims about it, and its source.
    """
    from verify_rates.listing import show as found

    entries = found(name, *_load(files))
    if as_json:
        return _print_json([e.to_json() for e in entries])
    for e in entries:
        click.echo(f"{e.kind} {e.name}\n\n{e.text}\n")
        told = {f"reading: {k}": f"{'yes' if r.applies else 'no'}; {r.says}" for k, r in e.readings.items()}
        _print_facts(e.facts | told | ({"claims": ", ".join(e.claims)} if e.claims else {}))
        if e.source:
            click.echo(f"\n{e.source.rstrip()}")
    return None


# --- single readings --------------------------------------------------------------------------------------------------


@main.command(name="worst-case")
@click.argument("method")
@PAIRS
@click.option("--steps", type=COUNT, required=True, help="Steps N.")
@click.option("--functions", default="smooth_strongly_convex", show_default=True, help="Class of every worker's function, or smooth.")
@click.option("--L", "L", type=NUMBER, default=1.0, show_default=True, help="Smoothness.")
@click.option("--mu", type=NUMBER, default=0.0, show_default=True, help="Strong convexity (0: convex).")
@click.option("--n", type=WORKERS, default="any", show_default=True, help="Workers; any means every n >= 2 at once.")
@click.option("--delta", type=NUMBER, help="The compressor is contractive: E||C(v)-v||^2 <= (1-delta)||v||^2.")
@click.option("--Delta2", "Delta2", type=NUMBER, help="The compressor is absolute: E||C(v)-v||^2 <= Delta2.")
@click.option("--omega", type=NUMBER, help="The compressor is unbiased: E||C(v)-v||^2 <= omega ||v||^2, one step, workers independent.")
@click.option("--sigma2", type=NUMBER, default=0.0, help="Variance of every worker's gradient, one step, workers independent.")
@click.option("--sampled", type=COUNT, help="Workers that take part in the one step, drawn without replacement (1: one function of a sum).")
@click.option("--compressor", help="In their place the class that a compressor declares in dimension --d, as 'topk(k=10)'.")
@click.option("--d", type=COUNT, help="Dimension, for the constants of --compressor.")
@click.option("--mixing", type=NUMBER, help="Bound on the absolute eigenvalues of the mixing matrix on deviations.")
@click.option(
    "--zeta2-star", type=NUMBER, default=0.0, show_default=True, help="Heterogeneity mean_i ||grad f_i(x*)||^2 (0: common minimiser)."
)
@click.option("--initial", default="distance", show_default=True, help="Measure that is at most 1 at the start.")
@click.option("--measure", default="function_gap", show_default=True, help="Measure that is maximised.")
@click.option("--take", default="last", show_default=True, help="last, best, mean or average_iterate.")
@click.option("--start", default="standard", show_default=True, help="standard, or free: every field of the state is arbitrary.")
@click.option("--solver", default="CLARABEL", show_default=True, help="CLARABEL, or cvxpy:NAME.")
@click.option("--certificate", metavar="FILE", help="Prove the upper end in fractions and write the certificate to this file.")
@FROM
@AS_JSON
def worst_case(method, pairs, delta, Delta2, omega, compressor, certificate, files, as_json, **given):
    """The exact worst case of METHOD over a class of functions, for example: worst-case gd gamma=1/L --steps 5 --L 2.

    Exits with 4 when the solver could not settle it, or no certificate was found.
    """
    from verify_rates.arguments import hyper

    modules = _load(files)
    from verify_rates.theory.worst_case.solve import worst_case as solve

    classes = {k: v for k, v in (("delta", delta), ("Delta2", Delta2), ("omega", omega)) if v is not None}
    if compressor is not None:
        if classes:
            raise UsageError("--compressor takes the place of --delta, --Delta2 and --omega; give either.")
        classes = _class_of(compressor, given["d"])
        delta = classes.get("delta")
    known = {"L": given["L"], "mu": given["mu"], **classes} | ({"eps": 1 - delta} if delta is not None else {})
    known |= {} if given["n"] == "any" else {"n": given["n"]}
    given |= {k: _measure(given[k], modules) for k in ("measure", "initial")}
    _writable(certificate)
    found = solve(method, hyper(pairs, known), compressor=classes or None, **given)
    proved = certificate is None or _certificate(certificate, found, method, hyper(pairs, known), {**given, "compressor": classes or None})
    if as_json:
        _print_json(found.to_dict())
    else:
        click.echo(str(found))
        _print_facts({"solver": f"{found.solver} {found.solver_version}, {found.status}, {found.seconds:.2g} s", **found.statement})
    return 4 if found.status in ("failed", "inaccurate") or not proved else 0


def _certificate(path: str, found: Any, method: str, values: dict[str, Any], given: dict[str, Any]) -> bool:
    """Write a certificate of the upper end; where none is found, one sentence on stderr."""
    from verify_rates.proofs_check.certificates import Refused, certify, write

    if given.pop("mixing") is not None or given.pop("sigma2") or given.pop("sampled") is not None:
        raise UsageError("a certificate does not speak of mixing, noise or sampled workers; leave out --certificate.")
    given.pop("solver")
    try:
        if not math.isfinite(found.upper):
            raise Refused("there is no finite upper end to prove")
        made = certify(method, values, bound=found.upper, **given)
    except Refused as why:
        say(f"no certificate: {why}.")
        return False
    write(made, path)
    say(f"certified: at most {made['rate']}; check it with: verify-rates check-certificate {path}")
    return True


@main.command(name="check-certificate")
@click.argument("file")
@FROM
@AS_JSON
def check_certificate(file, files, as_json):
    """Does FILE prove what it states, of the method that it names?  In fractions, by the independent checker.

    Exits with 0 when it does and with 1 when it does not; --from gives the file of a method or a measure of yours.
    """
    modules = _load(files)
    from verify_rates.proofs_check.certificates import confirm
    from verify_rates.proofs_check.checker import Refused, read

    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the certificate {file!r}: {getattr(error, 'strerror', None) or error}.") from None
    try:
        made = read(text)
        about = made.get("about") if isinstance(made, dict) else None
        own = {k: _measure(about[k], modules) for k in ("measure", "initial")} if isinstance(about, dict) and modules else {}
        accepted, sentence = True, confirm(made, **own)
    except (Refused, KeyError, TypeError) as why:
        accepted, sentence = False, str(why)
    if as_json:
        _print_json({"accepted": accepted, "sentence": sentence})
    else:
        click.echo(f"{'accepted' if accepted else 'refused'}: {sentence}.")
    return 0 if accepted else 1


def _class_of(spec: str, d: int | None) -> dict[str, float]:
    """The constants with which a worst case can be found, of a compressor in dimension d."""
    from verify_rates.solvers.compressors import get_compressor

    compressor = get_compressor(spec)
    if d is None:
        raise UsageError(f"the constants of compressor {compressor.name!r} depend on the dimension; give --d.")
    constants = compressor.constants(d)
    return {k: v for k, v in constants.items() if k in ("delta", "Delta2")} or constants  # those for any number of steps first


SETTING = (
    click.option("--functions", default="smooth_strongly_convex", show_default=True, help="Class of every worker's function."),
    click.option("--L", "L", type=NUMBER, default=1.0, show_default=True, help="Smoothness."),
    click.option("--mu", type=NUMBER, default=0.0, show_default=True, help="Strong convexity."),
    click.option("--n", type=WORKERS, default="any", show_default=True, help="Workers; any means every n >= 2 at once."),
    click.option("--delta", type=NUMBER, help="The compressor is contractive: E||C(v)-v||^2 <= (1-delta)||v||^2."),
    click.option("--mixing", type=NUMBER, help="Bound on the absolute eigenvalues of the mixing matrix on deviations."),
    click.option("--any-minimisers", is_flag=True, help="The workers' minimisers may differ (default: a common one)."),
)


def _setting(command: Any) -> Any:
    """The options that say over which problems a contraction holds."""
    for option in reversed(SETTING):
        command = option(command)
    return command


def _over(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The setting as :func:`contraction` takes it, and the letters that values may use."""
    delta, any_minimisers = given.pop("delta"), given.pop("any_minimisers")
    known = {"L": given["L"], "mu": given["mu"]} | ({"delta": delta, "eps": 1 - delta} if delta is not None else {})
    known |= {} if given["n"] == "any" else {"n": given["n"]}
    more = {"compressor": {"delta": delta} if delta is not None else None, "zeta2_star": None if any_minimisers else 0.0}
    return {**given, **more}, known


@main.command()
@click.argument("method")
@PAIRS
@click.option("--certificate", metavar="FILE", help="With --horizon: prove the bound in fractions and write the chain to this file.")
@click.option("--horizon", type=COUNT, metavar="N", help="Instead: a bound on f(x_N) - f* from N chained potentials, ||x_0 - x*|| <= 1.")
@_setting
@FROM
@AS_JSON
def contraction(method, pairs, horizon, certificate, files, as_json, **given):
    """The best contraction of METHOD per round, with its Lyapunov function, for example: contraction gd gamma=1/L --mu 0.1.

    Exits with 4 when no Lyapunov function (or no chain) was found.
    """
    from verify_rates.arguments import hyper

    _load(files)
    from verify_rates.theory.contraction import contraction as find

    problem, known = _over(given)
    if horizon is not None:
        _writable(certificate)
        return _chained(method, hyper(pairs, known | {"N": horizon}), horizon, problem, certificate, as_json)
    if certificate is not None:
        raise UsageError(
            "--certificate goes with --horizon; that of a contraction is one step of its Lyapunov function (certify in Python)."
        )
    found = find(method, hyper(pairs, known), **problem)
    if as_json:
        _print_json(found.to_dict())
    else:
        click.echo(str(found))
        _print_facts(found.statement | (found.lyapunov.to_dict() if found.lyapunov else {}))
    return 0 if found.ok else 4


def _chained(method: str, values: dict[str, Any], steps: int, problem: dict[str, Any], certificate: str | None, as_json: bool) -> int:
    from verify_rates.theory.potentials import potential

    found = potential(method, values, steps=steps, **problem)
    if as_json:
        _print_json(found.to_dict())
    else:
        click.echo(str(found))
        _print_facts(found.statement)
    proved = certificate is None or _certified_chain(certificate, method, values, steps, problem)
    return 0 if found.ok and proved else 4


def _certified_chain(path: str, method: str, values: dict[str, Any], steps: int, problem: dict[str, Any]) -> bool:
    """Write a certificate of the chain; where none is found, one sentence on stderr."""
    from verify_rates.proofs_check.certificates import Refused, write
    from verify_rates.proofs_check.chains import certify_chain

    try:
        made = certify_chain(method, values, steps=steps, **problem)
    except Refused as why:
        say(f"no certificate: {why}.")
        return False
    write(made, path)
    say(f"certified: at most {made['rate']}; check it with: verify-rates check-certificate {path}")
    return True


@main.command()
@click.argument("method")
@PAIRS
@click.option("--over", "ranges", multiple=True, metavar="NAME[=LOW:HIGH]", default=("gamma",), show_default=True, help="What is chosen.")
@click.option("--by", default="contraction", show_default=True, help="contraction, worst_case or quadratic.")
@click.option("--steps", type=COUNT, help="Steps N, for worst_case.")
@click.option("--measure", help="Measure that is maximised, for worst_case (default: function_gap).")
@click.option("--initial", help="Measure that is at most 1 at the start, for worst_case (default: distance).")
@_setting
@FROM
@AS_JSON
def tune(method, pairs, ranges, by, files, as_json, **given):
    """The step size (and other parameters) with which METHOD is best in the worst case, for example: tune gd --mu 0.1 --over gamma."""
    from verify_rates.arguments import hyper, number

    modules = _load(files)
    from verify_rates.theory.tune import tune as find

    extra = {k: given.pop(k) for k in ("steps", "measure", "initial")}
    problem, known = _over(given)
    if by == "worst_case":
        problem |= {k: _measure(v, modules) if isinstance(v, str) else v for k, v in extra.items() if v is not None}
        if extra["steps"] is None:
            raise UsageError("tuning by worst_case needs --steps.")
    elif unused := [k for k, v in extra.items() if v is not None]:
        raise UsageError(f"--{unused[0]} has no meaning with --by {by}.")
    if by == "quadratic":
        problem = {k: problem[k] for k in ("L", "mu")}
    over = {}
    for text in ranges:
        name, _, ends = text.partition("=")
        over[name] = tuple(number(end, known, f"the range of {name}") for end in ends.split(":")) if ends else None
    found = find(method, hyper(pairs, known), over=over, by=by, **problem)
    if as_json:
        _print_json(found.to_dict())
    else:
        click.echo(str(found))
        if found.best:
            click.echo(str(found.best))
    return 0


def _measure(name: str, modules: Sequence[Any]) -> Any:
    """A function of the user's files by that name, else the name."""
    return next((vars(m)[name] for m in modules if callable(vars(m).get(name))), name)


@main.command()
@click.argument("method")
@PAIRS
@click.option(
    "--problem", help="A problem with options, as 'quadratic(L=1, mu=0.1)' (default: quadratic, or logistic where --data is given)."
)
@click.option("--data", metavar="FILE", help="LIBSVM file, breast_cancer or digits, for a problem on data.")
@click.option("--compressor", help="A compressor with parameters, as 'topk(k=10)'.")
@click.option("--topology", help="A graph for gossip, as ring or 'torus(rows=2)'.")
@click.option("--workers", type=COUNT, help="Number of workers n.")
@click.option("--steps", type=COUNT, required=True, help="Steps T.")
@click.option("--seeds", type=COUNT, default=1, show_default=True, help="Number of independent runs.")
@click.option("--seed", type=NATURAL, default=0, show_default=True, help="Seed that all runs share.")
@click.option("--engine", default="numba", show_default=True, help="numba, numpy or cupy.")
@click.option("--measure", "measures", multiple=True, default=["function_gap"], show_default=True, help="May be given several times.")
@click.option("--every", type=COUNT, help="Steps between two records (default: at most 200 records).")
@click.option("--jobs", type=COUNT, help="Threads (default: all processors).")
@click.option("--plot", metavar="FILE", help="Draw the measures against the steps (png, pdf or svg).")
@FROM
@AS_JSON
def simulate(method, pairs, problem, data, workers, measures, plot, files, as_json, **given):
    """Run METHOD, for example: simulate ef_sgd gamma=1/L --problem logistic:data=digits --compressor topk:5 --steps 500.

    Values may use the problem's constants L, L_max, mu, mu_min and n.
    """
    from verify_rates.arguments import hyper
    from verify_rates.arguments import problem as made

    _writable(plot)
    modules = _load(files)
    from verify_rates.plots import check_format, draw_history
    from verify_rates.solvers.engine.run import simulate as run

    check_format(plot)
    more = {k: v for k, v in (("n", workers), ("data", data)) if v is not None}
    chosen = made(problem or ("logistic" if data else "quadratic"), **more)
    known = chosen.constants._asdict() | {"n": chosen.n}
    letters = {k: v for k, v in known.items() if k in ("L", "L_max", "mu", "mu_min", "n")}
    history = run(method, chosen, hyper(pairs, letters), measures=[_measure(m, modules) for m in measures], **given)
    if plot:
        draw_history(history, plot)
    if as_json:
        _print_json(_history(history))
    else:
        _print_history(history)


RECORDS_SHOWN = 12


def _history(history: Any) -> dict[str, Any]:
    import dataclasses

    return {f.name: getattr(history, f.name) for f in dataclasses.fields(history)}


def _print_history(history: Any) -> None:
    """A few steps of the history: the median over the seeds and its range."""
    import numpy as np

    shown = np.unique(np.linspace(0, len(history.steps) - 1, min(RECORDS_SHOWN, len(history.steps))).round().astype(int))
    rows = []
    for k in shown:
        row = {"step": int(history.steps[k]), "round": f"{history.rounds[k]:g}", "bits sent": f"{history.bits[:, k].mean():.6g}"}
        for name, values in history.values.items():
            at = values[:, k]
            row[name] = f"{np.median(at):.6g}" + (f"  [{at.min():.3g}, {at.max():.3g}]" if len(at) > 1 else "")
        rows.append(row)
    settings = history.settings
    _print_facts({k: settings[k] for k in ("method", "hyper", "problem", "compressor", "topology", "n", "d", "engine") if settings.get(k)})
    _print_rows(rows)
    if history.diverged.any():
        say(f"warning: {int(history.diverged.sum())} of {len(history.diverged)} runs left the finite numbers.")


@main.command()
@click.argument("method")
@PAIRS
@click.option(
    "--compute",
    type=Measured("compute"),
    multiple=True,
    required=True,
    help="Time of one gradient, as 50ms; several: one a worker; profile:FILE; or a distribution, as 'lognormal(mean=50ms, sigma=0.3)'.",
)
@click.option(
    "--latency", type=Measured("latency"), required=True, help="From the end of a transfer to its arrival: 100ms, links:FILE, fit:FILE."
)
@click.option("--bandwidth", type=Measured("bandwidth"), required=True, help="Of the link: 1Gbit/s, links:FILE:PLACE,PLACE, fit:FILE.")
@click.option("--size", type=Measured("size"), required=True, help="One uncompressed vector: 400MB, model:FILE.")
@click.option("--compressor", help="A compressor with parameters, as 'topk(k=1000)'.")
@click.option("--bytes-share", type=NUMBER, help="Share of the bytes that is sent, instead of a compressor.")
@click.option("--encode", default="0s", show_default=True, help="Time of compressing one vector.")
@click.option("--topology", help="A graph for gossip.")
@click.option("--link", default="fifo", show_default=True, help="fifo; blocking: the latency holds the link as well; fair: simulated.")
@click.option("--steps", type=COUNT, help="Steps of which the events are shown in the figure and in JSON.")
@click.option("--plot", metavar="FILE", help="Draw the events (png, pdf or svg).")
@click.option("--html", "page", metavar="FILE", help="The events as an interactive page.")
@click.option("--chrome", metavar="FILE", help="The events as a Chrome trace for Perfetto (.json or .json.gz).")
@click.option("--stragglers", "spread", metavar="SPEC", help="Also with times that vary: 'lognormal(mean=50ms, spread=0.3)', profile:FILE.")
@click.option("--collective", help="What carries out an average among the workers: ring, tree, direct, ... (default: one transfer).")
@click.option("--workers", "n", type=COUNT, help="How many workers there are, for --collective, --stragglers and gossip.")
@FROM
@AS_JSON
@click.option("--expected", is_flag=True, help="Of a method that tosses coins: the seconds of a step to be expected, nothing else.")
def timeline(method, pairs, compute, plot, page, chrome, spread, files, as_json, expected, **given):
    """Time per step of METHOD under latency and bandwidth, and the cycle that sets the pace.

    For example: timeline dd_ef_sgd tau=2 --compute 50ms --latency 100ms --bandwidth 1Gbit/s --size 400MB --bytes-share 0.01
    """
    from verify_rates.arguments import hyper

    for path in (plot, page, chrome):
        _writable(path)
    _load(files)
    from verify_rates.plots import check_format
    from verify_rates.theory.stragglers import varies
    from verify_rates.theory.timeline import timeline as read

    check_format(plot)
    times = list(compute) if len(compute) > 1 else compute[0]
    if expected:
        from verify_rates.theory.timeline.coins import expected_time

        if plot or page or chrome or spread or varies(times) or given.pop("steps") is not None:
            raise UsageError("--expected has no events to show and goes with times that do not vary.")
        mean = expected_time(method, hyper(pairs), compute=times, **given)
        if as_json:
            _print_json(mean._asdict() | {"exact": mean.exact})
        else:
            click.echo(f"{method}: {mean}")
        return
    if varies(times) and (plot or page or chrome or spread):
        raise UsageError("--compute says times that vary already: --stragglers says no more, and there is no one time line to show.")
    found = read(method, hyper(pairs), compute=times, **given)
    for path, write in ((plot, "plot"), (page, "to_html"), (chrome, "to_chrome")):
        if path:
            getattr(found, write)(path)
    more = _stragglers(method, hyper(pairs), spread, given) if spread else None
    if as_json and more:
        import json

        _print_json({**json.loads(found.to_json()), "stragglers": json.loads(more.to_json())})
    elif as_json:
        click.echo(found.to_json(indent=1))
    else:
        click.echo(f"{found}\n{more}" if more else str(found))


def _stragglers(method: str, hyper: Any, spec: str, given: Mapping[str, Any]) -> Any:
    """The same time line with compute times that vary."""
    from verify_rates.theory.measured import read_profile
    from verify_rates.theory.stragglers import stragglers

    kind, _, name = spec.partition(":")
    compute = read_profile(name) if kind == "profile" else spec
    return stragglers(method, hyper, compute=compute, **{k: v for k, v in given.items() if k != "steps"})


@main.command()
@click.argument("file", metavar="FILE")
@PAIRS
@click.option("--latency", default="0s", show_default=True, help="Of all rows where the file has no column for it.")
@click.option(
    "--gaps", default="hold", show_default=True, help="What long intervals are: hold (the values go on), zero (outages) or error."
)
@click.option(
    "--generate", metavar="SPEC", help="Write FILE first: markov(levels=1Mbit/s|9Mbit/s, stay=5s, length=100), periodic, measured_like."
)
@click.option("--method", help="Also the time of this method along the trace, with KEY=VALUE for its hyper-parameters.")
@click.option("--compute", type=Measured("compute"), help="Time of one gradient: 50ms, profile:FILE.")
@click.option("--size", type=Measured("size"), help="One uncompressed vector: 400MB, model:FILE.")
@click.option("--compressor", help="A compressor with parameters, as 'topk(k=1000)'.")
@click.option("--bytes-share", type=NUMBER, help="Share of the bytes that is sent, instead of a compressor.")
@click.option("--topology", help="A graph for gossip.")
@click.option("--steps", type=COUNT, default=100, show_default=True, help="Steps of the method.")
@click.option("--chrome", metavar="FILE", help="The method's events along the trace, for Perfetto (.json or .json.gz).")
@click.option("--html", "page", metavar="FILE", help="The method's events along the trace as an interactive page.")
@click.option("--plot", metavar="FILE", help="Bandwidth and latency over time (png, pdf or svg).")
@FROM
@AS_JSON
def trace(file, pairs, latency, gaps, generate, method, steps, chrome, page, plot, files, as_json, **given):
    """Summary of a bandwidth trace FILE (CSV: time_s,bandwidth_bit_per_s[,latency_s][,until_s]), and the time of a method along it.

    For example: trace lte.csv --latency 50ms --method dd_ef_sgd tau=2 --compute 50ms --size 1MB --bytes-share 0.1
    """
    from verify_rates.arguments import hyper

    for path in (plot, chrome, page, file if generate else None):
        _writable(path)
    if method is None and (pairs or chrome or page or given["compute"] is not None or given["size"] is not None):
        raise UsageError("KEY=VALUE, --compute, --size, --chrome and --html are about a method; name it by --method.")
    _load(files)
    from verify_rates.plots import check_format
    from verify_rates.theory import networks

    check_format(plot)
    if generate:
        networks.write_trace(file, networks.generate(generate))
    read = networks.read_trace(file, latency, gaps=gaps)
    facts = read.summary()
    if plot:
        read.plot(plot)
    run = None
    if method is not None:
        if given["compute"] is None or given["size"] is None:
            raise UsageError("the time of a method needs --compute and --size.")
        run = networks.run_along(method, hyper(pairs), read, steps=steps, **given)
        facts["run"] = run.to_dict()
        for path, write in ((chrome, run.to_chrome), (page, run.to_html)):
            if path:
                write(path)
    if as_json:
        _print_json(facts)
    else:
        click.echo(f"{read}\n{run}" if run else str(read))


@main.command()
@click.argument("method", default="dd_ef_sgd")
@click.option("--compute", type=Measured("slowest"), required=True, help="Time of one gradient: 50ms, profile:FILE (the slowest worker).")
@click.option("--latency", type=Measured("latency"), required=True, help="As 100ms, links:FILE, fit:FILE.")
@click.option("--bandwidth", type=Measured("bandwidth"), required=True, help="As 1Gbit/s, links:FILE:PLACE,PLACE, fit:FILE.")
@click.option("--d", type=Measured("d"), required=True, help="Model size in numbers of 32 bits, or model:FILE.")
@click.option("--target", type=NUMBER, required=True, help="Accuracy to reach, in the claim's measure.")
@click.option("--claim", metavar="ID", help="Whose bound counts the steps (default: the first about METHOD that can).")
@click.option("--problem", help="A problem whose constants the bound takes, as 'logistic(data=breast_cancer, n=4)'.")
@click.option("--letter", "letters", multiple=True, metavar="KEY=VALUE", help="A constant by hand, as L=1; repeat for more.")
@click.option("--compressor", default="topk", show_default=True, help="topk or randk, of which k = delta*d entries are kept.")
@click.option("--plot", metavar="FILE", help="Seconds to accuracy as a picture (PDF or PNG).")
@click.option("--sensitivity", metavar="FILE", help="The best choice over bandwidth and latency: a picture, or the data (.json).")
@FROM
@AS_JSON
def plan(method, claim, problem, letters, plot, sensitivity, files, as_json, **given):
    """Where METHOD provably reaches an accuracy soonest on a network: staleness, local steps and compression, against rules of thumb.

    For example: plan dd_ef_sgd --compute 200ms --latency 1s --bandwidth 100Mbit/s --d 12500000 --target 0.1
    --problem 'logistic(data=breast_cancer, n=10, lam=0.1)'
    """
    from verify_rates.arguments import hyper
    from verify_rates.arguments import problem as made

    data = bool(sensitivity) and sensitivity.endswith(".json")
    for path in (plot, sensitivity):
        _writable(path)
    _load(files)
    from verify_rates.plots import check_format
    from verify_rates.theory.planner import plan as best

    for path in (plot, None if data else sensitivity):
        check_format(path)
    found = best(method, claim=claim, problem=problem and made(problem), letters=hyper(letters), **given)
    if plot:
        found.plot(plot)
    click.echo(found.to_json(indent=1) if as_json else str(found))
    if sensitivity:
        surveyed = found.sensitivity()
        if data:
            Path(sensitivity).write_text(surveyed.to_json(indent=1) + "\n", encoding="utf-8")
        else:
            surveyed.plot(sensitivity)
        click.echo(str(surveyed), err=as_json)


@main.command()
@click.argument("file", metavar="FILE")
@click.option("--plot", metavar="FILE", help="Times against bytes, with the law (png, pdf or svg).")
@AS_JSON
def fit(file, plot, as_json):
    """Latency and bandwidth from a table of bytes and seconds, with standard errors and what speaks against such a law.

    For example: fit pings.csv, a file with the header bytes,seconds. A time line takes it as --latency fit:pings.csv.
    """
    _writable(plot)
    from verify_rates.plots import check_format
    from verify_rates.theory.measured import fit as read

    check_format(plot)
    found = read(file)
    if plot:
        found.plot(plot)
    click.echo(found.to_json(indent=1) if as_json else str(found))


@main.command()
@click.argument("method")
@PAIRS
@click.option("--d", type=COUNT, required=True, help="Dimension.")
@click.option("--n", type=COUNT, required=True, help="Workers.")
@click.option("--compressor", help="A compressor with parameters, as 'topk(k=1000)'.")
@click.option("--topology", help="A graph for gossip.")
@click.option("--dtype-bits", type=COUNT, default=32, show_default=True, help="Bits of one number of a dense vector.")
@FROM
@AS_JSON
def traffic(method, pairs, files, as_json, **given):
    """Exact bits that a worker of METHOD sends and receives, index bits included.

    For example: traffic ef_sgd --d 123 --n 10 --compressor topk:12
    """
    from verify_rates.arguments import hyper

    _load(files)
    from verify_rates.theory.traffic import traffic as read

    found = read(method, hyper(pairs), **given)
    click.echo(found.to_json(indent=1) if as_json else str(found))


@main.command()
@click.argument("kinds", nargs=-1, metavar="[KIND]...")
@click.option("--n", "ns", type=COUNT, multiple=True, help="Workers; repeat for a table.")
@click.option("--size", "sizes", type=Measured("size"), multiple=True, required=True, help="As 400MB, model:FILE; repeat for a table.")
@click.option("--latency", type=Measured("latency"), help="Of a link: 1ms, fit:FILE.")
@click.option("--bandwidth", type=Measured("bandwidth"), help="Of a link, in each direction: 10Gbit/s, fit:FILE.")
@click.option("--links", metavar="FILE[:PLACE,PLACE]", help="A worker at every place of a table of links, instead of alike links.")
@click.option("--link", default="fifo", show_default=True, help="fifo, blocking (the latency holds a side as well), or fair.")
@click.option("--chunks", type=COUNT, help="tree, chain_broadcast: parts that follow one another.")
@click.option("--servers", type=COUNT, help="parameter_server: workers that hold a part each.")
@click.option("--per-node", type=COUNT, help="hierarchical: workers of a node.")
@click.option("--local-latency", help="hierarchical: within a node.")
@click.option("--local-bandwidth", help="hierarchical: within a node.")
@click.option("--topology", help="gossip, pairwise: the graph.")
@click.option("--plot", metavar="FILE", help="The transfers over time, or busbw against size (png, pdf or svg).")
@click.option("--chrome", metavar="FILE", help="The transfers as a Chrome trace for Perfetto (.json or .json.gz).")
@AS_JSON
def collective(kinds, ns, sizes, latency, bandwidth, links, plot, chrome, as_json, **given):
    """Time of collectives (default: a ring all-reduce) from their transfers, with algbw, busbw, and the shares of latency and bandwidth.

    For example: collective ring --n 8 --size 400MB --latency 1ms --bandwidth 10Gbit/s
    """
    for path in (plot, chrome):
        _writable(path)
    from verify_rates.arguments import link_tables
    from verify_rates.plots import check_format
    from verify_rates.theory.timeline import collectives

    check_format(plot)
    chosen = {k: v for k, v in {"latency": latency, "bandwidth": bandwidth, **given}.items() if v is not None}
    tables = link_tables(links) if links else {}
    for name in ("latency", "bandwidth"):
        if name in tables and name in chosen:
            raise UsageError(f"--{name} and --links both say the {name}; give one of them.")
        if name not in tables and name not in chosen:
            raise UsageError(f"give --{name}, or --links with a file that has it.")
    chosen |= tables
    if len(kinds) > 1 or len(ns) > 1 or len(sizes) > 1:
        if chrome:
            raise UsageError("--chrome is about one collective; give one kind, one --n and one --size.")
        counts = ns or ((len(tables["latency"]),) if tables else ())
        found: Any = collectives.collective_table(sizes, counts, kinds or collectives.TABLE_KINDS, **chosen)
    else:
        found = collectives.collective(*kinds, n=ns[0] if ns else None, size=sizes[0], **chosen)
    if plot:
        found.plot(plot)
    if chrome:
        found.to_chrome(chrome)
    click.echo(found.to_json(indent=1) if as_json else str(found))


# --- figures ----------------------------------------------------------------------------------------------------------


@main.command()
@click.option("--out", required=True, metavar="DIR", help="Folder for the figures (PDF, PNG) and their data (JSON).")
@click.option("--only", multiple=True, metavar="NAME", help="error-feedback, time-per-step, time-to-accuracy or methods; may be repeated.")
@click.option("--venue", default="neurips", show_default=True, help="Whose column width and font sizes: neurips, icml, iclr, jmlr, ...")
@click.option("--check", is_flag=True, help="Write nothing; compute the data and compare them with those in DIR.")
@AS_JSON
def figures(out, only, venue, check, as_json):
    """Make the figures, for example: figures --out figures --only time-per-step --venue icml.

    Parameters stand in each file's metadata.  With --check, exits with 1 when the data differ from the stored ones.
    """
    from verify_rates.figure_files import figures as make

    made = make(out, only=only or None, venue=venue, check=check, progress=lambda name: say(f"{name} ..."))
    rows = [{"name": m.name, "files": [str(f) for f in m.files], "difference": m.difference, "caption": m.caption} for m in made]
    if as_json:
        _print_json(rows)
    else:
        for m in made:
            told = f"differs: {m.difference}" if m.difference else ", ".join(map(str, m.files)) or "as stored"
            click.echo(f"{m.name}: {told}")
    return 1 if any(m.difference for m in made) else 0


# --- pages ------------------------------------------------------------------------------------------------------------


@main.command()
@click.option("--out", required=True, metavar="DIR", help="Folder for the pages (Markdown), their figures (PNG) and data (JSON).")
@click.option("--index", metavar="FILE", help="Also the index over all pages, as this file.")
@click.option("--only", multiple=True, metavar="PAPER", help="A paper as in 'list --kind papers'; may be repeated (default: all).")
@click.option("--check", is_flag=True, help="Write nothing; compare texts and data with what is stored.")
@click.option("--suite", type=click.Choice(["quick", "full"]), default="quick", show_default=True, help="How much the claims are checked.")
@click.option("--jobs", type=COUNT, help="Processes at once (default: all processors).")
@AS_JSON
def docs(out, index, only, check, suite, jobs, as_json):
    """Write a page for every paper: its methods, claims, verdicts and witnesses; for example: docs --out pages --only gtopk.

    Kept results of checks are taken.  With --check, exits with 1 when a page differs from the stored one, and names it.
    """
    from verify_rates.pages import write_pages

    options = {"only": only or None, "index": index, "check": check, "suite": suite, "jobs": jobs}
    made = write_pages(out, **options, progress=lambda name: say(f"{name} ..."))
    if as_json:
        _print_json([{"name": m.name, "files": [str(f) for f in m.files], "difference": m.difference} for m in made])
    else:
        for m in made:
            told = f"differs: {m.difference}" if m.difference else ", ".join(map(str, m.files)) or "as stored"
            click.echo(f"{m.name}: {told}")
    return 1 if any(m.difference for m in made) else 0


# --- doctor -----------------------------------------------------------------------------------------------------------


@main.command()
@click.option("--warm", is_flag=True, help="Compile the kernels of every method, so that later runs start quickly.")
@AS_JSON
def doctor(warm, as_json):
    """Say whether everything is there: versions, solvers, data, caches, threads.

    Exits with 1 when something that is required is missing.
    """
    from verify_rates.doctor import examine

    findings = examine(warm)
    if as_json:
        _print_json([f.to_json() for f in findings])
    else:
        _print_rows([f.to_json() for f in findings])
    return 1 if any(f.status == "missing" for f in findings) else 0


if __name__ == "__main__":
    main()
