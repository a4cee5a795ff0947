"""The home page: every tool, how to connect, and a call to copy."""

from tests.catalog.tiny import TINY
from tests.rest_bridge.made import PROJECT, html_pages, registries
from toolserver.registry.registry import Registry


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
