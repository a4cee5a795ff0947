"""Compare benchmarks of coding agents, and build the views on them. A harness runs a model and affects its score."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from importlib import resources
from typing import Any, NamedTuple

from pydantic import Field

from tools.sources.aider import PolyglotRun
from tools.sources.metr import TimeHorizon
from tools.sources.swebench import Submission
from toolserver import Payload

MINUTES = "minutes of work at 50 % success"
MINI = "mini-SWE-agent"
MOST_TOP, MOST_GAPS = 10, 5
LEAST_BENCHMARKS = 2  # a pair measured once cannot be compared with others
_HARNESS_ENDS = re.compile(r" \+ | \(")
_COPY: Any = json.loads((resources.files("tools.shared") / "data" / "terminal_bench.json").read_text(encoding="utf-8"))


class BenchmarkResult(Payload):
    """`model` is null where the board does not say which; several are joined by +."""

    id: str = Field(description="harness:model", examples=["mini-SWE-agent:gpt-5"])
    harness: str
    model: str | None
    score: float
    reported_at: date | None
    verified: bool | None = Field(description="Whether the board's makers checked it")
    source_url: str | None


class Benchmark(Payload):
    id: str
    name: str
    unit: str
    source_url: str
    licence: str
    as_of: date = Field(description="Day of the newest result; of the copy where results carry other days or none")
    caveat: str
    results: list[BenchmarkResult] = Field(description="Best first")


class ScoreBoard(NamedTuple):
    """A benchmark and its comparable results: the best score of each harness with each single model."""

    shown: Benchmark
    pairs: Mapping[tuple[str, str], float]


class Scored(Payload):
    harness: str
    score: float


class Gap(Payload):
    """The same model, run by two harnesses."""

    benchmark: str
    model: str
    best: Scored
    worst: Scored
    delta: float


class Combined(Payload):
    harness: str
    model: str
    combined_score: float = Field(description="Mean over its benchmarks of percent of the best score")
    benchmarks: int
    coverage: float = Field(description="Share of the benchmarks that count")


class Top(Payload):
    harness: str
    model: str | None
    score: float


class BenchmarkTop(Payload):
    id: str
    name: str
    unit: str
    top: Top


def harness_of(name: str) -> str:
    """Return the harness in the name of a submission: the text before the first " + " or " ("."""
    return _HARNESS_ENDS.split(name, maxsplit=1)[0].strip()


def verified_board(submissions: Iterable[Submission], as_of: date) -> ScoreBoard:
    return _board(
        [_submitted(harness_of(s.name), s) for s in submissions],
        id="swe_bench_verified",
        name="SWE-bench Verified",
        unit="% resolved",
        source_url="https://www.swebench.com",
        licence="CC BY-NC 4.0",
        as_of=as_of,
        caveat="Submitted by the makers of the harnesses; attempts and budgets differ.",
    )


def bash_only(submissions: Iterable[Submission], as_of: date) -> ScoreBoard:
    return _board(
        [_submitted(MINI, s) for s in submissions],
        id="swe_bench_bash_only",
        name="SWE-bench Verified, bash only",
        unit="% resolved",
        source_url="https://www.swebench.com",
        licence="CC BY-NC 4.0",
        as_of=as_of,
        caveat="One harness for every model, run by the board's makers.",
    )


def polyglot(runs: Iterable[PolyglotRun], read_on: date) -> ScoreBoard:
    """Return the board, dated by its newest run: runs are entered months apart, and there may never be another."""
    runs = tuple(runs)
    return _board(
        [_row(f"Aider/{r.edit_format}", (r.model,), r.solved_percent, r.date) for r in runs],
        id="aider_polyglot",
        name="Aider polyglot",
        unit="% solved",
        source_url="https://aider.chat/docs/leaderboards/",
        licence="Apache-2.0",
        as_of=max((run.date for run in runs if run.date), default=read_on),
        caveat="225 exercises in six languages, two tries each.",
    )


def time_horizon(horizons: Iterable[TimeHorizon], as_of: date) -> ScoreBoard:
    return _board(
        [_row("METR", (h.model,), h.minutes, h.released) for h in horizons],
        id="metr_time_horizon",
        name="METR time horizon",
        unit=MINUTES,
        source_url="https://metr.org/time-horizons/",
        licence="not stated",
        as_of=as_of,
        caveat="Wide margins; dates are those of the models' releases. No part of combined scores.",
    )


def terminal_bench() -> ScoreBoard:
    """Return the copy that is shipped: no upstream offers the board as data."""
    rows = ((r["harness"], (r["model"],), r["score"], date.fromisoformat(r["reported_at"])) for r in _COPY["results"])
    return _board(
        [_row(*row) for row in rows],
        id="terminal_bench",
        name=_COPY["name"],
        unit="% of trials solved",
        source_url=_COPY["source_url"],
        licence="Apache-2.0",
        as_of=date.fromisoformat(_COPY["as_of"]),
        caveat="Four entries, a copy that is shipped with this service and renewed with its releases.",
    )


def gaps(boards: Iterable[ScoreBoard]) -> list[Gap]:
    """Return the distance between the best and the worst harness for each model that several harnesses ran on a
    benchmark.
    """
    pairs = [
        Gap(benchmark=board.shown.id, model=model, best=best, worst=worst, delta=round(best.score - worst.score, 2))
        for board in boards
        for model, best, worst in _extremes(board)
    ]
    return sorted(pairs, key=lambda gap: (-gap.delta, gap.benchmark, gap.model))


def _extremes(board: ScoreBoard) -> Iterator[tuple[str, Scored, Scored]]:
    by_model: defaultdict[str, list[Scored]] = defaultdict(list)
    for (harness, model), score in board.pairs.items():
        by_model[model].append(Scored(harness=harness, score=score))
    for model, scored in by_model.items():
        if len(scored) > 1:
            ordered = sorted(scored, key=lambda s: (-s.score, s.harness))
            yield model, ordered[0], ordered[-1]


def combine(boards: Sequence[ScoreBoard]) -> list[Combined]:
    """Return the pairs of harness and model that at least two percentage benchmarks have, best first."""
    counted = [board for board in boards if board.shown.unit != MINUTES]
    shares: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for board in counted:
        best = max(result.score for result in board.shown.results)
        for pair, score in board.pairs.items():
            shares[pair].append(score / best)
    combined = [
        Combined(
            harness=harness,
            model=model,
            combined_score=round(100 * sum(of) / len(of), 1),
            benchmarks=len(of),
            coverage=round(len(of) / len(counted), 2),
        )
        for (harness, model), of in shares.items()
        if len(of) >= LEAST_BENCHMARKS
    ]
    return sorted(combined, key=lambda c: (-c.combined_score, c.harness, c.model))


def tops(boards: Iterable[ScoreBoard]) -> list[BenchmarkTop]:
    """Return the best result of each benchmark."""
    return [
        BenchmarkTop(
            id=board.shown.id,
            name=board.shown.name,
            unit=board.shown.unit,
            top=Top(harness=best.harness, model=best.model, score=best.score),
        )
        for board in boards
        for best in board.shown.results[:1]
    ]


def newest_result(boards: Iterable[ScoreBoard]) -> date | None:
    """Return the latest date that any board gives to a result."""
    return max((r.reported_at for board in boards for r in board.shown.results if r.reported_at), default=None)


class _Row(NamedTuple):
    """A result, and whether a single model achieved it."""

    result: BenchmarkResult
    single: bool


def _submitted(harness: str, s: Submission) -> _Row:
    return _row(harness, s.models, s.resolved_percent, s.date, checked=s.checked, url=s.site)


def _row(
    harness: str,
    models: tuple[str, ...],
    score: float,
    reported_at: date | None,
    *,
    checked: bool | None = None,
    url: str | None = None,
) -> _Row:
    model = "+".join(models) or None
    result = BenchmarkResult(
        id=f"{harness}:{model or 'unknown'}",
        harness=harness,
        model=model,
        score=round(score, 2),
        reported_at=reported_at,
        verified=checked,
        source_url=url,
    )
    return _Row(result, len(models) == 1)


def _board(rows: list[_Row], **facts: Any) -> ScoreBoard:
    ordered = sorted(rows, key=lambda row: -row.result.score)
    pairs: dict[tuple[str, str], float] = {}
    for row in ordered:
        if row.single and row.result.model:
            pairs.setdefault((row.result.harness, row.result.model), row.result.score)
    return ScoreBoard(Benchmark(results=[row.result for row in ordered], **facts), pairs)
