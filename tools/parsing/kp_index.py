"""Describe a reading of the planetary K index of geomagnetic activity."""

from datetime import datetime
from typing import NamedTuple


class KpReading(NamedTuple):
    """The planetary K index, 0 to 9 in thirds, of the period that begins at `time`."""

    time: datetime
    kp: float
