"""Draw what a call costs while the data grow: a picture with two logarithmic scales for each thing that grows."""

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, PANEL = 800, 300, 56, 62, 40, 320
GAP = WIDTH - LEFT - 2 * PANEL - 24
PANELS = (("cpu_us", "µs of CPU"), ("p99_ms", "ms, 99th percentile"))
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1f2328}.t{font-size:15px;font-weight:600}.u{fill:#59636e}"
    "polyline{fill:none;stroke-width:2}.free{stroke:#0969da}.paid{stroke:#bc4c00}.a{stroke:#d1d9e0;stroke-width:1}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.u{fill:#9198a1}.free{stroke:#4493f8}.paid{stroke:#db6d28}"
    ".a{stroke:#3d444d}}"
)
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def draw_growth(growth: dict[str, Any]) -> dict[str, str]:
    """Return the pictures by file name."""
    return {f"growth-{name}.svg": draw_axis(axis) for name, axis in growth.items()}


def draw_axis(axis: dict[str, Any]) -> str:
    """Draw one thing that grows: CPU at the left, waiting at the right, a line each for the free and the paid call."""
    title = f"A call with more and more {axis['what']}"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
        f' role="img" aria-label="{escape(title)}"><style>{STYLE}</style>'
        f'<text class="t" x="12" y="22">{escape(title)}</text>'
    )
    panels = (
        "".join(_draw_panel(axis, figure, unit, LEFT + number * (PANEL + GAP)))
        for number, (figure, unit) in enumerate(PANELS)
    )
    return head + "".join(panels) + "</svg>\n"


def _draw_panel(axis: dict[str, Any], figure: str, unit: str, left: int) -> Iterator[str]:
    sizes, lines = axis["sizes"], {name: axis[f"{name}_{figure}"] for name in ("free", "paid")}
    values = [value for line in lines.values() for value in line]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    first, last = math.log10(sizes[0]), math.log10(sizes[-1])
    bottom = HEIGHT - BOTTOM

    def x(size: float) -> float:
        return left + PANEL * (math.log10(size) - first) / ((last - first) or 1)

    def y(value: float) -> float:
        return bottom - (bottom - TOP) * (math.log10(value) - low) / ((high - low) or 1)

    yield f'<text class="u" x="{left}" y="44">{escape(unit)}</text>'
    for power in range(low, high + 1):
        at = y(10.0**power)
        yield f'<line class="a" x1="{left}" x2="{left + PANEL}" y1="{at:.1f}" y2="{at:.1f}"/>'
        yield f'<text class="u" x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{_power(power)}</text>'
    for size in sizes:
        power = _power(round(math.log10(size)))
        yield f'<text class="u" x="{x(size):.1f}" y="{bottom + 22}" text-anchor="middle">{power}</text>'
    for name, line in lines.items():
        points = " ".join(f"{x(size):.1f},{y(value):.1f}" for size, value in zip(sizes, line, strict=True))
        yield f'<polyline class="{name}" points="{points}"/>'
        yield f'<text x="{left + 8}" y="{y(line[0]) - 7:.1f}">{name}</text>'


def _power(number: int) -> str:
    return "10" + str(number).translate(_RAISED)


def write_growth(growth: dict[str, Any]) -> Iterator[str]:
    """Write the page about growth."""
    yield "# While the data grow\n"
    yield "Whether a call costs more as the service keeps more. [Performance](performance.md) has what it costs.\n"
    yield (
        "`python -m bench.growth --long`: the same cached call, free and paid, on services in one process that are"
        " measured in turn, with 16 callers. Both scales are logarithmic. The waits include the disk's commits and what"
        " else the machine does.\n"
    )
    for name, axis in growth.items():
        yield f"![A call with more and more {axis['what']}](performance/growth-{name}.svg)\n"
        yield f"| {axis['what']} | {' | '.join(f'{size:,}' for size in axis['sizes'])} | last / first |"
        yield f"|---|{'--:|' * (len(axis['sizes']) + 1)}"
        for kind in ("free", "paid"):
            for figure, unit in PANELS:
                yield _write_row(f"{kind}, {unit}", axis[f"{kind}_{figure}"])
        yield ""


def _write_row(label: str, values: Sequence[float]) -> str:
    return f"| {label} | {' | '.join(f'{value:.3g}' for value in values)} | {values[-1] / values[0]:.2f} |"
