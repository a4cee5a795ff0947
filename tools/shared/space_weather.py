"""Name the levels of space weather: storm levels, flare classes, and the bulletins in force."""

import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Literal

from tools.sources.swpc import Bulletin

StormLevel = Literal["quiet", "minor", "moderate", "strong", "severe", "extreme"]
FlareLetter = Literal["A", "B", "C", "M", "X"]

STORMS: tuple[tuple[float, StormLevel], ...] = (
    (9, "extreme"),
    (8, "severe"),
    (7, "strong"),
    (6, "moderate"),
    (5, "minor"),
)
FLARES: tuple[tuple[float, FlareLetter], ...] = ((1e-4, "X"), (1e-5, "M"), (1e-6, "C"), (1e-7, "B"))
LASTING = timedelta(hours=24)  # of a bulletin without an end


def storm_level(kp: float) -> StormLevel:
    """Return the level of a planetary K index."""
    return next((level for least, level in STORMS if kp >= least), "quiet")


def flare_letter(flux_wm2: float) -> FlareLetter:
    """Return the class of a flux in the band from 0.1 to 0.8 nm."""
    return next((letter for least, letter in FLARES if flux_wm2 >= least), "A")


def flare_class(flux_wm2: float) -> str:
    """Return class and tenths, rounded down: C3.4. X is the highest class, so it may have two digits."""
    letter = flare_letter(flux_wm2)
    decade = next((least for least, name in FLARES if name == letter), 1e-8)
    tenths = math.floor(round(flux_wm2 / decade * 10, 6))
    if letter != "X":
        tenths = min(tenths, 99)
    return f"{letter}{tenths / 10:.1f}"


def in_force(bulletins: Iterable[Bulletin], now: datetime) -> list[Bulletin]:
    """Return bulletins that are not cancelled, extended by another one or expired, newest first."""
    bulletins = list(bulletins)
    ended = {(b.code, b.ends) for b in bulletins if b.ends is not None}
    standing = [b for b in bulletins if not b.cancels and (b.code, b.serial) not in ended]
    valid = [b for b in standing if (b.valid_to or b.issued_at + LASTING) >= now]
    return sorted(valid, key=lambda b: b.issued_at, reverse=True)
