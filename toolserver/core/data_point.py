"""A measured number and its time: what tools remember between compositions and what the store keeps of it."""

from datetime import datetime
from typing import NamedTuple


class DataPoint(NamedTuple):
    """One value of a time series. `at` is aware of its time zone."""

    at: datetime
    value: float
