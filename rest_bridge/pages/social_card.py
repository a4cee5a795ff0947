"""Draws the pictures that previews of links show: what a tool is, and its newest kept value with its age and source.

A request never draws. It gets the picture that is kept, and until there is one that of the
site. A job in the background draws the pictures of tools whose page or picture somebody asked
for in the past ten minutes: again when the value has changed, at most once in five minutes for
each tool, one at a time. Pillow draws them: it is the only well-kept library that turns text
into a PNG with a font of its own, so the image of a container needs no fonts. It is an
optional extra, and loaded with the first picture. Without it, previews show the picture of
the site.
"""

import functools
import importlib.util
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from rest_bridge.asgi import ParsedRequest, PlainReply, Scope
from rest_bridge.pages.design import read_colours
from rest_bridge.pages.front import figure
from rest_bridge.routes import Handler
from rest_bridge.serving import MAX_AGE_S, ServedDocument
from rest_bridge.static_files import read_static_files
from toolserver.calls.front_values import FrontReader
from toolserver.clock import Clock
from toolserver.errors import NotFound
from toolserver.registry.registry import Operation, Registry, Tier
from toolserver.registry.site_facts import CARDS, SERVICE, Document, SiteFacts, paragraphs, price, tool_path

if TYPE_CHECKING:  # loaded when the first picture is drawn
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont

PNG = "image/png"
WIDTH, HEIGHT, EDGE = 1200, 630, 72
COLOURS = 32  # of the palette: a third of the bytes, and edges stay smooth
DRAW_EVERY_S = 1.0  # between two looks at what is to be drawn
WANTED_S = 600.0  # a picture is kept up to date for so long after it or its page was asked for
SOON = b"public, max-age=10"  # for the picture of the site, in the place of one that is not drawn yet
PULSE = ((5, 19), (10, 19), (13, 10), (18, 24), (21, 15), (23, 19), (27, 19))  # the sign, on a square of 32


@dataclass(frozen=True, slots=True)
class CardText:
    """The words of a picture, and the past day of its value, oldest first. `change` is in percent."""

    title: str
    value: str = ""
    change: float | None = None
    note: str = ""
    foot: str = ""
    line: Sequence[float] = ()


SITE = CardText(
    "The world now, for people and their agents",
    "Live data for AI agents",
    note="Typed tools over MCP, REST and function calling: each value with its age, its source and its licence.",
    foot="Prices, quakes, weather, outages, launches and more",
)
"""The words of `static/card.png`, the picture of every page that has none of its own, and of all without Pillow."""


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A picture, its words, and when it was found to have them, on the clock of the service."""

    at: float
    words: CardText
    served: ServedDocument


class SocialCards:
    """The pictures of one service."""

    def __init__(self, registry: Registry, facts: SiteFacts, reader: FrontReader, clock: Clock) -> None:
        self._registry, self._facts, self._reader, self._clock = registry, facts, reader, clock
        self._drawn: dict[str, _Drawn] = {}
        self._wanted: dict[str, float] = {}  # when a tool's page or picture was last asked for, by its name

    async def serve(self, scope: Scope, request: ParsedRequest) -> PlainReply:
        """Serve the picture at `/cards/<tool>.png`. Raises NotFound for any other name."""
        name, dot, ending = scope["path"].removeprefix(CARDS).rpartition(".")
        operation = self._registry.get(name) if (dot, ending) == (".", "png") else None
        if operation is None or not can_draw():
            raise NotFound("There is no such picture.")
        self._want(operation)
        drawn = self._drawn.get(operation.name)
        if drawn is None:
            return _site_picture().reply(request, cache_control=SOON)
        return drawn.served.reply(request)

    def watch(self, handlers: Mapping[str, Handler]) -> dict[str, Handler]:
        """Return the handlers of the tools' pages: those given, which then also say whose picture will be wanted."""
        pages = {tool_path(operation): operation for operation in self._registry if can_draw()}
        return {path: self._noting(pages[path], handler) for path, handler in handlers.items() if path in pages}

    def _noting(self, operation: Operation, handler: Handler) -> Handler:
        async def handle(scope: Scope, request: ParsedRequest) -> PlainReply:
            self._want(operation)
            return await handler(scope, request)

        return handle

    def _want(self, operation: Operation) -> None:
        self._wanted[operation.name] = self._clock.monotonic()

    async def draw_due(self) -> None:
        """Draw one picture that is wanted and not kept, or whose value has changed, if there is one."""
        now = self._clock.monotonic()
        for name, asked_at in list(self._wanted.items()):
            drawn = self._drawn.get(name)
            if now - asked_at > WANTED_S:
                del self._wanted[name]
            elif (drawn is None or now - drawn.at >= MAX_AGE_S) and await self._draw(self._registry[name], now):
                return

    async def _draw(self, operation: Operation, now: float) -> bool:
        """Draw a tool's picture if its words have changed. Return False if they have not."""
        words = write_card(operation, self._facts, await self._reader.read_card(operation.name))
        drawn = self._drawn.get(operation.name)
        if drawn is not None and drawn.words == words:
            self._drawn[operation.name] = replace(drawn, at=now)
            return False
        served = ServedDocument(Document(await anyio.to_thread.run_sync(draw_card, words), PNG))
        self._drawn[operation.name] = _Drawn(now, words, served)
        return True


@functools.cache
def _site_picture() -> ServedDocument:
    return ServedDocument(read_static_files()["card.png"])


def card_handlers(cards: SocialCards) -> dict[str, Handler]:
    """Return the handler of all pictures, by its path."""
    return {f"{CARDS}*": cards.serve}


@functools.cache
def can_draw() -> bool:
    """Return True if Pillow is installed. It is not loaded."""
    return importlib.util.find_spec("PIL") is not None


def card_path(operation: Operation) -> str | None:
    """Return the path of a tool's picture; None if this service cannot draw it."""
    return f"{CARDS}{operation.name}.png" if can_draw() else None


def write_card(operation: Operation, facts: SiteFacts, card: Mapping[str, Any] | None) -> CardText:
    """Return the words of a tool's picture. `card` is its entry in `/live.json` with `line`; None: it has none."""
    about = paragraphs(operation)[0].replace("`", "")
    place = facts.source + (", a simulated world" if facts.simulated else "")
    if card is None or card["value"] is None:
        cost = "" if operation.tier in (Tier.PAYMENT, Tier.ACCOUNT) else f"{price(operation)} · "
        return CardText(operation.title, note=about, foot=f"{cost}{place}")
    value = figure(card["value"], card["unit"]).striptags()
    note = "".join(figure(part).striptags() if not isinstance(part, str) else part for part in card["note"])
    state = "stale, " if card["stale"] else ""
    at = card["updated_at"][:16].replace("T", " ")
    foot = " · ".join(filter(None, (f"{state}{at} UTC", place, ", ".join(card["sources"]))))
    return CardText(operation.title, value, card["change_percent"], note, foot, tuple(card["line"]))


def draw_card(words: CardText) -> bytes:
    """Return a picture of 1200 by 630 pixels as PNG."""
    from PIL import Image, ImageDraw

    colour = {token.name: token.light for tokens in read_colours().values() for token in tokens}
    picture = Image.new("RGB", (WIDTH, HEIGHT), colour["ground"])
    pen = ImageDraw.Draw(picture)
    room = WIDTH - 2 * EDGE
    _draw_sign(pen, EDGE, EDGE - 16, 64, colour)
    pen.text((EDGE + 84, EDGE + 16), SERVICE, font=_font(44), fill=colour["ink"], anchor="lm")
    pen.text((EDGE, 200), words.title, font=_fit(pen, words.title, 60, room), fill=colour["soft"], anchor="lm")
    top = 300
    if words.value:
        size = _fit(pen, words.value, 128, room if words.change is None else room - 300)
        pen.text((EDGE, top + 10), words.value, font=size, fill=colour["ink"], anchor="lm", stroke_width=1)
        if words.change is not None:
            _draw_change(pen, EDGE + pen.textlength(words.value, size) + 36, top + 24, words.change, colour)
        top += 80
    for line in _wrap(pen, words.note, _font(36), room, most=2 if words.value else 4):
        pen.text((EDGE, top + 32), line, font=_font(36), fill=colour["soft"], anchor="lm")
        top += 50
    if len(words.line) > 2:
        _draw_line(pen, words.line, colour["good" if words.line[-1] >= words.line[0] else "bad"])
    pen.line([(0, HEIGHT - 84), (WIDTH, HEIGHT - 84)], fill=colour["line"], width=2)
    for line in _wrap(pen, words.foot, _font(28), room, most=1):
        pen.text((EDGE, HEIGHT - 42), line, font=_font(28), fill=colour["soft"], anchor="lm")
    file = io.BytesIO()
    picture.quantize(COLOURS).save(file, "PNG")
    return file.getvalue()


def _draw_sign(pen: "ImageDraw", x: float, y: float, size: float, colour: Mapping[str, str]) -> None:
    scale = size / 32
    pen.rounded_rectangle((x, y, x + size, y + size), 7 * scale, fill=colour["accent"])
    points = [(x + across * scale, y + down * scale) for across, down in PULSE]
    pen.line(points, fill=colour["on-accent"], width=round(2.5 * scale), joint="curve")


def _draw_change(pen: "ImageDraw", x: float, y: float, percent: float, colour: Mapping[str, str]) -> None:
    """Draw a change in percent, with an arrow up or down before it."""
    ink = colour["soft" if percent == 0 else "good" if percent > 0 else "bad"]
    if percent:
        tip, foot = (y - 18, y + 14) if percent > 0 else (y + 18, y - 14)
        pen.polygon([(x, foot), (x + 36, foot), (x + 18, tip)], fill=ink)
        x += 52
    pen.text((x, y), f"{percent:+.2f} %", font=_font(48), fill=ink, anchor="lm")


def _draw_line(pen: "ImageDraw", values: Sequence[float], ink: str) -> None:
    """Draw the past day at the lower edge, over the whole width."""
    low, high = min(values), max(values)
    across, tall, foot = WIDTH / (len(values) - 1), 56, HEIGHT - 92
    heights = ((value - low) / (high - low) if high > low else 0.5 for value in values)
    pen.line([(index * across, foot - tall * height) for index, height in enumerate(heights)], fill=ink, width=4)


@functools.lru_cache(32)
def _font(size: int) -> "FreeTypeFont":
    from PIL import ImageFont

    font = ImageFont.load_default(size)
    assert not isinstance(font, ImageFont.ImageFont), "Pillow's wheels have FreeType"
    return font


def _fit(pen: "ImageDraw", words: str, size: int, room: float) -> "FreeTypeFont":
    """Return the largest font, from `size` down to 24, in which the words fit into the room."""
    while size > 24 and pen.textlength(words, _font(size)) > room:
        size -= 4
    return _font(size)


def _wrap(pen: "ImageDraw", words: str, font: "FreeTypeFont", room: float, *, most: int) -> list[str]:
    """Return the words in at most `most` lines; an ellipsis stands for what has no room."""
    lines = [""]
    for word in words.split():
        longer = f"{lines[-1]} {word}".strip()
        if pen.textlength(longer, font) <= room:
            lines[-1] = longer
        elif len(lines) == most:
            lines[-1] = lines[-1].rstrip(" ·,") + " …"
            break
        else:
            lines.append(word)
    return lines
