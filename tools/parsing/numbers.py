"""Read numbers strictly and round them to the digits that carry meaning."""

import math
from typing import Any

LARGEST = 1e24  # larger than anything that is measured, counted or paid here
_MISSING = {"", ".", "-", "--", "N/D", "NA", "N/A", "null"}


def number(value: Any) -> float:
    """Return a float within LARGEST from a number or a numeric string. Raises ValueError otherwise (bool is not a
    number).
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"not a number: {value!r:.40}")
    if isinstance(value, str) and not value.isascii():
        raise ValueError(f"not a number: {value!r:.40}")
    if isinstance(value, str) and "_" in value:
        raise ValueError(f"not a number: {value!r:.40}")
    result = float(value)
    if not math.isfinite(result):
        raise ValueError(f"not finite: {value!r:.40}")
    if abs(result) > LARGEST:
        raise ValueError(f"too large: {value!r:.40}")
    return result


def number_or_none(value: Any) -> float | None:
    """Return a finite float, None for null and the usual marks of a missing value. Raises ValueError for the rest."""
    if value is None or (isinstance(value, str) and value.strip() in _MISSING):
        return None
    return number(value)


def positive(value: Any) -> float:
    """Return a finite float above zero. Raises ValueError otherwise."""
    result = number(value)
    if result <= 0:
        raise ValueError(f"not positive: {value!r:.40}")
    return result


def within(value: float, low: float, high: float) -> float:
    """Return the value if low <= value <= high. Raises ValueError otherwise."""
    if not low <= value <= high:
        raise ValueError(f"{value!r} is outside {low}…{high}")
    return value


def significant(value: float, digits: int = 6) -> float:
    """Round a value to a number of significant digits."""
    return float(f"{value:.{digits}g}")


def price(value: float) -> float:
    """Round a price: 2 decimals from 1 upwards, 6 significant digits below."""
    return round(value, 2) if abs(value) >= 1 else significant(value)


def percent(value: float) -> float:
    """Round a percentage to 2 decimals."""
    return round(value, 2) + 0.0  # + 0.0 turns -0.0 into 0.0


def change_percent(new: float, old: float) -> float:
    """Return (new - old) / old in percent, 2 decimals. Raises ZeroDivisionError when old is 0."""
    return percent((new - old) / old * 100)
