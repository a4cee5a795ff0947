"""GET /api/harnesses."""

from datetime import UTC, date, datetime, time
from typing import Annotated, Literal

from anyio import gather
from pydantic import Field, RootModel

from tools.shared.harnesses import (
    MOST_GAPS,
    MOST_TOP,
    Benchmark,
    BenchmarkTop,
    Board,
    Combined,
    Gap,
    bash_only,
    combined,
    gaps,
    newest_result,
    polyglot,
    terminal_bench,
    time_horizon,
    tops,
    verified,
)
from tools.sources.aider import POLYGLOT, PolyglotRun
from tools.sources.metr import TIME_HORIZONS, TimeHorizon
from tools.sources.swebench import LEADERBOARDS, Leaderboards
from tools.sources.terminal_bench import COPY
from toolserver.context import Leg, ToolContext, via
from toolserver.notes import SourceNote
from toolserver.payloads import Payload, Timestamp
from toolserver.registry import tool

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


SWE_BENCH: Leg[Leaderboards] = via(LEADERBOARDS)
AIDER: Leg[tuple[PolyglotRun, ...]] = via(POLYGLOT)
METR: Leg[tuple[TimeHorizon, ...]] = via(TIME_HORIZONS)


@tool(
    path="/api/harnesses",
    title="Coding agent benchmarks",
    ttl_s=43200,
    deadline_s=35,  # one board is a document of several megabytes
    sources=(LEADERBOARDS, POLYGLOT, TIME_HORIZONS),
)
async def harnesses(
    ctx: ToolContext,
    view: Annotated[View, Field(description="All results, the best, or two comparisons")] = "raw",
) -> Harnesses:
    """How coding agents score on public benchmarks, by harness (the program) and model: SWE-bench Verified, Aider
    polyglot, METR time horizons, Terminal-Bench. Use it for "which coding agent is best?".

    Shape: `view` is `raw` (every result), `summary` (the best of each), `gaps` (one model in several harnesses) or
    `combined` (pairs that at least two benchmarks have). A board that cannot be read is left out, with a warning.
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
                benchmarks=[board.shown for board in boards],
                freshness=_freshness(ctx, boards),
            )
        )
    if view == "gaps":
        return Harnesses(GapsView(view=view, generated_at=ctx.now, gaps=gaps(boards)))
    if view == "combined":
        return Harnesses(CombinedView(view=view, generated_at=ctx.now, leaderboard=combined(boards)))
    return Harnesses(
        SummaryView(
            view=view,
            generated_at=ctx.now,
            benchmarks=tops(boards),
            top_combined=combined(boards)[:MOST_TOP],
            biggest_gaps=gaps(boards)[:MOST_GAPS],
            freshness=_freshness(ctx, boards),
        )
    )


async def _boards(ctx: ToolContext) -> list[Board]:
    """Every board there is, each with the day of its copy. The shipped one is always there."""
    swe_bench, aider, metr = await gather(
        ctx.section("data.swe_bench", SWE_BENCH),
        ctx.section("data.aider_polyglot", AIDER),
        ctx.section("data.metr_time_horizon", METR),
    )
    boards: list[Board] = []
    if swe_bench is not None:
        day = _read_on(ctx, "data.swe_bench")
        boards += [verified(swe_bench.verified, day), bash_only(swe_bench.bash_only, day)]
    if aider is not None:
        boards.append(polyglot(aider, _read_on(ctx, "data.aider_polyglot")))
    if metr is not None:
        boards.append(time_horizon(metr, _read_on(ctx, "data.metr_time_horizon")))
    if None in (swe_bench, aider, metr):
        ctx.shorten(RETRY_S)
    shipped = terminal_bench()
    copied_at = datetime.combine(shipped.shown.as_of, time(), UTC)
    ctx.notes.add([SourceNote(COPY, "data.terminal_bench", "cached", newest_at=copied_at)])
    return [*boards, shipped]


def _read_on(ctx: ToolContext, section: str) -> date:
    return next(n.fetched_at for n in ctx.notes.used if n.section == section and n.fetched_at).astimezone(UTC).date()


def _freshness(ctx: ToolContext, boards: list[Board]) -> Freshness:
    return Freshness(checked_at=ctx.notes.oldest_fetched_at, newest_result=newest_result(boards))
