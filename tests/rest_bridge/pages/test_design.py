"""The tokens: readable in both themes, the only colours and sizes that style sheets have, and shown on a page."""

import re

import pytest

from rest_bridge.pages.design import TEXT_ROLES, measure_contrast, read_colours, read_sizes
from rest_bridge.static_files import TOKENS, read_static_files
from tests.catalog.tiny import TINY
from tests.rest_bridge.made import html_pages

READABLE = 4.5  # what WCAG 2.2 asks of text
STYLES = ("css/style.css", "css/consent.css", "css/view.css")


def tokens():
    return {token.name: token for colours in read_colours().values() for token in colours}


def declared(style, *properties):
    written = read_static_files()[style].body.removeprefix(read_static_files()[TOKENS].body)
    text = re.sub(r"/\*.*?\*/", "", written.decode(), flags=re.DOTALL)
    return re.findall(rf"(?<![\w-])(?:{'|'.join(properties)}): ([^;}}]+)", text)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_is_readable_on_every_surface(theme):
    found = {name: getattr(token, theme) for name, token in tokens().items()}
    poor = {
        (role, surface): round(measure_contrast(found[role], found[surface]), 2)
        for role in TEXT_ROLES
        for surface in ("ground", "raised")
        if measure_contrast(found[role], found[surface]) < READABLE
    }
    assert poor == {}
    assert measure_contrast(found["on-accent"], found["accent"]) >= READABLE
    for surface in ("wash", "notice", "alarm"):
        assert measure_contrast(found["ink"], found[surface]) >= READABLE, surface


def test_a_contrast_is_that_of_the_standard():
    assert measure_contrast("#ffffff", "#000000") == measure_contrast("#000000", "#ffffff") == 21
    assert round(measure_contrast("#767676", "#ffffff"), 2) == 4.54  # the lightest grey that passes on white


@pytest.mark.parametrize("style", STYLES)
def test_a_style_sheet_chooses_no_colour_size_or_radius_itself(style):
    written = read_static_files()[style].body.removeprefix(read_static_files()[TOKENS].body)
    text = re.sub(r"/\*.*?\*/", "", written.decode(), flags=re.DOTALL)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[\s;,)])|\brgba?\(|\bhsla?\(", text) == []
    assert [
        size for size in declared(style, "font-size") if not size.startswith("var(--text-") and "em" != size[-2:]
    ] == []
    assert [each for each in declared(style, "border-radius") if re.sub(r"var\(--round[\w-]*\)|0|\s", "", each)] == []
    named = {*tokens(), *(token.name for group in ("Type", "Corners") for token in read_sizes(group))}
    assert {*re.findall(r"var\(--([\w-]+)\)", text)} <= named


@pytest.mark.parametrize("style", STYLES)
def test_distances_are_multiples_of_two_pixels(style):
    values = declared(style, "gap", r"padding[\w-]*", r"margin[\w-]*")
    distances = [float(size) for value in values for size in re.findall(r"(?<![\w.])([\d.]+)rem", value)]
    assert len(distances) > 5
    assert [distance for distance in distances if distance * 8 % 1] == []


def test_the_page_shows_every_token_and_the_mark():
    text = html_pages(TINY)["/design"].text
    named = [*tokens(), *(token.name for group in ("Type", "Corners") for token in read_sizes(group))]
    assert len(named) > 25
    assert [name for name in named if f"--{name}" not in text] == []
    assert "<svg" in read_static_files()["mark.svg"].body.decode()
