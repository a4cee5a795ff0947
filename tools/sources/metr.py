"""METR's time horizons: how long a task may take people for a model to succeed at it half the time (YAML, no key).

https://metr.org/time-horizons/
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from typing import Any, NamedTuple

from tools.shared.numbers import number, within
from tools.shared.optional import optional
from tools.shared.plain_yaml import tree
from tools.shared.text import NAME, clean
from tools.sources.hosts import other
from toolserver.upstream.source import Get, Keys, Licence, Source

URL = "https://metr.org/assets/benchmark_results_1_1.yaml"
LICENCE = Licence("unclear", "METR", "https://metr.org/time-horizons/")
LEAST_MODELS = 10
LONGEST_MINUTES = 10_000_000


class TimeHorizon(NamedTuple):
    """The length of task, in minutes of an expert's time, at which a model succeeds half the time."""

    model: str
    minutes: float
    released: date | None


def request(query: None, keys: Keys) -> Get:
    return Get(URL, decode="text")


def parse(body: str | None, query: None) -> tuple[TimeHorizon, ...]:
    """Every model that has an estimate."""
    return tuple(_horizons(tree(body or "")["results"]))


def _horizons(results: dict[str, Any]) -> Iterator[TimeHorizon]:
    for model, record in results.items():
        horizon = record["metrics"].get("p50_horizon_length") or {}
        if "estimate" in horizon:
            yield TimeHorizon(
                clean(model, NAME),
                within(number(horizon["estimate"]), 1e-6, LONGEST_MINUTES),
                optional(date.fromisoformat, record.get("release_date")),
            )


def newest(horizons: tuple[TimeHorizon, ...]) -> datetime | None:
    dates = [horizon.released for horizon in horizons if horizon.released]
    return datetime.combine(max(dates), time(), UTC) if dates else None


TIME_HORIZONS = Source(
    "METR.time_horizons",
    request,
    parse,
    licence=LICENCE,
    hosts=other("metr"),
    fresh_s=43200,
    keep_s=2592000,
    timeout_s=20,
    conditional=True,
    newest=newest,
    least=LEAST_MODELS,
    untrusted=True,
)
