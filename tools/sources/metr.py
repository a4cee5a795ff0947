"""Read METR's time horizons: the length of human task at which a model succeeds half the time (YAML, no key).

https://metr.org/time-horizons/
"""

from datetime import UTC, date, datetime, time
from typing import Any, NamedTuple

from tools.parsing.fields import NAME, clean, number, optional, within
from tools.parsing.yaml import read_yaml
from tools.sources.hosts import DAY, HOUR, other
from toolserver import Get, Licence, Source, read_rows

URL = "https://metr.org/assets/benchmark_results_1_1.yaml"
# The repository METR/eval-analysis-public is under the MIT licence, but lacks this file; the site names no terms.
LICENCE = Licence("unclear", "METR", "https://metr.org/time-horizons/")
LEAST_MODELS = 10
LONGEST_MINUTES = 10_000_000


class TimeHorizon(NamedTuple):
    """The length of task, in minutes of an expert's time, at which a model succeeds half the time."""

    model: str
    minutes: float
    released: date | None


def parse(body: str | None, query: None) -> tuple[TimeHorizon, ...]:
    """Return every model that has an estimate."""
    document = read_yaml(body or "") or {}
    return read_rows((document["results"] or {}).items(), lambda pair: _horizon(*pair))


def _horizon(model: str, record: dict[str, Any]) -> TimeHorizon | None:
    horizon = record["metrics"].get("p50_horizon_length") or {}
    if "estimate" not in horizon:
        return None
    minutes = within(number(horizon["estimate"]), 1e-6, LONGEST_MINUTES)
    return TimeHorizon(clean(model, NAME), minutes, optional(date.fromisoformat, record.get("release_date")))


def newest(horizons: tuple[TimeHorizon, ...]) -> datetime | None:
    dates = [horizon.released for horizon in horizons if horizon.released]
    return datetime.combine(max(dates), time(), UTC) if dates else None


TIME_HORIZONS = Source(
    "METR.time_horizons",
    Get(URL, decode="text"),
    parse,
    licence=LICENCE,
    hosts=other("metr"),
    fresh_s=12 * HOUR,
    ageless="models are measured months apart, and each carries its date",
    keep_s=30 * DAY,
    timeout_s=20,
    conditional=True,
    newest=newest,
    least=LEAST_MODELS,
    untrusted=True,
)
