"""Pictures of a time line: a Gantt chart with the walk that sets the pace marked, as a figure and as one HTML page without a network."""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from verify_rates.theory.timeline.simulate import Event

if TYPE_CHECKING:
    from verify_rates.theory.timeline.line import TimeLine

TIGHT = 1e-9  # relative: two sums of the same times, in another order, of at most some thousands of terms
# Of unlike lightness, so that they stay apart in grey; with the colour of the text on them.
COLOURS = {"grad": ("#5577bb", "white"), "mean": ("#66c2a5", "black"), "gossip": ("#66c2a5", "black"), "compress": ("#f0e0a0", "black")}
OTHER = ("#d9d9d9", "black")
MARK = "black"


def critical_walk(line: TimeLine) -> list[int]:
    """The events, by their numbers, on one walk along the limiting cycle, in order of time, as far as each starts just when the one before
    lets it; empty where the events shown are too few to have come to that.

    >>> from verify_rates import timeline
    >>> line = timeline("gd", compute=1, latency=2, bandwidth=8, size=4, steps=2)
    >>> [(line.events[i].word, line.events[i].step) for i in critical_walk(line)]
    [('grad', 0), ('mean', 0), ('grad', 1), ('mean', 1)]
    """
    edges, tasks = line.graph.edges(), line.graph.tasks
    into = {edges[e][1]: edges[e] for e in line.graph.pace().edges}
    place = {key: i for i, key in enumerate(_keys([(t.word, *t.stream, t.step) for t in tasks]))}
    period = line.steps_per_round
    where: dict[tuple[int, int], int] = {}
    for number, (key, step) in enumerate(zip(_keys([e[:4] for e in line.events]), (e.step for e in line.events), strict=True)):
        in_period = (*key[:3], step % period, key[4])
        if in_period in place:
            where[place[in_period], step // period] = number
    latest = {task: max((turn for i, turn in where if i == task), default=-1) for task in into}
    walks = [_back(line.events, where, into, task, turn) for task, turn in latest.items() if turn >= 0]
    best = max(walks, key=len, default=[])
    return best[::-1] if len(best) > 1 else []


def _back(events: Sequence[Event], where: dict[tuple[int, int], int], into: dict[int, Any], task: int, turn: int) -> list[int]:
    """From one event back along the cycle, while each event starts just when the one before it lets it."""
    walk = [where[task, turn]]
    while True:
        task, _, seconds, tokens, _ = into[task]
        turn -= tokens
        before = where.get((task, turn))
        if before is None or not _tight(events[before].start, events[walk[-1]].start, seconds):
            return walk
        walk.append(before)


def _keys(parts: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Each with how many alike came before it."""
    so_far: Counter[Any] = Counter()
    keys = []
    for part in parts:
        keys.append((*part, so_far[part]))
        so_far[part] += 1
    return keys


def _tight(start: float, then: float, seconds: float) -> bool:
    return abs(then - start - seconds) <= TIGHT * then


def rows_of(events: Sequence[Event]) -> list[tuple[str, int]]:
    """Streams in the order of the chart."""
    return sorted({(e.stream, e.worker) for e in events})


def figure_of(line: TimeLine, path: str | Path | None = None) -> Any:
    """Gantt chart of a time line with the walk that sets the pace marked; a matplotlib Figure, also written to ``path`` if given."""
    title = f"{line.method}: {line.seconds_per_step:.4g} s per step, limited by {line.limit}"
    return draw(line.events, critical_walk(line), title, path, {"method": line.method, **line.inputs})


def draw(
    events: Sequence[Event], walk: Sequence[int], title: str, path: str | Path | None = None, about: dict[str, Any] | None = None
) -> Any:
    """Gantt chart of events, one row a stream; a matplotlib Figure, also written to ``path`` if given.

    Bars on the walk are hatched and outlined in black, and arrows lead along it; a thin line is latency.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    rows, marks = rows_of(events), set(walk)
    figure = Figure(figsize=(7, 1.3 + 0.45 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for i, e in enumerate(events):
        _bar(axes, e, rows.index((e.stream, e.worker)), i in marks)
    for a, b in pairwise(walk):
        _arrow(axes, rows, events[a], events[b])
    words = dict.fromkeys(e.word for e in events)
    handles = [Patch(facecolor=COLOURS.get(w, OTHER)[0], label=w) for w in words]
    if walk:
        handles.append(Patch(facecolor="white", edgecolor=MARK, hatch="////", label="sets the pace"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=7, frameon=False)
    axes.set_yticks(range(len(rows)), [f"{stream} {worker}" for stream, worker in rows])
    axes.set_xlabel("seconds (numbers are steps; a thin line is latency)")
    axes.set_title(title, fontsize=9)
    if path is not None:
        figure.savefig(path, metadata={"Title": json.dumps(about or {})})
    return figure


def _bar(axes: Any, e: Event, at: int, marked: bool) -> None:
    colour, ink = COLOURS.get(e.word, OTHER)
    style: dict[str, Any] = {"hatch": "////", "edgecolor": MARK, "linewidth": 1.4} if marked else {"edgecolor": "white"}
    axes.broken_barh([(e.start, e.end - e.start)], (at - 0.35, 0.7), facecolors=colour, zorder=3 if marked else 2, **style)
    if e.arrives > e.end:
        axes.plot([e.end, e.arrives], [at, at], color=MARK if marked else colour, linewidth=1)
    box = {"boxstyle": "round,pad=0.1", "facecolor": colour, "edgecolor": "none"} if marked else None
    middle: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 4, "clip_on": True}
    axes.text((e.start + e.end) / 2, at, str(e.step), fontsize=7, color=ink, bbox=box, **middle)


def _arrow(axes: Any, rows: Sequence[tuple[str, int]], a: Event, b: Event) -> None:
    """From one bar of the walk to the next, where they lie in different rows."""
    ends = rows.index((a.stream, a.worker)), rows.index((b.stream, b.worker))
    if ends[0] != ends[1]:
        axes.annotate("", (b.start, ends[1]), (min(a.arrives, b.start), ends[0]), arrowprops={"arrowstyle": "->", "color": MARK}, zorder=5)


# --- one HTML page ----------------------------------------------------------------------------------------------------

ROW, BAR, LEFT, WIDTH = 34, 24, 110, 900  # pixels


class _Bar(NamedTuple):
    event: Event
    row: int
    marked: bool

    def svg(self, unit: float) -> str:
        """With its place for people without scripts; the script reads the data-* and lays everything out anew."""
        e, top = self.event, 8 + self.row * ROW
        colour, ink = COLOURS.get(e.word, OTHER)
        told = f"{e.word}, step {e.step}, {e.stream} {e.worker}: from {e.start:.9g} s to {e.end:.9g} s ({e.end - e.start:.6g} s)"
        told += f", arrives at {e.arrives:.9g} s" if e.arrives > e.end else ""
        told += "; sets the pace" if self.marked else ""
        x, wide, far = LEFT + e.start * unit, (e.end - e.start) * unit, LEFT + e.arrives * unit
        kind, middle = "bar mark" if self.marked else "bar", top + BAR / 2
        lines = f'<line class="fly" x1="{x + wide:.2f}" x2="{far:.2f}" y1="{middle}" y2="{middle}" stroke="{colour}"/>'
        box = f'x="{x:.2f}" y="{top}" width="{wide:.2f}" height="{BAR}"'
        lines += f'<rect class="fill" {box} fill="{colour}"/>' + (f'<rect class="hatch" {box} fill="url(#hatch)"/>' if self.marked else "")
        lines += f'<text x="{x + wide / 2:.2f}" y="{middle + 4}" fill="{ink}">{e.step}</text>'
        data = f'data-start="{float(e.start)!r}" data-end="{float(e.end)!r}" data-arrives="{float(e.arrives)!r}"'
        return f'<g class="{kind}" {data}>{lines}<title>{html.escape(told)}</title></g>'


_STYLE = """body{font:14px/1.4 system-ui,sans-serif;margin:1.5em;max-width:1100px;color:#222}
svg{background:#fff;border:1px solid #ccc;touch-action:none;cursor:grab;display:block}
svg text{font:11px system-ui,sans-serif;text-anchor:middle;pointer-events:none}svg text.name{text-anchor:end}
.bar rect.fill{stroke:#fff}.mark rect.fill{stroke:#000;stroke-width:2}.hatch{pointer-events:none}
.mark .fly{stroke:#000}.mark text{font-weight:bold;paint-order:stroke;stroke:#fff;stroke-width:3px;fill:#000}
.bar:hover rect.fill{filter:brightness(1.25)}table{border-collapse:collapse}th{text-align:left;padding-right:1em;vertical-align:top}
#told{min-height:1.5em}.key{display:inline-block;width:1em;height:1em;margin:0 .3em 0 1em;vertical-align:-.15em}"""

_SCRIPT = """'use strict';
const svg = document.querySelector('svg'), told = document.getElementById('told'), bars = [...svg.querySelectorAll('.bar')];
const left = +svg.dataset.left, width = +svg.dataset.width, total = +svg.dataset.total;
let from = 0, to = total;
const x = t => left + (t - from) / (to - from) * width;
function set(node, values) { for (const k in values) node.setAttribute(k, values[k]); }
function draw() {
  for (const bar of bars) {
    const d = bar.dataset, a = x(+d.start), b = x(+d.end), wide = Math.max(0, b - a);
    for (const r of bar.querySelectorAll('rect')) set(r, {x: a, width: wide});
    set(bar.querySelector('.fly'), {x1: b, x2: x(+d.arrives)});
    const text = bar.querySelector('text');
    set(text, {x: (a + b) / 2}); text.style.display = wide < 8 * text.textContent.length ? 'none' : '';
  }
  const ticks = [...svg.querySelectorAll('.tick')];
  ticks.forEach((g, i) => {
    const t = from + (to - from) * i / (ticks.length - 1), at = x(t);
    set(g.querySelector('line'), {x1: at, x2: at}); set(g.querySelector('text'), {x: at});
    g.querySelector('text').textContent = Number(t.toPrecision(5)) + ' s';
  });
}
function clamp(a, b) { const w = Math.min(b - a, total); from = Math.max(0, Math.min(a, total - w)); to = from + w; draw(); }
function time(e) { const r = svg.getBoundingClientRect(); return from + (e.clientX - r.left - left) / width * (to - from); }
svg.addEventListener('wheel', e => {
  e.preventDefault();
  const t = time(e), f = Math.exp(e.deltaY / 400), w = Math.min(total, Math.max(total * 1e-6, (to - from) * f));
  const share = (t - from) / (to - from); clamp(t - share * w, t - share * w + w);
}, {passive: false});
let held = null;
svg.addEventListener('pointerdown', e => { held = time(e); svg.setPointerCapture(e.pointerId); });
svg.addEventListener('pointermove', e => { if (held !== null) { const d = held - time(e); clamp(from + d, to + d); } });
svg.addEventListener('pointerup', () => { held = null; });
svg.addEventListener('dblclick', () => clamp(0, total));
for (const bar of bars) bar.addEventListener('pointerenter', () => { told.textContent = bar.querySelector('title').textContent; });
draw();"""


def page_of(line: TimeLine) -> str:
    """The Gantt chart of a time line as one self-contained HTML page, with its facts.

    >>> from verify_rates import timeline
    >>> made = page_of(timeline("gd", compute=1, latency=2, bandwidth=8, size=4, steps=2))
    >>> made.count('class="bar mark"'), "http" in made
    (4, False)
    """
    title = f"{line.method}: {line.seconds_per_step:.6g} s per step, limited by {line.limit}"
    return page(line.events, critical_walk(line), title, "walk along the cycle that sets the pace", line._repr_html_())


def page(events: Sequence[Event], walk: Sequence[int], title: str, marked: str, facts: str = "") -> str:
    """A Gantt chart as one self-contained HTML page: wheel to zoom, drag to move, double click for all, hover for an event's times.

    Parameters
    ----------
    walk : numbers of the events to mark; ``marked`` says in words what they are.
    facts : HTML below the chart.
    """
    rows, marks = rows_of(events), set(walk)
    total = float(max((e.arrives for e in events), default=0.0)) or 1.0
    unit, height = WIDTH / total, 8 + len(rows) * ROW
    bars = [_Bar(e, rows.index((e.stream, e.worker)), i in marks) for i, e in enumerate(events)]
    bars.sort(key=lambda bar: bar.marked)  # the marked ones on top
    names = "".join(
        f'<text class="name" x="{LEFT - 8}" y="{8 + i * ROW + BAR / 2 + 4}">{html.escape(s)} {w}</text>' for i, (s, w) in enumerate(rows)
    )
    ticks = "".join(
        f'<g class="tick"><line x1="{x}" x2="{x}" y1="0" y2="{height}" stroke="#ddd"/>'
        f'<text x="{x}" y="{height + 14}">{total * k / 6:.5g} s</text></g>'
        for k, x in ((k, LEFT + WIDTH * k / 6) for k in range(7))
    )
    hatch = '<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    hatch += '<line x1="0" y1="0" x2="0" y2="6" stroke="#fff" stroke-width="2" stroke-opacity=".7"/></pattern>'
    clip = f'<clipPath id="inside"><rect x="{LEFT}" y="0" width="{WIDTH}" height="{height}"/></clipPath>'
    box = f'width="{LEFT + WIDTH + 40}" height="{height + 24}" data-left="{LEFT}" data-width="{WIDTH}" data-total="{total!r}"'
    drawn = f'<g clip-path="url(#inside)">{"".join(bar.svg(unit) for bar in bars)}</g>'
    words = dict.fromkeys(e.word for e in events)
    key = "".join(f'<span class="key" style="background:{COLOURS.get(w, OTHER)[0]}"></span>{html.escape(w)}' for w in words)
    name, told = html.escape(title), f"Wheel: zoom. Drag: move. Double click: all. Hatched with a black outline: one {marked}."
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title><style>{_STYLE}</style></head>\n'
        f"<body><h1>{name}</h1><p>{told}</p><p>{key}</p>\n<svg {box}><defs>{hatch}{clip}</defs>{ticks}{names}{drawn}</svg>\n"
        f'<p id="told"></p>\n{facts}\n<script>{_SCRIPT}</script></body></html>\n'
    )
