"""Writes /design: the mark, and every token of `static/css/tokens.css` with its role.

The page reads the style sheet itself, so it shows what pages use. Contrasts follow WCAG 2.2.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rest_bridge.pages.render import render_page
from rest_bridge.static_files import TOKENS, read_static_files, static_path
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import DESIGN, Document, SiteFacts

SPACES = (0.125, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4)  # in rem: within chips, then between ever larger parts
TEXT_ROLES = ("ink", "soft", "accent", "good", "warn", "bad")  # colours that words have
_GROUP = re.compile(r"  /\* (?P<group>[^*]+) \*/")
_COLOUR = re.compile(r"  --(?P<name>[\w-]+): light-dark\((?P<light>#\w{6}), (?P<dark>#\w{6})\); /\* (?P<role>.+) \*/")
_SIZE = re.compile(r"  --(?P<name>[\w-]+): (?P<size>[^;]+); /\* (?P<role>.+) \*/")


@dataclass(frozen=True, slots=True)
class ColourToken:
    """A colour in both themes, as `#rrggbb`, with what it is for."""

    name: str
    role: str
    light: str
    dark: str


@dataclass(frozen=True, slots=True)
class SizeToken:
    """A size of text or a radius, as CSS, with what it is for."""

    name: str
    role: str
    size: str


def read_colours() -> dict[str, list[ColourToken]]:
    """Return the colours by the group in which the style sheet has them."""
    groups: dict[str, list[ColourToken]] = {}
    for group, line in _read_lines():
        if found := _COLOUR.fullmatch(line):
            groups.setdefault(group, []).append(ColourToken(**found.groupdict()))
    return groups


def read_sizes(group: str) -> list[SizeToken]:
    """Return the tokens of a group without colours: `Type` or `Corners`."""
    found = [_SIZE.fullmatch(line) for name, line in _read_lines() if name == group]
    return [SizeToken(**match.groupdict()) for match in found if match]


def measure_contrast(colour: str, ground: str) -> float:
    """Return the contrast ratio of two colours, from 1 to 21."""
    brighter, darker = sorted(map(_measure_luminance, (colour, ground)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


def design_page(registry: Registry, facts: SiteFacts) -> Document:
    """Return the page."""
    colours = read_colours()
    ground = next(token for tokens in colours.values() for token in tokens if token.name == "ground")
    return render_page(
        "design.html",
        registry,
        facts,
        path=DESIGN,
        title="Design",
        about="The mark, and the colours with their roles and contrasts, sizes and distances of every page.",
        colours=colours,
        contrasts={
            token.name: (measure_contrast(token.light, ground.light), measure_contrast(token.dark, ground.dark))
            for token in colours["Text"]
            if token.name in TEXT_ROLES
        },
        sizes=read_sizes("Type"),
        corners=read_sizes("Corners"),
        spaces=SPACES,
        files=[("The mark", static_path("mark.svg")), ("The sign", static_path("favicon.svg"))],
        tokens=static_path(TOKENS),
    )


def _read_lines() -> Iterator[tuple[str, str]]:
    """Yield every line of the style sheet with the heading above it."""
    group = ""
    for line in read_static_files()[TOKENS].body.decode().splitlines():
        if heading := _GROUP.fullmatch(line):
            group = heading["group"]
        else:
            yield group, line


def _measure_luminance(colour: str) -> float:
    shares = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return sum(weight * share for weight, share in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
