"""The list of sources, and the digest by which answers refer to it."""

import hashlib
import json

from tests.catalog.tiny import FREE, TINY
from toolserver.registry.registry import Registry
from toolserver.registry.source_list import digest_source_list, list_sources, write_source_list

PROJECT = Registry.load("tools")


def test_every_source_is_listed_once_with_its_licence_shipped_ones_too():
    listed = json.loads(write_source_list(PROJECT))
    names = [source["name"] for source in listed["sources"]]
    assert names == sorted(
        {source.name for source in PROJECT.sources} | {"Bundled.geonames_cities", "Bundled.terminal_bench"}
    )
    assert listed["count"] == len(names)
    assert all({"class", "attribution"} <= source["licence"].keys() for source in listed["sources"])
    assert listed["sources"] == list_sources(PROJECT)


def test_the_digest_is_of_the_document_and_changes_with_it():
    assert digest_source_list(TINY) == hashlib.sha256(write_source_list(TINY)).hexdigest()[:8]
    assert digest_source_list(TINY) != digest_source_list(PROJECT)
    assert digest_source_list(FREE) == digest_source_list(Registry(FREE))
