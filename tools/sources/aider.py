"""Read Aider's polyglot leaderboard: how many coding exercises a model solves in two tries (YAML, no key, Apache-2.0).

https://aider.chat/docs/leaderboards/
"""

from datetime import UTC, date, datetime, time
from typing import NamedTuple

from tools.parsing.fields import NAME, clean, number, optional, within
from tools.parsing.yaml import read_yaml, split_items
from tools.sources.hosts import DAY, HOUR, RAW
from toolserver import Get, Licence, Source, SourceChanged, read_rows

URL = "https://raw.githubusercontent.com/Aider-AI/aider/main/aider/website/_data/polyglot_leaderboard.yml"
LICENCE = Licence("attribution", "Aider polyglot leaderboard (Apache-2.0)", "https://github.com/Aider-AI/aider")
LEAST_ROWS = 20


class PolyglotRun(NamedTuple):
    """One run of the benchmark; `edit_format` is how the model was asked to write its changes."""

    model: str
    edit_format: str
    solved_percent: float
    date: date | None


def parse(body: str | None, query: None) -> tuple[PolyglotRun, ...]:
    """Return every run that has a score."""
    runs = read_rows(split_items(body or ""), _run)
    if runs and not any(run.solved_percent for run in runs):
        raise SourceChanged("every score is 0")
    return runs


def _run(item: str) -> PolyglotRun | None:
    [row] = read_yaml(item)
    if not row.get("pass_rate_2"):
        return None
    return PolyglotRun(
        model=clean(row["model"], NAME),
        edit_format=clean(row["edit_format"], 40),
        solved_percent=within(number(row["pass_rate_2"]), 0, 100),
        date=optional(date.fromisoformat, row.get("date")),
    )


def newest(runs: tuple[PolyglotRun, ...]) -> datetime | None:
    dates = [run.date for run in runs if run.date]
    return datetime.combine(max(dates), time(), UTC) if dates else None


POLYGLOT = Source(
    "Aider.polyglot_leaderboard",
    Get(URL, decode="text"),
    parse,
    licence=LICENCE,
    hosts=RAW,
    fresh_s=12 * HOUR,
    ageless="results are entered months apart and may end for good; answers carry the newest date",
    keep_s=30 * DAY,
    timeout_s=20,
    conditional=True,
    newest=newest,
    least=LEAST_ROWS,
    untrusted=True,
)
