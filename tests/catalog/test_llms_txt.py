"""The guides for language models: everything that is there is named, and every link leads somewhere."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from catalog.llms_txt import documents, llms_full_txt, llms_txt
from rest_bridge.documents import documents as pages
from tests.catalog.tiny import FACTS, FREE, TINY
from tests.requirements import proves
from tests.rest_bridge.made import BY_OTHERS
from toolserver.registry.error_codes import PROBLEMS
from toolserver.registry.registry import Registry

PROJECT = Registry.load("tools")

registries = pytest.mark.parametrize("registry", [TINY, FREE, PROJECT], ids=["tiny", "free", "project"])


@proves("discovery.llms")
@registries
def test_every_link_leads_to_something_that_is_there(registry):
    there = {*pages(registry, FACTS), *documents(registry, FACTS), *BY_OTHERS, *(o.path for o in registry)}
    for text in (llms_txt(registry, FACTS), llms_full_txt(registry, FACTS)):
        found = re.findall(r"https://data\.example([^\s)`#,;]*)", text)
        assert len(found) > 10
        assert {path or "/" for path in found} <= there


@proves("discovery.llms")
@registries
def test_every_tool_is_in_both_guides(registry):
    for text in (llms_txt(registry, FACTS), llms_full_txt(registry, FACTS)):
        for operation in registry:
            assert f"{operation.name}" in text
            assert operation.description in text


@proves("version.llms")
def test_the_short_guide_has_the_form_of_llms_txt():
    lines = llms_txt(TINY, FACTS).split("\n")
    assert lines[0] == "# toolserver"
    assert lines[2].startswith("> ")
    assert [line for line in lines if line.startswith("## ")] == [
        *("## Free tools", "## Premium tools", "## Payment tools", "## Account tools"),
        *("## Documents", "## Licence of the data"),
    ]


def test_the_long_guide_has_arguments_fields_sources_and_errors():
    text = llms_full_txt(TINY, FACTS)
    assert "- `lat` (number, from -90 to 90, required): Latitude" in text
    assert "- `kind` (one of tower, bridge, default tower)" in text
    assert "- `data.best` (object or null): The one to see" in text
    assert "Sample.place" in text
    assert all(f"`{code}`" in text for code in PROBLEMS)


def test_a_server_that_sells_nothing_does_not_speak_of_payment():
    for text in (llms_txt(FREE, FACTS), llms_full_txt(FREE, FACTS)):
        assert not re.search("credit(?! that)|premium|payment|svc_live", text, re.IGNORECASE)


def test_a_simulated_world_is_called_one():
    assert "invented" in llms_txt(TINY, replace(FACTS, simulated=True))
    assert "invented" not in llms_txt(TINY, FACTS)


@registries
def test_nothing_of_this_machine_is_told(registry):
    for document in documents(registry, FACTS).values():
        assert str(Path(__file__).resolve().parents[2]).encode() not in document.body
        assert str(Path.home()).encode() + b"/" not in document.body


def test_the_address_for_hosts_that_sign_in_stands_there_only_where_they_can():
    assert "/api/mcp/auth" not in llms_txt(TINY, FACTS)
    assert "https://data.example/api/mcp/auth (OAuth 2.1" in llms_txt(TINY, replace(FACTS, oauth=True))
