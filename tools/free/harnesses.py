"""GET /api/harnesses: benchmarks of coding agents, and views on them. A harness runs a model and affects its score."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date
from importlib import resources
from typing import Annotated, Any, Literal, NamedTuple

from anyio import gather
from pydantic import ConfigDict, Field, RootModel

from tools.sources.aider import POLYGLOT, PolyglotRun
from tools.sources.metr import TIME_HORIZONS, TimeHorizon
from tools.sources.swebench import LEADERBOARDS, Leaderboards, Submission
from tools.sources.terminal_bench import COPY
from toolserver import Fallback, Payload, SourceNote, Timestamp, ToolContext, tool, up_to, via

MINUTES = "minutes of work at 50 % success"
MINI = "mini-SWE-agent"
MOST_TOP, MOST_GAPS = 10, 5
LEAST_BENCHMARKS = 2  # a pair measured once cannot be compared with others
_HARNESS_ENDS = re.compile(r" \+ | \(")
_COPY: Any = json.loads((resources.files("tools.shared") / "data" / "terminal_bench.json").read_text(encoding="utf-8"))


class BenchmarkResult(Payload):
    """`model` is null where the board does not say which; several are joined by +."""

    id: str = Field(description="harness:model", examples=["mini-SWE-agent:gpt-5"])
    harness: str = Field(description="Program that runs the model")
    model: str | None = Field(description="Model, or several joined by +; null: the board does not name it")
    score: float = Field(description="Score in the unit of the benchmark")
    reported_at: date | None = Field(description="Date of the result, at METR of the model's release; null: not given")
    verified: bool | None = Field(description="Whether the board's makers checked it; null: the board does not say")
    source_url: str | None = Field(description="Page of the submission; null: none")


class Benchmark(Payload):
    id: str = Field(description="Short name of the benchmark")
    name: str = Field(description="Name of the benchmark")
    unit: str = Field(description="Unit of the scores")
    source_url: str = Field(description="Site of the board")
    licence: str = Field(description="Licence of the board's data")
    as_of: date = Field(description="Day of the newest result; of the copy where results carry other days or none")
    caveat: str = Field(description="What to bear in mind when reading its scores")
    results: list[BenchmarkResult] = Field(description="Best first")


class ScoreBoard(NamedTuple):
    """A benchmark and its comparable results: the best score of each harness with each single model."""

    shown: Benchmark
    pairs: Mapping[tuple[str, str], float]


class Scored(Payload):
    harness: str = Field(description="Program that ran the model")
    score: float = Field(description="Score in the unit of the benchmark")


class Gap(Payload):
    """The same model, run by two harnesses."""

    benchmark: str = Field(description="Short name of the benchmark")
    model: str = Field(description="Model that both harnesses ran")
    best: Scored = Field(description="Harness with the highest score")
    worst: Scored = Field(description="Harness with the lowest score")
    delta: float = Field(description="Score of the best less that of the worst, in the unit of the benchmark")


class Combined(Payload):
    harness: str = Field(description="Program that runs the model")
    model: str = Field(description="Model")
    combined_score: float = Field(description="Mean over its benchmarks of the percentage of the best score there")
    benchmarks: int = Field(description="Benchmarks that have this pair, at least two")
    coverage: float = Field(description="Share of all benchmarks that have this pair, 0-1")


class Top(Payload):
    harness: str = Field(description="Program that ran the model")
    model: str | None = Field(description="Model, or several joined by +; null: the board does not name it")
    score: float = Field(description="Score in the unit of the benchmark")


class BenchmarkTop(Payload):
    id: str = Field(description="Short name of the benchmark")
    name: str = Field(description="Name of the benchmark")
    unit: str = Field(description="Unit of the score")
    top: Top = Field(description="Best result")


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


SHOWN, MOST = 20, 200
RETRY_S = 600  # when a board is missing

View = Literal["raw", "summary", "gaps", "combined"]


class Freshness(Payload):
    checked_at: Timestamp | None = Field(description="When the oldest of the boards was read; null: none was")
    newest_result: date | None = Field(description="Latest date of any result; null: no result has one")


class RawView(Payload):
    view: Literal["raw"] = Field(description="All results by board")
    generated_at: Timestamp = Field(description="When this answer was composed")
    schema_version: Literal[2] = Field(description="Version of the layout of this view")
    benchmarks: list[Benchmark] = Field(description="One board each, those that could be read")
    freshness: Freshness = Field(description="How old the boards are")


class SummaryView(Payload):
    view: Literal["summary"] = Field(description="The best of each board, and two comparisons")
    generated_at: Timestamp = Field(description="When this answer was composed")
    benchmarks: list[BenchmarkTop] = Field(description="The best result of each board")
    top_combined: list[Combined] = Field(
        max_length=MOST_TOP, description="Best pairs of harness and model over several boards"
    )
    biggest_gaps: list[Gap] = Field(
        max_length=MOST_GAPS, description="Widest differences between harnesses with one model"
    )
    freshness: Freshness = Field(description="How old the boards are")


class GapsView(Payload):
    view: Literal["gaps"] = Field(description="One model in several harnesses")
    generated_at: Timestamp = Field(description="When this answer was composed")
    gaps: list[Gap] = Field(description="Widest first")


class CombinedView(Payload):
    view: Literal["combined"] = Field(description="Pairs of harness and model over several boards")
    generated_at: Timestamp = Field(description="When this answer was composed")
    leaderboard: list[Combined] = Field(description="Best first")


class Harnesses(RootModel[RawView | SummaryView | GapsView | CombinedView]):
    """One of four views on the same boards."""

    model_config = ConfigDict(frozen=True, defer_build=True)


SWE_BENCH: Fallback[Leaderboards] = via(LEADERBOARDS)
AIDER: Fallback[tuple[PolyglotRun, ...]] = via(POLYGLOT)
METR: Fallback[tuple[TimeHorizon, ...]] = via(TIME_HORIZONS)


@tool(
    path="/api/harnesses",
    title="Coding agent benchmarks",
    search_hint="best AI coding assistant agent which does SWE-bench benchmark leaderboard score",
    ttl_s=43200,
    deadline_s=35,  # one board is a document of several megabytes
    sources=(LEADERBOARDS, POLYGLOT, TIME_HORIZONS),
    shipped=(COPY,),
)
async def harnesses(
    ctx: ToolContext,
    view: Annotated[View, Field(description="All results, the best, or two comparisons")] = "raw",
    limit: Annotated[int, up_to(MOST)] = SHOWN,
) -> Harnesses:
    """How coding agents score on public benchmarks, by harness (the program) and model: SWE-bench Verified, Aider
    polyglot, METR time horizons, Terminal-Bench. Use it for "which coding agent is best?".

    Shape: `view` is `raw` (the best results of each board, 20 unless `limit` says otherwise), `summary` (the best of
    each), `gaps` (one model in several harnesses) or `combined` (pairs that at least two benchmarks have). A board that
    cannot be read is left out, with a warning.
    Units: percent, or minutes for METR; see `unit`. Scores of different boards are not comparable as they are.
    Source: the boards' own files, read twice a day; Terminal-Bench is a copy of the day in its `as_of`.
    """
    boards = await _boards(ctx)
    if view == "raw":
        return Harnesses(
            RawView(
                view=view,
                generated_at=ctx.now,
                schema_version=2,
                benchmarks=[_cut(ctx, board.shown, limit) for board in boards],
                freshness=_freshness(ctx, boards),
            )
        )
    if view == "gaps":
        return Harnesses(GapsView(view=view, generated_at=ctx.now, gaps=ctx.page(gaps(boards), limit, "data.gaps")))
    if view == "combined":
        return Harnesses(
            CombinedView(
                view=view, generated_at=ctx.now, leaderboard=ctx.page(combine(boards), limit, "data.leaderboard")
            )
        )
    return Harnesses(
        SummaryView(
            view=view,
            generated_at=ctx.now,
            benchmarks=tops(boards),
            top_combined=combine(boards)[:MOST_TOP],
            biggest_gaps=gaps(boards)[:MOST_GAPS],
            freshness=_freshness(ctx, boards),
        )
    )


def _cut(ctx: ToolContext, board: Benchmark, limit: int) -> Benchmark:
    """Return a board with its best results."""
    return board.model_copy(update={"results": ctx.page(board.results, limit, f"data.benchmarks.{board.id}")})


async def _boards(ctx: ToolContext) -> list[ScoreBoard]:
    """Return every available board, each with the day of its copy. The shipped one is always included."""
    swe_bench, aider, metr = await gather(
        ctx.section("data.swe_bench", SWE_BENCH),
        ctx.section("data.aider_polyglot", AIDER),
        ctx.section("data.metr_time_horizon", METR),
    )
    boards: list[ScoreBoard] = []
    if swe_bench is not None:
        day = _read_on(ctx, "data.swe_bench")
        boards += [verified_board(swe_bench.verified, day), bash_only(swe_bench.bash_only, day)]
    if aider is not None:
        boards.append(polyglot(aider, _read_on(ctx, "data.aider_polyglot")))
    if metr is not None:
        boards.append(time_horizon(metr, _read_on(ctx, "data.metr_time_horizon")))
    if None in (swe_bench, aider, metr):
        ctx.shorten(RETRY_S)
    shipped = terminal_bench()
    ctx.notes.add([SourceNote(COPY, "data.terminal_bench", "cached")])
    return [*boards, shipped]


def _read_on(ctx: ToolContext, section: str) -> date:
    return next(n.fetched_at for n in ctx.notes.used if n.section == section and n.fetched_at).astimezone(UTC).date()


def _freshness(ctx: ToolContext, boards: list[ScoreBoard]) -> Freshness:
    return Freshness(checked_at=ctx.notes.oldest_fetched_at, newest_result=newest_result(boards))
