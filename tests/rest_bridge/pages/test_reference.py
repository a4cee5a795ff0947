"""The index of the documentation: every document, every tool with its call, the frame of an answer, the licence."""

from rest_bridge.pages.guides import GuideGroup
from rest_bridge.pages.reference import reference
from tests.catalog.tiny import FACTS, TINY
from tests.rest_bridge.made import html_pages, registries
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
