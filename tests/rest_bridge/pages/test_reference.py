"""The tool reference: every tool with its arguments, fields and sources."""

from tests.catalog.tiny import PLACE, TINY
from tests.rest_bridge.made import html_pages, made, registries


@registries
def test_the_reference_has_an_anchor_and_the_fields_of_every_tool(registry):
    page = html_pages(registry)["/docs"]
    for operation in registry:
        assert operation.name in page.ids
        assert all(source.name in page.text for source in operation.sources)
    assert "licence" in page.ids


def test_the_reference_shows_arguments_with_kinds_defaults_and_meaning():
    text = html_pages(TINY)["/docs"].text
    for words in (
        "number, from -90 to 90",
        "one of tower, bridge",
        "required",
        "data.best.height_m",
        "stale answer is not charged",
    ):
        assert words in text


def test_third_party_words_never_become_markup():
    text = made(TINY)["/docs"].body.decode()
    assert "Sample &amp; Sons &lt;office&gt;" in text
    assert "Highest &lt;first&gt;" in text
    assert "<office>" not in text
    assert PLACE.licence.terms_url in text
