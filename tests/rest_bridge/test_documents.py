"""Every document: well-formed, safe, linked, complete, the same each time, and telling nothing of this machine."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from catalog import llms_txt
from catalog.llm_tools import llm_tools
from rest_bridge.documents import documents
from rest_bridge.pages.tool import is_kept
from rest_bridge.serving import START_SCRIPT, THEME_SCRIPT
from rest_bridge.static_files import read_static_files, static_path
from tests.catalog.tiny import FACTS, FREE, TINY
from tests.requirements import proves
from tests.rest_bridge.made import BY_OTHERS, PROJECT, html_pages, made, registries
from toolserver.mcp.definitions import ToolChoices
from toolserver.registry.site_facts import tool_path


@proves("terms.listed")
@pytest.mark.parametrize("hidden", [(), ("payment_topup",), ("allowance_list", "allowance_create", "gas")])
def test_every_face_counts_and_lists_the_same_tools(hidden):
    registry = PROJECT.unlist(hidden)
    listed = {operation.name for operation in registry.chosen(toolset="all")}
    assert listed == {operation.name for operation in PROJECT} - {*hidden}

    there = made(registry)
    home, guide = html_pages(registry)["/"], llms_txt.llms_txt(registry, FACTS)
    paths = json.loads(there["/openapi.json"].body)["paths"].values()
    described = {method["operationId"] for path in paths for method in path.values() if "x-credits" in method}
    defined = llm_tools(registry, FACTS, generated_at=datetime(2027, 1, 15, tzinfo=UTC))
    faces = {
        "home page": {link.removeprefix("/t/") for link in home.links if link.startswith("/t/")},
        "/docs": {link.removeprefix("/t/") for link in html_pages(registry)["/docs"].links if link.startswith("/t/")},
        "llms.txt": set(re.findall(r"^- \[(\w+)\]\(https://data\.example/t/", guide, re.MULTILINE)),
        "llms-full.txt": set(re.findall(r"or the MCP tool `(\w+)`", llms_txt.llms_full_txt(registry, FACTS))),
        "OpenAPI": described,
        "catalogue": {*defined["routes"]},
        "tools/list": {entry["name"] for entry in ToolChoices(registry).choose(toolset="all").definitions},
    }
    assert {face: names for face, names in faces.items() if names != listed} == {}
    count = f"{len(listed)} typed tools"
    assert (count in guide, count in there["/"].body.decode(), defined["count"]) == (True, True, len(listed))


@registries
def test_every_page_is_well_formed_with_one_heading_and_unique_ids(registry):
    for path, page in html_pages(registry).items():
        assert page.faults == [], path
        assert page.names.count("h1") == 1, path
        assert page.names.count("main") == 1, path
        assert len(page.ids) == len(set(page.ids)), path


@registries
def test_no_page_carries_script_of_its_own_or_anything_from_elsewhere(registry):
    for path, page in html_pages(registry).items():
        assert not {"iframe", "img"} & set(page.names), path
        first = path == "/" or path.startswith("/t/")  # these carry their style, and start their scripts later
        assert page.names.count("style") == int(first), path
        assert page.inline_scripts == ([THEME_SCRIPT, START_SCRIPT] if first else [THEME_SCRIPT]), path
        assert page.scripts.count("of its own") == len(page.inline_scripts), path
        assert all(src.startswith("/static/") for src in page.scripts if src != "of its own"), path
        assert (static_path("css/style.css") in page.links) is not first, path


@registries
def test_every_link_of_a_page_leads_to_something_that_is_there(registry):
    found = html_pages(registry)
    there = {*made(registry), *llms_txt.documents(registry, FACTS), *BY_OTHERS, *(o.path for o in registry)}
    there |= {f"{tool_path(o)}.json" for o in registry if is_kept(o)}
    there |= {static_path(name) for name in read_static_files()}
    for path, page in found.items():
        for link in page.links:
            target = urlsplit(link)
            if target.scheme in ("cursor", "vscode") or target.netloc not in ("", "data.example"):
                continue
            assert (target.path or path) in there, (path, link)
            if target.fragment:
                assert target.fragment in found[target.path or path].ids, (path, link)


def test_links_keep_the_path_that_the_public_address_has():
    facts = replace(FACTS, base_url="https://data.example/live")
    for page in html_pages(TINY, facts).values():
        own = [urlsplit(link) for link in page.links if urlsplit(link).netloc in ("", "data.example")]
        assert all(not link.path or link.path.startswith("/live/") for link in own if link.scheme in ("", "https"))


def test_a_simulated_world_is_called_one_on_every_page():
    for page in html_pages(TINY, replace(FACTS, simulated=True)).values():
        assert "simulated world" in page.text
    assert not any("simulated world" in page.text for page in html_pages(TINY).values())


def test_payments_are_a_page_only_where_something_is_sold():
    assert "/docs/payments" in made(TINY)
    assert "0.04" in html_pages(TINY)["/docs/payments"].text
    assert "/docs/payments" not in made(FREE)
    assert not any(
        "credits" in page.text for path, page in html_pages(FREE).items() if not path.startswith("/problems/")
    )


@registries
def test_nothing_of_this_machine_is_told_and_documents_are_the_same_each_time(registry):
    once, again = made(registry), made(registry)
    assert once == again
    for document in once.values():
        assert str(Path(__file__).resolve().parents[2]).encode() not in document.body
        assert str(Path.home()).encode() + b"/" not in document.body


def test_the_project_s_documents_are_pages_where_they_are_served_and_other_pages_lead_to_them():
    guides = {"README": "# Docs\n\n## Users\n\n- [A](webhooks.md)\n- [B](receipts.md)\n"}
    guides |= {"webhooks": "# Webhooks\n\nWords.\n", "receipts": "# Receipts\n\nWords.\n"}
    found = documents(TINY, FACTS, guides=guides)
    more = {"/docs/webhooks", "/docs/webhooks.md", "/docs/receipts", "/docs/receipts.md", "/docs/search.json"}
    assert found.keys() - documents(TINY, FACTS).keys() == more
    assert {
        path for path in more if f"<loc>https://data.example{path}</loc>".encode() in found["/sitemap.xml"].body
    } == {path for path in more if found[path].content_type.startswith("text/html")}
    assert b"/docs/webhooks#conditions" in found["/account"].body
    assert b'href="/docs/receipts"' in found["/receipts"].body
    assert b'href="/docs/webhooks"' in found["/docs"].body
    without = documents(TINY, FACTS)
    assert b"/docs/webhooks" not in without["/account"].body
    assert b"/docs/receipts" not in without["/receipts"].body


@registries
def test_the_site_map_has_every_page_for_people_and_no_other(registry):
    found = made(registry)
    listed = re.findall("<loc>https://data.example(.*?)</loc>", found["/sitemap.xml"].body.decode())
    pages = {path for path, document in found.items() if document.content_type.startswith("text/html")}
    assert len(listed) == len(set(listed))
    assert set(listed) == pages | {"/status", "/sources"} | ({"/no-charge"} if "/buy" in pages else set())


def test_an_example_stands_on_the_page_of_its_tool_and_in_the_description_of_the_interface():
    found = documents(TINY, FACTS, examples={"digest": {"summary": "a calm day"}})
    assert {path for path, document in found.items() if b"a calm day" in document.body} == {
        *("/", "/t/digest", "/openapi.json")
    }


def test_pages_about_money_are_there_only_where_something_is_sold():
    paid = made(TINY).keys() - made(FREE).keys()
    tools = {tool_path(operation) for operation in TINY} - {tool_path(operation) for operation in FREE}
    assert paid - tools == {*("/docs/payments", "/docs/payments.md", "/buy", "/account", "/receipts", "/api/meta/pro")}


def test_a_sample_answer_is_served_as_it_is_and_its_tool_shows_it():
    written = documents(TINY, FACTS, samples={"premium_deep": b'{"a": 1}', "gone": b"{}"})
    assert written["/docs/samples/premium_deep.json"].body == b'{"a": 1}'
    assert written["/docs/samples/premium_deep.json"].content_type == "application/json"
    assert "/docs/samples/gone.json" not in written
    assert b"/docs/samples/premium_deep.json" in written["/t/premium_deep"].body
