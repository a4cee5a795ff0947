"""Defines a measured number with its time, which tools keep between compositions and the store keeps on disk."""

from datetime import datetime
from typing import NamedTuple


class DataPoint(NamedTuple):
    """One value of a time series. `at` has a time zone."""

    at: datetime
    value: float
