"""GET /api/harnesses."""

from datetime import UTC, date
from typing import Annotated, Literal

from anyio import gather
from pydantic import Field, RootModel

from tools.shared.harnesses import (
    MOST_GAPS,
    MOST_TOP,
    Benchmark,
    BenchmarkTop,
    Combined,
    Gap,
    ScoreBoard,
    bash_only,
    combine,
    gaps,
    newest_result,
    polyglot,
    terminal_bench,
    time_horizon,
    tops,
    verified_board,
)
from tools.sources.aider import POLYGLOT, PolyglotRun
from tools.sources.metr import TIME_HORIZONS, TimeHorizon
from tools.sources.swebench import LEADERBOARDS, Leaderboards
from tools.sources.terminal_bench import COPY
from toolserver import Fallback, Payload, SourceNote, Timestamp, ToolContext, tool, up_to, via

SHOWN, MOST = 20, 200
RETRY_S = 600  # when a board is missing

View = Literal["raw", "summary", "gaps", "combined"]


class Freshness(Payload):
    checked_at: Timestamp | None = Field(description="When the oldest of the boards was read")
    newest_result: date | None


class RawView(Payload):
    view: Literal["raw"]
    generated_at: Timestamp
    schema_version: Literal[2]
    benchmarks: list[Benchmark]
    freshness: Freshness


class SummaryView(Payload):
    view: Literal["summary"]
    generated_at: Timestamp
    benchmarks: list[BenchmarkTop]
    top_combined: list[Combined] = Field(max_length=MOST_TOP)
    biggest_gaps: list[Gap] = Field(max_length=MOST_GAPS)
    freshness: Freshness


class GapsView(Payload):
    view: Literal["gaps"]
    generated_at: Timestamp
    gaps: list[Gap] = Field(description="Widest first")


class CombinedView(Payload):
    view: Literal["combined"]
    generated_at: Timestamp
    leaderboard: list[Combined] = Field(description="Best first")


class Harnesses(RootModel[RawView | SummaryView | GapsView | CombinedView]):
    """One of four views on the same boards."""


SWE_BENCH: Fallback[Leaderboards] = via(LEADERBOARDS)
AIDER: Fallback[tuple[PolyglotRun, ...]] = via(POLYGLOT)
METR: Fallback[tuple[TimeHorizon, ...]] = via(TIME_HORIZONS)


@tool(
    path="/api/harnesses",
    title="Coding agent benchmarks",
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
