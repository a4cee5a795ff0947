"""Draw the pictures of a soak: memory, descriptors and waiting times of callers, each as a line over the run."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 240, 56, 20, 52, 36
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1f2328}.t{font-size:15px;font-weight:600}.u{fill:#59636e}"
    ".l{fill:none;stroke:#0969da;stroke-width:1.5}.a{stroke:#8c959f;stroke-width:1}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.u{fill:#9198a1}.l{stroke:#4493f8}.a{stroke:#6e7681}}"
)
POINTS = 240  # of a line: a picture needs no more
KINDS = (
    ("soak-memory", "Memory of the server", "MB", "memory_mb"),
    ("soak-descriptors", "Open descriptors", "descriptors", "files"),
    ("soak-p99", "99th percentile of cached answers", "ms", "p99_ms"),
)


def thin(values: Sequence[float]) -> list[float]:
    """Reduce the values to at most this number: the greatest of each part."""
    step = max(1, -(-len(values) // POINTS))
    return [max(values[start : start + step]) for start in range(0, len(values), step)]


def draw_line(title: str, unit: str, values: Sequence[float], hours: float) -> str:
    """Draw a picture of values over simulated time."""
    shown = thin(values) or [0.0]
    most = max(shown) * 1.1 or 1.0
    across, up = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    steps = max(1, len(shown) - 1)
    points = " ".join(
        f"{LEFT + across * n / steps:.1f},{TOP + up * (1 - value / most):.1f}" for n, value in enumerate(shown)
    )
    bottom = HEIGHT - BOTTOM
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
        f' role="img" aria-label="{escape(title)}"><style>{STYLE}</style>'
        f'<text class="t" x="12" y="22">{escape(title)}</text>'
        f'<text class="u" x="12" y="41">{escape(unit)}, over {hours:g} simulated hours</text>'
        f'<line class="a" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}"/>'
        f'<text x="{LEFT - 6}" y="{bottom + 4}" text-anchor="end">0</text>'
        f'<text x="{LEFT - 6}" y="{TOP + 5}" text-anchor="end">{most:.3g}</text>'
        f'<text class="u" x="{LEFT}" y="{HEIGHT - 12}">0 h</text>'
        f'<text class="u" x="{WIDTH - RIGHT}" y="{HEIGHT - 12}" text-anchor="end">{hours:g} h</text>'
        f'<polyline class="l" points="{points}"/></svg>\n'
    )


def draw_day(day: dict[str, Any], hours: float = 24) -> dict[str, str]:
    """Return the pictures of a day by file name."""
    return {
        f"{name}.svg": draw_line(title, unit, [sample[key] for sample in day["samples"]], hours)
        for name, title, unit, key in KINDS
    }


def write_day(day: dict[str, Any]) -> Iterator[str]:
    """Write the section about the day."""
    calls = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in day["calls"].items())
    later = day["samples"][len(day["samples"]) // 2 :]
    yield "### A simulated day\n"
    how = f"`python -m bench.soak --minutes {day['minutes']:g} --server {day['server']}`"
    yield (
        f"{how}: {calls} calls and {day['deliveries']:,} webhooks, while upstreams failed in one way after another."
        f" Afterwards the books were compared with all other records, and {day['receipts']:,} receipts were verified."
        f" Errors found: {'; '.join(day['found']) or 'none'}.\n"
    )
    for name, title, unit, key in KINDS:
        values = [sample[key] for sample in later]
        yield f"![{title}, in {unit}](performance/{name}.svg)\n"
        yield f"{title} in the second half: {min(values):.4g} to {max(values):.4g} {unit}.\n"
