"""Draws a source's past 24 hours as a strip: a column for each known quarter of an hour, its height for the state."""

from itertools import groupby

from markupsafe import Markup

HEIGHTS = {"g": 12, "p": 8, "f": 4}  # so that the states differ even without colour
CLASSES = {"g": "good", "p": "warn", "f": "bad"}
NAMES = {"g": "good", "p": "partly", "f": "failed", ".": "not asked"}


def draw_strip(day: str) -> Markup:
    """Return the letters of a day (`g`, `p`, `f`, and `.` for unknown) as SVG; unknown quarters stay empty."""
    paths: dict[str, str] = {}
    start = 0
    for letter, run in groupby(day):
        width = len(list(run))
        if letter in HEIGHTS:
            height = HEIGHTS[letter]
            paths[letter] = f"{paths.get(letter, '')}M{start} {12 - height}h{width}v{height}h-{width}z"
        start += width
    drawn = Markup("").join(
        Markup('<path class="{}" d="{}"/>').format(CLASSES[letter], path) for letter, path in paths.items()
    )
    return Markup(
        '<svg class="strip" viewBox="0 0 {} 12" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>'
    ).format(len(day), describe_day(day), drawn)


def describe_day(day: str) -> str:
    """Return how many quarters of an hour had each state."""
    counted = [(NAMES[letter], day.count(letter)) for letter in NAMES]
    return "The past 24 hours in quarters of an hour: " + ", ".join(f"{n} {name}" for name, n in counted if n)


def write_share(share: float | None) -> str:
    """Return a share as a percentage, never rounded up to 100 or down to 0."""
    if share is None:
        return "–"
    if share in (0, 1):
        return f"{share:.0%}"
    return f"{min(max(100 * share, 0.1), 99.9):.1f}%"
