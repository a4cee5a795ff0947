"""Documents as pages: links between them, ids of headings, the list at the side, the index of the search."""

import json
import re
from dataclasses import replace

from rest_bridge.pages.guides import SEARCH, Guides
from tests.catalog.tiny import FACTS, TINY
from tests.rest_bridge.made import PROJECT
from tests.rest_bridge.markup import Page
from toolserver.serving.packaged_texts import read_guides

LIST = """# Documents

## For users

- [One](one.md): first; [two](two.md), [none](none.md)

## For others

- [Out](../OUT.md)
"""
ONE = """# The first

What it is <b>about</b>, with [two](two.md#more-words).

## More `words`

[tool](tools/sights.md) [up](../OUT.md) [here](#more-words) [bad](javascript:alert) [web](https://x.example/)

| a | b |
|---|---|
| 1 | findme |

## More words
"""
SOURCES = {"README": LIST, "one": ONE, "two": "# The second\n\nWords.\n\n## More words\n\nthere\n"}
FOUND = Guides(SOURCES, TINY, FACTS).documents()


def test_each_listed_document_is_a_page_and_markdown():
    assert FOUND.keys() == {"/docs/one", "/docs/one.md", "/docs/two", "/docs/two.md", SEARCH}
    assert FOUND["/docs/one.md"].body.decode() == ONE
    page = Page(FOUND["/docs/one"].body)
    assert page.faults == []
    assert page.names.count("h1") == 1
    assert "For users" in page.text
    assert "The second" in page.text


def test_links_lead_to_pages_and_others_become_words():
    body = FOUND["/docs/one"].body.decode()
    assert '<a href="/docs/two#more-words">two</a>' in body
    assert '<a href="/t/sights">tool</a>' in body
    assert "<span>up</span>" in body
    assert '<a href="#more-words">here</a>' in body
    assert '<a href="https://x.example/">web</a>' in body
    assert "javascript:alert" not in re.findall(r'href="([^"]*)"', body)
    assert "<b>about" not in body


def test_pictures_are_named_and_not_loaded():
    guides = Guides(SOURCES | {"one": "# One\n\nSee ![speed, in ms](performance/speed.svg) here.\n"}, TINY, FACTS)
    body = guides.documents()["/docs/one"].body.decode()
    assert "See speed, in ms here." in body
    assert "speed.svg" not in body


def test_headings_have_ids_that_stand_once():
    ids = Page(FOUND["/docs/one"].body).ids
    assert {"more-words", "more-words-1"} <= set(ids)
    assert len(ids) == len(set(ids))


def test_the_index_has_every_section_and_every_tool():
    entries = json.loads(FOUND[SEARCH].body)
    one = [entry for entry in entries if entry["path"].startswith("/docs/one")]
    assert [entry["heading"] for entry in one] == ["", "More words", "More words"]
    assert one[1]["path"] == "/docs/one#more-words"
    assert "findme" in one[1]["text"]
    assert {f"/t/{operation.name}" for operation in TINY} <= {entry["path"] for entry in entries}


def test_every_document_of_the_project_is_well_formed_and_leads_to_what_is_there():
    documents = Guides(read_guides(), PROJECT, FACTS).documents()
    pages = {path: Page(documents[path].body) for path in documents if not path.endswith((".md", ".json"))}
    tools = {f"/t/{operation.name}" for operation in PROJECT}
    assert len(pages) > 15
    for path, page in pages.items():
        assert page.faults == [], path
        for link in page.links:
            target, _, fragment = link.partition("#")
            if fragment and (target or path) in pages:
                assert fragment in pages[target or path].ids, (path, link)
            assert not target.startswith("/t/") or target in tools, (path, link)


def described(source):
    """What search engines are told of a document."""
    text = Guides({"README": LIST, "one": source}, TINY, FACTS).documents()["/docs/one"].body.decode()
    about = re.search(r'<meta name="description" content="([^"]*)">', text)
    return about and about[1]


def test_a_document_is_described_by_its_first_paragraph_in_plain_words_and_not_endlessly():
    assert described("# One\n\n| a |\n|---|\n\nSee [the `web`](https://x.example)\nand more.\n\nLast.\n") == (
        "See the web and more."
    )
    assert described("# One\n\n" + "w" * 300) == "w" * 200
    assert described("# One\n\n## Heading\n\n- entry\n") is None


def test_the_index_says_where_each_section_is_and_what_it_is_about():
    entries = json.loads(FOUND[SEARCH].body)
    assert entries[:2] == [
        {
            "path": "/docs/one#content",
            "title": "The first",
            "heading": "",
            "text": "What it is <b>about</b>, with two.",
            "hint": "first; [two](two.md), [none](none.md)",
            "kind": "guide",
        },
        {
            "path": "/docs/one#more-words",
            "title": "The first",
            "heading": "More words",
            "text": "tool up here bad web a b 1 findme",
            "hint": "first; [two](two.md), [none](none.md)",
            "kind": "guide",
        },
    ]
    tool = next(entry for entry in entries if entry["path"] == "/t/digest")
    assert tool["text"].startswith("digest /api/digest Everything that matters right now")


def test_code_is_found_by_the_search_and_generated_marks_are_not():
    source = "# One\n\n<!-- begin: x -->\nwords\n\n```\ncurl it\n```\n"
    documents = Guides({"README": LIST, "one": source}, TINY, FACTS).documents()
    assert json.loads(documents[SEARCH].body)[0]["text"] == "words curl it"
    assert b"begin: x" not in documents["/docs/one"].body
    assert documents["/docs/one.md"].body.decode() == source


def test_documents_are_grouped_as_the_list_groups_them_and_unknown_ones_are_left_out():
    groups = Guides(SOURCES, TINY, FACTS).groups
    assert [(group.heading, group.guides) for group in groups] == [
        ("For users", (("one", "The first"), ("two", "The second"))),
        ("For others", ()),
    ]


def test_links_keep_the_path_of_the_public_address_and_a_tool_that_is_not_there_becomes_words():
    source = "# One\n\n[two](two.md) [tool](tools/sights.md) [gone](tools/none.md) [odd](#a b)\n"
    facts = replace(FACTS, base_url="https://data.example/live")
    body = Guides(SOURCES | {"one": source}, TINY, facts).documents()["/docs/one"].body.decode()
    assert '<a href="/live/docs/two">two</a> <a href="/live/t/sights">tool</a> <span>gone</span>' in body


def test_a_heading_with_a_link_is_named_by_its_words():
    source = "# One\n\n## See [the list](two.md), now!\n\n## See the list now\n"
    documents = Guides(SOURCES | {"one": source}, TINY, FACTS).documents()
    assert {"see-the-list-now", "see-the-list-now-1"} <= set(Page(documents["/docs/one"].body).ids)
