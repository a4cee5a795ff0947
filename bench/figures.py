"""`python -m bench.figures [FILE.json] [--soak FILE.json] [--growth FILE.json]`: write the pages of performance.

The figures of `python -m bench --save` become docs/performance/figures.json, those of `python -m bench.soak --save`
docs/performance/soak.json, those of `python -m bench.growth --save` docs/performance/growth.json. Without a new file,
the saved figures are drawn again.
"""

import argparse
import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from bench.growth_figures import draw_growth, write_growth
from bench.judge import ROWS, Bar, Line, Table, from_json
from bench.soak_figures import draw_day, write_day

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE, GROWTH_PAGE, FOLDER = DOCS / "performance.md", DOCS / "growth.md", DOCS / "performance"
KEPT, SOAK, GROWTH = FOLDER / "figures.json", FOLDER / "soak.json", FOLDER / "growth.json"
BEGIN, END = "<!-- figures: written by python -m bench.figures -->", "<!-- end of figures -->"
WIDTH, LEFT, RIGHT, ROW, TOP = 800, 290, 96, 24, 52
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1f2328}.t{font-size:15px;font-weight:600}.u,.g{fill:#59636e}"
    ".g{font-weight:600}.o{fill:#0969da}.p{fill:#8c959f}.w{stroke:#1f2328;stroke-width:1}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.u,.g{fill:#9198a1}.o{fill:#4493f8}.p{fill:#6e7681}"
    ".w{stroke:#e6edf3}}"
)


def shown(value: float) -> str:
    """Format a number with three significant digits."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def draw(table: Table) -> str:
    """Draw a table: a bar for each line, and a thin line between the quartiles, by group."""
    most = max((line.high for line in table.lines), default=1) or 1
    scale = (WIDTH - LEFT - RIGHT) / most
    parts, y = list[str](), TOP
    for group, lines in groupby(table.lines, key=lambda line: line.group):
        if group:
            parts.append(f'<text class="g" x="12" y="{y + 16}">{escape(group)}</text>')
            y += ROW
        for line in lines:
            parts += _draw_line(line, y, scale, is_ours=line.label not in table.others)
            y += ROW
    better = "more is better" if table.more else "less is better"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 12}" viewBox="0 0 {WIDTH} {y + 12}"'
        f' role="img" aria-label="{escape(table.title)}"><style>{STYLE}</style>'
        f'<text class="t" x="12" y="22">{escape(table.title)}</text>'
        f'<text class="u" x="12" y="41">{escape(table.unit)}, {better}</text>'
    )
    return head + "".join(parts) + "</svg>\n"


def _draw_line(line: Line, y: int, scale: float, *, is_ours: bool) -> Iterator[str]:
    middle, end = y + ROW / 2, LEFT + line.value * scale
    yield f'<text x="{LEFT - 10}" y="{middle + 4.5:g}" text-anchor="end">{escape(line.label)}</text>'
    kind = "o" if is_ours else "p"
    yield f'<rect class="{kind}" x="{LEFT}" y="{y + 4}" width="{max(1, line.value * scale):.1f}" height="{ROW - 8}"/>'
    if line.high > line.low:
        low, high = LEFT + line.low * scale, LEFT + line.high * scale
        yield f'<line class="w" x1="{low:.1f}" x2="{high:.1f}" y1="{middle:g}" y2="{middle:g}"/>'
    yield f'<text x="{max(end, LEFT + line.high * scale) + 6:.1f}" y="{middle + 4.5:g}">{shown(line.value)}</text>'


def write_rows(bars: Iterable[Bar], left_out: dict[str, str]) -> Iterator[str]:
    """Write the rows as Markdown, the worst first."""
    yield "| row | what | server | measured | spread | bar | reached |"
    yield "|--:|---|---|--:|--:|--:|---|"
    for bar in sorted(bars, key=lambda bar: bar.reached):
        sign, unit = ("≥" if bar.at_least else "≤"), f" {bar.unit}" if bar.unit else ""
        judged = ("**missed**" if bar.is_missed else "yes") if bar.is_judged else "not judged"
        reached = f"{judged}: {bar.note}" if bar.note else judged
        name = f"{bar.row} | {bar.what} | {bar.server or ''}"
        spread = f"{bar.spread:.1%}" if bar.pairs else ""
        yield f"| {name} | {shown(bar.value)}{unit} | {spread} | {sign} {shown(bar.bar)}{unit} | {reached} |"
    for row, why in sorted(left_out.items(), key=lambda item: int(item[0])):
        yield f"| {row} | {ROWS[int(row)]} | | | | | not measured: {why} |"


def write_table(table: Table) -> Iterator[str]:
    """Write a table as Markdown, under its picture."""
    yield f"### {table.title}\n"
    yield f"![{table.title}, in {table.unit}](performance/{table.name}.svg)\n"
    if table.note:
        yield f"{table.note}\n"
    groups = list(dict.fromkeys(line.group for line in table.lines))
    yield f"| {table.unit} | " + " | ".join(group or "median" for group in groups) + " |"
    yield "|---|" + "--:|" * len(groups)
    found = {(line.label, line.group): line for line in table.lines}
    for label in dict.fromkeys(line.label for line in table.lines):
        yield f"| {label} | " + " | ".join(_cell(found.get((label, group))) for group in groups) + " |"
    yield ""


def _cell(line: Line | None) -> str:
    if line is None:
        return ""
    return shown(line.value) + ("" if line.low == line.high else f" [{shown(line.low)}..{shown(line.high)}]")


def write_remainder(tables: Iterable[Table]) -> Iterator[str]:
    """Write how much a call costs above its floor, with the arithmetic, by server."""
    found = {(t.name, line.group, line.label): line.value for t in tables for line in t.lines}
    sums = (
        ("hot-path-cpu", "REST hit, everything on", "bare app, the REST bytes"),
        ("hot-path-cpu", "MCP, everything on", "bare app, the MCP bytes"),
        ("paid-cpu", "paid call", "free call"),
        ("paid-cpu", "paid call", "the same, unsigned"),
        ("paid-cpu", "paid call", "the same, no fsync"),
        ("paid-cpu", "paid call", "the same, no books"),
        ("paid-cpu", "paid call over MCP", "paid call"),
    )
    rows = [
        f"| {ours} | {server} | {shown(found[name, server, ours])} − {shown(found[name, server, floor])} ({floor})"
        f" | {shown(found[name, server, ours] - found[name, server, floor])} µs |"
        for name, ours, floor in sums
        for server in ("hypercorn", "uvicorn")
        if (name, server, ours) in found and (name, server, floor) in found
    ]
    if rows:
        yield "### What remains\n"
        yield "The extra cost of a call over the call in brackets, in µs of CPU.\n"
        yield "| call | server | arithmetic | more |"
        yield "|---|---|---|--:|"
        yield from rows
        yield ""


Figures = dict[str, Any]


def write_section(kept: Figures, day: Figures | None = None) -> str:
    """Write the section of the page that is made of figures."""
    verdict = from_json(kept)
    versions = ", ".join(f"{name} {number}" for name, number in kept["versions"].items())
    lines = [BEGIN, f"Measured on {kept['at']}, {kept['machine']}, by `{kept['command']}`: {versions}.\n"]
    lines += ["## The rows\n", *write_rows(verdict.bars, kept["left_out"]), "", "## The tables\n"]
    for table in verdict.tables:
        lines += write_table(table)
    lines += write_remainder(verdict.tables)
    return "\n".join([*lines, *(() if day is None else write_day(day)), END])


def write_page(page: str, kept: Figures, day: Figures | None = None) -> str:
    """Replace the figures of the page. Raises ValueError for a page without the marker."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError("the page has no place for figures")
    return before + write_section(kept, day) + after


def pictures(kept: Figures, day: Figures | None = None, growth: Figures | None = None) -> dict[str, str]:
    """Return the pictures by file name."""
    tables = {f"{table.name}.svg": draw(table) for table in from_json(kept).tables}
    return tables | ({} if day is None else draw_day(day)) | ({} if growth is None else draw_growth(growth))


def read(path: Path) -> Figures | None:
    """Return the saved figures, or None where there are none yet."""
    found: Figures | None = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Save the figures of files and draw them. Raises SystemExit where there are none."""
    parser = argparse.ArgumentParser(prog="python -m bench.figures", description=__doc__)
    parser.add_argument("file", type=Path, nargs="?", default=KEPT)
    parser.add_argument("--soak", type=Path, default=SOAK)
    parser.add_argument("--growth", type=Path, default=GROWTH)
    asked = parser.parse_args(arguments)
    FOLDER.mkdir(exist_ok=True)
    for given, kept_in in ((asked.file, KEPT), (asked.soak, SOAK), (asked.growth, GROWTH)):
        if given.resolve() != kept_in.resolve():
            shutil.copyfile(given, kept_in)
    kept, day, growth = read(KEPT), read(SOAK), read(GROWTH)
    if kept is None:
        raise SystemExit("there are no figures: python -m bench --save FILE.json")
    for old in FOLDER.glob("*.svg"):
        old.unlink()
    for name, text in pictures(kept, day, growth).items():
        FOLDER.joinpath(name).write_text(text, encoding="utf-8")
    PAGE.write_text(write_page(PAGE.read_text(encoding="utf-8"), kept, day), encoding="utf-8")
    if growth is not None:
        GROWTH_PAGE.write_text("\n".join(write_growth(growth)), encoding="utf-8")


if __name__ == "__main__":
    main()
