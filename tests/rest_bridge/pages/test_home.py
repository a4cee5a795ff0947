"""The home page: every tool, how to connect, and a call to copy."""

import re

from rest_bridge.pages.home import home
from tests.catalog.tiny import FACTS, FREE, TINY
from tests.rest_bridge.made import PROJECT, html_pages, registries
from tests.rest_bridge.markup import Page
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import Snippet


@registries
def test_the_home_page_lists_every_tool_and_how_to_connect(registry):
    page = html_pages(registry)["/"]
    for operation in registry:
        assert operation.name in page.text
        assert operation.title in page.text
    for host in ("Claude Desktop", "Claude Code", "Cursor", "VS Code", "Gemini CLI"):
        assert host in page.text
    assert "https://data.example/api/mcp" in page.text


def test_the_home_page_offers_a_call_to_copy_only_if_one_works_as_it_stands():
    assert "curl https://data.example/api/digest" in html_pages(TINY)["/"].text
    assert "Plain HTTP" not in html_pages(Registry([TINY["premium_deep"]]))["/"].text


def test_every_free_tool_with_a_headline_has_a_card():
    page = html_pages(PROJECT)["/"]
    shown = [operation for operation in PROJECT if operation.headline]
    assert len(shown) > 20
    assert [name for name in page.ids if name.startswith("card-")] == [f"card-{one.name}" for one in shown]
    assert not any(name.startswith("card-") for name in html_pages(TINY)["/"].ids)


def test_cards_are_filled_by_a_script_that_is_loaded_only_where_there_are_any():
    def loads(registry):
        return any(src.endswith("/js/home.js") for src in html_pages(registry)["/"].scripts)

    assert (loads(PROJECT), loads(TINY)) == (True, False)


def test_an_example_answer_is_shown_as_it_reads_best():
    assert '{\n  "a": "…"\n}' in Page(home(TINY, FACTS, (), {"digest": {"a": "…"}}).body).text
    assert "What an answer looks like" not in html_pages(TINY)["/"].text


def test_the_call_to_copy_is_of_the_core_set_and_shows_a_value_if_there_is_such_a_tool():
    assert "curl https://data.example/api/btc-price" in html_pages(PROJECT)["/"].text
    assert PROJECT["btc_price"].toolset == "core"


def test_prices_are_told_only_where_something_is_sold():
    selling, free = html_pages(TINY)["/"].text, html_pages(FREE)["/"].text
    assert "Premium tools: 2 credits a call; a credit is 0.02 USD." in selling
    assert "No key is needed." in free
    assert "Premium" not in free


def test_tools_stand_below_the_heading_of_their_tier():
    tools = Page(home(TINY, FACTS).body.partition(b'id="tools"')[2])
    names = [link.removeprefix("/t/") for link in tools.links if link.startswith("/t/")]
    assert names == [operation.name for operation in TINY]
    order = ("Free tools 2", "Premium tools 1", "Payment tools 2", "Account tools 1")
    assert [tools.text.index(words) for words in order] == sorted(tools.text.index(words) for words in order)


def test_a_program_that_can_be_set_up_with_one_click_has_a_button_and_each_program_one_part():
    snippets = [
        Snippet("A", "http", "here", "text 1", "vscode:mcp/install"),
        Snippet("A", "stdio", "there", "text 2"),
        Snippet("B", "http", "here", "text 3"),
    ]
    body = home(TINY, FACTS, snippets).body.decode()
    page = Page(body.encode())
    assert page.links.count("vscode:mcp/install") == 3  # the first screen, the button, and the way beside the text
    assert re.findall(r"<summary>([AB])</summary>", body) == ["A", "B"]
