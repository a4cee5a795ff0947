"""Draws what changes on the home page: markets, the map and its news, states of services, and a card for each tool.

The server alone draws it: the page has it when it arrives, and a script exchanges the parts
that have changed for those of the newest fragment. Ages stand in it as times, so that the
fragment is the same until a value changes.
"""

import functools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import anyio
from markupsafe import Markup

from rest_bridge.asgi import ParsedRequest, PlainReply, Scope
from rest_bridge.pages.render import render_text
from rest_bridge.routes import Handler
from rest_bridge.serving import ServedDocument
from toolserver.calls.front_values import FrontPlace, FrontReader, FrontState, FrontValues
from toolserver.clock import Clock
from toolserver.core.models import iso
from toolserver.registry.registry import Operation, Registry, Tier
from toolserver.registry.site_facts import FRONT, HTML, Document, SiteFacts

KEEP_S = 1.0
BEGIN, END = b"<!-- front -->", b"<!-- end of front -->"
GOOD, BAD = {"operational", "ok", "up", "healthy", "none"}, {"major_outage", "critical", "down", "major", "outage"}
AGES = ((timedelta(hours=1), "new"), (timedelta(hours=6), "recent"))


def find_shown(registry: Registry) -> list[Operation]:
    """Return the tools that have a card."""
    return [one for one in registry.listed if one.tier is Tier.FREE and one.headline is not None]


def draw_front(registry: Registry, facts: SiteFacts, values: FrontValues | None) -> Markup:
    """Return the part of the home page that changes; without values, as it stands before the first one is known."""
    cards = {card["tool"]: card for card in values.cards} if values is not None else {}
    shown = find_shown(registry)
    kinds: dict[str, tuple[str, int]] = {}
    for place in values.places if values is not None else ():
        kinds[place.layer.kind] = (place.layer.mark, kinds.get(place.layer.kind, ("", 0))[1] + 1)
    text = render_text(
        "front.html",
        registry=registry,
        facts=facts,
        shown=shown,
        cards=cards,
        values=values,
        kinds=kinds,
        waiting=sum(cards.get(one.name, {}).get("value") is None for one in shown),
        judged=Counter(judge(state) for state in values.states) if values is not None else Counter[str](),
        judge=judge,
        figure=figure,
        moment=moment,
        part_of_note=part_of_note,
        change=change,
        sparkline=sparkline,
        mark=functools.partial(draw_mark, now=values.now if values is not None else None),
        shape=shape,
    )
    return Markup(text)  # nosec B704 # the template escapes every value


def front_handlers(
    registry: Registry, facts: SiteFacts, reader: FrontReader, clock: Clock, home: Callable[[], Document]
) -> dict[str, Handler]:
    """Return the handlers of the home page and of its changing part. `home` writes the page without values."""
    one_at_a_time = anyio.Lock()
    empty = functools.cache(lambda: home().body)
    drawn: list[tuple[float, dict[str, ServedDocument]]] = []

    def write(values: FrontValues) -> dict[str, ServedDocument]:
        front = draw_front(registry, facts, values).encode()
        before, _, rest = empty().partition(BEGIN)
        page = before + front + rest.partition(END)[2] if rest else before  # without any card nothing changes
        bodies = {FRONT: front, "/": page}
        return {path: ServedDocument(Document(body, HTML)) for path, body in bodies.items()}

    async def draw() -> dict[str, ServedDocument]:
        async with one_at_a_time:
            if not drawn or clock.monotonic() - drawn[0][0] >= KEEP_S:
                values = await reader.read()
                served = await anyio.to_thread.run_sync(write, values)
                drawn[:] = [(clock.monotonic(), served)]
        return drawn[0][1]

    def serve(path: str) -> Handler:
        async def handler(scope: Scope, request: ParsedRequest) -> PlainReply:
            return (await draw())[path].reply(request, cache_control=b"no-cache")

        return handler

    return {path: serve(path) for path in ("/", FRONT)}


def figure(value: Any, unit: str = "") -> Markup:
    """Return a figure as it is written in English; the page writes it anew in the reader's language."""
    if value is None:
        return Markup("–")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Markup("<wbr>").join(re.split(r"(?<=_)", str(value)))  # malware_download breaks between its words
    size = abs(value)
    most = 0 if value == int(value) else 2 if size >= 1000 else 4 if size >= 1 else 8
    written = f"{value:,.{most}f}"
    if unit == "$" and 1 <= size < 1e6:
        written = f"{value:,.2f}"
    elif "." in written:
        written = written.rstrip("0").rstrip(".")
    sign, digits = ("-", written[1:]) if written.startswith("-") else ("", written)
    if unit in ("$", "€"):
        return Markup('<data value="{}" data-unit="{}">{}{}{}</data>').format(value, unit, sign, unit, digits)
    if unit == "%":
        return Markup('<data value="{}" data-unit="%">{} %</data>').format(value, written)
    small = Markup(' <span class="unit">{}</span>').format(unit) if unit else ""
    return Markup('<data value="{}" data-of="{}">{}</data>{}').format(value, unit, written, small)


def moment(at: datetime | str | None) -> Markup:
    """Return a time, which the page turns into an age that counts."""
    if at is None:
        return Markup("")
    written = at if isinstance(at, str) else iso(at)
    return Markup('<time data-age datetime="{}" title="{}">{} UTC</time>').format(
        written, written.replace("T", " ").replace("Z", " UTC"), written[11:16]
    )


def part_of_note(part: Any) -> Markup:
    """Return a part of a card's note: figures and times as such, and text as it is."""
    if isinstance(part, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", part):
        return moment(part)
    return figure(part)


def change(percent: float | None) -> Markup:
    """Return a change in percent with its sign and an arrow, so that colour is not all that tells up from down."""
    if percent is None:
        return Markup("")
    kind, arrow, words = ("flat", "→", "unchanged") if percent == 0 else ("rise", "▲", "up")
    if percent < 0:
        kind, arrow, words = "fall", "▼", "down"
    return Markup(
        '<span class="change {}"><span aria-hidden="true">{}</span><span class="unseen">{}</span> {:+.2f} %</span>'
    ).format(kind, arrow, words, percent)


def sparkline(values: Sequence[float | None], words: str) -> Markup:
    """Return a line through numbers as SVG, rising or falling by its colour; nothing for fewer than three."""
    known = [value for value in values if value is not None]
    if len(known) < 3:
        return Markup("")
    low, high = min(known), max(known)
    across = 100 / (len(known) - 1)
    points = (
        f"{round(index * across)} {round(28 - 26 * (value - low) / (high - low), 1) if high > low else 15:g}"
        for index, value in enumerate(known)
    )
    kind = "rise" if known[-1] > known[0] else "fall" if known[-1] < known[0] else "flat"
    path = "M" + "L".join(points)
    label = f"{words}: {len(known)} values from {low:,g} to {high:,g}"
    return Markup(
        '<svg class="spark {}" viewBox="0 0 100 30" preserveAspectRatio="none" role="img" aria-label="{}"'
        ' data-points="{}"><path class="area" d="{}V30H0z"/><path d="{}"/></svg>'
    ).format(kind, label, len(known), path, path)


def shape(mark: str, x: float, y: float, size: float, attributes: Markup | str = "", title: str = "") -> Markup:
    """Return the outline of a mark, with its middle at a point and `size` as its half width."""
    inside = Markup("<title>{}</title>").format(title) if title else ""
    if mark == "circle":
        return Markup('<circle{} cx="{:g}" cy="{:g}" r="{:g}">{}</circle>').format(
            attributes, x, y, round(size, 2), inside
        )
    paths: Mapping[str, str] = {
        "triangle": "M0-1.1 1 .8H-1z",
        "peak": "M-.35-.9H.35L1.1 .9H-1.1z",
        "diamond": "M0-1.2 1.2 0 0 1.2-1.2 0z",
        "square": "M-.9-.9H.9V.9H-.9z",
    }
    return Markup('<path{} transform="translate({:g} {:g}) scale({:g})" d="{}">{}</path>').format(
        attributes, x, y, round(size, 2), paths[mark], inside
    )


def draw_mark(place: FrontPlace, now: datetime | None = None) -> Markup:
    """Return a place on the map. Its size grows with its figure, and it fades with its age."""
    layer = place.layer
    size = 1.6 if place.share is None else 0.8 + 4.4 * place.share**2.2
    age = "old"
    if now is not None and place.at is not None:
        age = next((word for most, word in AGES if abs(now - place.at) <= most), "old")
    value = "" if place.value is None else f"{layer.unit} {place.value:g}" if layer.unit == "M" else ""
    value = value or ("" if place.value is None else f"{place.value:,g} {layer.unit}")
    title = " · ".join(
        filter(None, (layer.kind, value, place.label, f"{place.at:%Y-%m-%d %H:%M} UTC" if place.at is not None else ""))
    )
    attributes = Markup(' class="m {} {}" data-kind="{}"').format(layer.mark, age, layer.kind)
    return shape(layer.mark, round(place.lon, 1), round(-place.lat, 1), size, attributes, title)


def judge(state: FrontState) -> str:
    """Return `good`, `bad` or `warn` for the word of a page of status, `unknown` if the page did not answer."""
    if state.state == "unknown":
        return "unknown"
    return "good" if state.state in GOOD else "bad" if state.state in BAD else "warn"
