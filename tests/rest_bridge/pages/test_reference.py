"""The index of the documentation: every document, every tool with its call, the frame of an answer, the licence."""

import re

import pytest

from rest_bridge.pages.guides import GuideGroup
from rest_bridge.pages.reference import first_words, reference
from tests.catalog.tiny import FACTS, FREE, TINY
from tests.rest_bridge.made import PROJECT, html_pages, registries
from tests.rest_bridge.markup import Page
from toolserver.registry.site_facts import tool_path


@registries
def test_the_index_has_an_anchor_and_a_link_for_every_tool(registry):
    page = html_pages(registry)["/docs"]
    for operation in registry:
        assert operation.name in page.ids
        assert tool_path(operation) in page.links
        assert operation.path in page.text
    assert {"licence", "answers", "tools"} <= set(page.ids)


def test_documents_stand_below_the_headings_of_their_list():
    groups = [GuideGroup("For users", (("webhooks", "Web <hooks>"),))]
    body = reference(TINY, FACTS, groups).body
    page = Page(body)
    assert "For users" in page.text
    assert "/docs/webhooks" in page.links
    assert b"<hooks>" not in body
    assert any(src.endswith("js/docs.js") for src in page.scripts)
    assert not any(src.endswith("js/docs.js") for src in Page(reference(TINY, FACTS).body).scripts)


def test_each_tool_stands_below_the_heading_of_its_own_tier():
    parts = re.split(r'<h3 id="(\w+)">([^<]+)</h3>', reference(TINY, FACTS).body.decode())[1:]
    tools = [re.findall(r'<tr id="(\w+)">', rows) for rows in parts[2::3]]
    assert list(zip(parts[::3], parts[1::3], tools, strict=True)) == [
        ("free", "Free tools", ["sights", "digest"]),
        ("premium", "Premium tools", ["premium_deep"]),
        ("payment", "Payment tools", ["payment_balance", "payment_buy_credits"]),
        ("account", "Account tools", ["webhook_unsubscribe"]),
    ]
    assert re.findall(r'<h3 id="(\w+)">', reference(FREE, FACTS).body.decode()) == ["free"]


def test_the_licence_of_paid_answers_and_prices_are_told_only_where_something_is_sold():
    groups = [GuideGroup("For users", (("webhooks", "Webhooks"),))]
    selling, free = Page(reference(TINY, FACTS, groups).body), Page(reference(FREE, FACTS, groups).body)
    assert [("inference and reasoning only" in page.text) for page in (selling, free)] == [True, False]
    assert [("Prices and payments of this server" in page.text) for page in (selling, free)] == [True, False]
    assert "Free answers may be used for any purpose" in free.text


def test_every_member_of_an_answer_is_explained():
    body = reference(TINY, FACTS).body.decode().partition('id="answers"')[2].partition("</table>")[0]
    assert re.findall(r"<code>(\w+)</code>", body) == [
        *("source", "endpoint", "updated_at", "data", "stale", "warning", "_meta")
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("economic_data", "Latest U.S. macro figures"),
        ("forex", "Daily US dollar exchange rates to 16 major currencies (EUR, GBP, JPY, CAD, CNY, …)"),
        ("webhook_unsubscribe", "Cancel a webhook subscription for good"),
        ("premium_macro", "The macro picture in one call"),
    ],
)
def test_what_a_tool_gives_is_said_in_the_first_phrase_of_its_description(name, words):
    assert first_words(PROJECT[name]) == words
    assert words in Page(reference(PROJECT, FACTS).body).text


def test_no_tool_is_described_at_length_in_the_index():
    assert {each.name: first_words(each) for each in PROJECT if not 8 < len(first_words(each)) < 200} == {}
