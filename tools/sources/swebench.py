"""Read SWE-bench leaderboards: how many real GitHub issues an agent resolves (JSON, no key, not for commercial use).

https://www.swebench.com
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Any, NamedTuple

from tools.parsing.fields import NAME, clean, number, optional, web_url, within
from tools.sources.hosts import DAY, HOUR, RAW
from toolserver import MIB, Get, Licence, Source, SourceChanged, SourceEmpty, read_rows

URL = "https://raw.githubusercontent.com/SWE-bench/swe-bench.github.io/master/data/leaderboards.json"
LICENCE = Licence("non_commercial", "SWE-bench (CC BY-NC 4.0)", "https://github.com/SWE-bench/swe-bench.github.io")
VERIFIED, BASH_ONLY = "verified", "bash-only"
MODEL = "Model:"


class Submission(NamedTuple):
    """One row. `name` is the name of the submission; `models` are those it states, possibly none."""

    name: str
    models: tuple[str, ...]
    resolved_percent: float
    date: date | None
    checked: bool | None
    site: str | None


class Leaderboards(NamedTuple):
    """The two boards we show."""

    verified: tuple[Submission, ...]
    bash_only: tuple[Submission, ...]


def parse(body: Any, query: None) -> Leaderboards:
    """Return both boards, without the other boards and the details by issue."""
    boards = {str(board["name"]).lower(): board["results"] for board in body["leaderboards"]}
    return Leaderboards(_board(boards, VERIFIED), _board(boards, BASH_ONLY))


def _board(boards: Mapping[str, Any], name: str) -> tuple[Submission, ...]:
    if name not in boards:
        raise SourceChanged(f"no board {name}")
    submissions = read_rows(boards[name], _submission)
    if not submissions:
        raise SourceEmpty(f"board {name}")
    if not any(submission.resolved_percent for submission in submissions):
        raise SourceChanged("every score is 0")
    return submissions


def _submission(row: dict[str, Any]) -> Submission:
    checked, site = row.get("checked"), row.get("site")
    tags = [tag for tag in row.get("tags") or () if isinstance(tag, str)]
    return Submission(
        name=clean(str(row["name"]), NAME),
        models=tuple(clean(tag.removeprefix(MODEL), NAME) for tag in tags if tag.startswith(MODEL)),
        resolved_percent=within(number(row["resolved"]), 0, 100),
        date=optional(date.fromisoformat, row.get("date")),
        checked=checked if isinstance(checked, bool) else None,
        site=web_url(site[0] if isinstance(site, list) and site else site),
    )


def newest(boards: Leaderboards) -> datetime | None:
    dates = [submission.date for board in boards for submission in board if submission.date]
    return datetime.combine(max(dates), time(), UTC) if dates else None


LEADERBOARDS = Source(
    "SWEbench.leaderboards",
    Get(URL),
    parse,
    licence=LICENCE,
    hosts=RAW,
    fresh_s=12 * HOUR,
    ageless="results are entered months apart, and each carries its date",
    keep_s=30 * DAY,
    timeout_s=30,
    max_bytes=24 * MIB,
    conditional=True,
    newest=newest,
    untrusted=True,
)
