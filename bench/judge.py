"""Hold the 26 bars of a fast service and their measurements, and give the verdict: the worst first."""

import importlib
import importlib.util
import os
import statistics
import sys
import time
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.pairs import MOST_SPREAD, Pair, spread_of
from bench.processes import CORES

ROWS = {
    1: "a free cached answer, everything on, against a bare app that sends the same bytes",
    2: "routing and policies in process",
    3: "MCP tools/call against FastMCP",
    4: "MCP tools/call against the SDK's low-level server",
    5: "MCP tools/call against REST",
    6: "a free cached answer against FastAPI with the same policies",
    7: "a paid call against the same call without books",
    8: "a paid call against aiosqlite with a transaction a call",
    9: "the ledger alone, 64 callers",
    10: "the ledger in PostgreSQL, 64 callers",
    11: "1,000 callers at once for an answer that nobody has",
    12: "ten sources of 20 ms composed",
    13: "due webhooks claimed",
    14: "webhooks delivered",
    15: "from the start to the first answer",
    16: "memory of an idle server",
    17: "libraries that an idle server has not loaded",
    18: "a paid call over MCP against REST",
    19: "a paid call with an Idempotency-Key against one without",
    20: "a paid call over REST",
    21: "refusals in process",
    22: "bytes on disk",
    23: "waits for our own pacing",
    24: "metadata against data",
    25: "1,000 connections against 32",
    26: "limits in Redis, and two workers",
}


@dataclass(frozen=True)
class Bar:
    """The measurement of a row, and its bar. `server` is None where the value is the same under each.

    The value is a median of pairs, and `low` to `high` the interval around it; without pairs, it was read or counted
    once. A value that spreads is not judged. `again` is how often it was measured again because it spread.
    """

    row: int
    what: str
    value: float
    bar: float
    unit: str = ""
    at_least: bool = False
    server: str | None = None
    low: float | None = None
    high: float | None = None
    pairs: int = 0
    again: int = 0

    @classmethod
    def of_pair(
        cls,
        pair: Pair,
        row: int,
        bar: float,
        unit: str = "",
        *,
        at_least: bool = False,
        server: str | None = None,
        what: str | None = None,
    ) -> "Bar":
        """Return the bar of a comparison that was measured."""
        found = pair.summarize()
        about = {"low": found.low, "high": found.high, "pairs": found.pairs, "again": found.again}
        return cls(row, what or pair.name, found.median, bar, unit, at_least, server, **about)  # type: ignore[arg-type]

    @property
    def spread(self) -> float:
        """The width of the interval as a share of the value."""
        if self.low is None or self.high is None:
            return 0.0
        return spread_of(self.value, self.low, self.high)

    @property
    def is_judged(self) -> bool:
        return self.spread <= MOST_SPREAD

    @property
    def reached(self) -> float:
        """The degree to which the bar is reached: 1 or more is enough."""
        part, whole = (self.value, self.bar) if self.at_least else (self.bar, self.value)
        return part / whole if whole else float("inf")

    @property
    def is_missed(self) -> bool:
        return self.is_judged and (self.value < self.bar if self.at_least else self.value > self.bar)

    @property
    def is_reached(self) -> bool:
        return self.is_judged and not self.is_missed

    @property
    def note(self) -> str:
        """A remark on the measurement: that it was done again, or that it leads to no verdict."""
        if not self.is_judged:
            return f"still spreads {self.spread:.0%}: no verdict"
        return "measured again" if self.again else ""


@dataclass(frozen=True)
class Line:
    """One line of a table: the median of all halves, and the quartiles."""

    label: str
    value: float
    low: float
    high: float
    group: str = ""

    @classmethod
    def of_values(cls, label: str, values: Sequence[float], group: str = "") -> "Line":
        """Return the line of the figures of all halves, or of one."""
        low, _, high = (
            statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else (*values, 0, *values)
        )
        return cls(label, statistics.median(values), low, high, group)

    @classmethod
    def of_pair(cls, pair: Pair) -> "Line":
        """Return the line of the figures of a comparison."""
        return cls.of_values(pair.name, pair.figures)


@dataclass(frozen=True)
class Table:
    """Figures that belong together. `name` is that of its picture; larger values are better where `more`.

    `others` are the labels of peers.
    """

    name: str
    title: str
    unit: str
    lines: Sequence[Line]
    note: str = ""
    more: bool = False
    others: Sequence[str] = ()


@dataclass
class Verdict:
    """The results of a part, and the parts that failed."""

    bars: list[Bar] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def add(self, other: "Verdict") -> None:
        self.bars += other.bars
        self.tables += other.tables


@dataclass(frozen=True)
class Effort:
    """The extent of the measurement: the requests of one half, the pairs of a comparison, and the seconds of a half of
    what is measured for a time.
    """

    requests: int = 1000
    pairs: int = 20
    servers: tuple[str, ...] = ("hypercorn", "uvicorn")
    seconds: float = 0.1


PARTS: dict[str, frozenset[int]] = {
    "bench.hot_path": frozenset({1, 3, 4, 5}),
    "bench.answers": frozenset({1}),
    "bench.mcp_peers": frozenset({3}),
    "bench.in_process": frozenset({2, 21}),
    "bench.frameworks": frozenset({6}),
    "bench.paid": frozenset({7, 8, 18, 19, 20}),
    "bench.ledger": frozenset({9}),
    "bench.instances": frozenset({10, 26}),
    "bench.misses": frozenset({11}),
    "bench.compose": frozenset({12}),
    "bench.webhooks": frozenset({13, 14}),
    "bench.start": frozenset({15, 16, 17}),
    "bench.disk": frozenset({22}),
    "bench.pacing": frozenset({23}),
    "bench.metadata": frozenset({24}),
    "bench.connections": frozenset({25}),
}
"""Which module measures which rows: its `judge(effort)` returns a `Verdict`. A module that is not there is left out."""


class NotHere(Exception):
    """Something that a part needs is missing on this machine; the text names it."""


def judge_rows(rows: Iterable[int], effort: Effort) -> tuple[Verdict, dict[int, str]]:
    """Measure the parts for these rows. Return the results, and the reasons why other rows were not measured."""
    wanted, found, left_out = set(rows), Verdict(), dict[int, str]()
    for name, measured in PARTS.items():
        if not wanted & measured:
            continue
        why = f"{name} is not there"
        if importlib.util.find_spec(name) is not None:
            begun = time.monotonic()
            print(f"{name} …", file=sys.stderr, flush=True)
            try:
                found.add(importlib.import_module(name).judge(effort))
                print(f"{name} took {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
                continue
            except NotHere as missing:
                why = str(missing)
            except Exception as failure:  # the other parts took minutes: their results are kept
                traceback.print_exc()
                why = f"{name} failed: {type(failure).__name__}"
                found.broken.append(name)
            finally:  # a part that keeps its load off the server's core leaves all cores to the next one
                os.sched_setaffinity(0, CORES)
        left_out |= dict.fromkeys(wanted & measured, why)
    found.bars = [bar for bar in found.bars if bar.row in wanted]
    return found, left_out


def show_table(table: Table) -> None:
    """Print a table."""
    width = max((len(line.label) for line in table.lines), default=0) + 2
    print(f"\n{table.title} [{table.unit}]")
    group = ""
    for line in table.lines:
        if line.group != group:
            group = line.group
            print(f"  {group}")
        spread = "" if line.low == line.high else f"   [{line.low:,.4g}..{line.high:,.4g}]"
        print(f"    {line.label:{width}} {line.value:>12,.4g}{spread}")


def show_verdict(bars: Iterable[Bar], left_out: dict[int, str]) -> bool:
    """Print the rows, the worst first. Return whether all bars are reached."""
    ordered = sorted(bars, key=lambda bar: bar.reached)
    print(f"\n{'row':>3}  {'reached':>7}  {'measured':>10}  {'spread':>6}  {'bar':>9}")
    for bar in ordered:
        sign = ">=" if bar.at_least else "<="
        where = f", {bar.server}" if bar.server else ""
        reached = f"{min(bar.reached, 99.99):7.2f}" if bar.is_judged else f"{'?':>7}"
        spread = f"{bar.spread:6.1%}" if bar.pairs else f"{'-':>6}"
        mark = " ".join(word for word in ("MISSED" if bar.is_missed else "", bar.note) if word)
        unit = f" {bar.unit}" if bar.unit else ""
        bound = f"{sign}{bar.bar:7,.4g}{unit}"
        print(f"{bar.row:3}  {reached}  {bar.value:10,.3g}  {spread}  {bound}  {bar.what}{where} {mark}".rstrip())
    for row, why in sorted(left_out.items()):
        print(f"{row:3}  not measured: {ROWS[row]}: {why}")
    return all(bar.is_reached for bar in ordered)


def as_json(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as JSON, to be saved."""
    return {"bars": [asdict(bar) for bar in verdict.bars], "tables": [asdict(table) for table in verdict.tables]}


def from_json(found: dict[str, Any]) -> Verdict:
    """Return a saved verdict."""
    tables = [Table(**{**table, "lines": [Line(**line) for line in table["lines"]]}) for table in found["tables"]]
    return Verdict([Bar(**bar) for bar in found["bars"]], tables)
