"""server.json, judged by the rules of the registry: written here from its schema, which no package carries."""

import re
from urllib.parse import urlsplit

import pytest

from catalog.server_json import SCHEMA, server_json
from tests.catalog.tiny import FACTS, FREE, TINY
from tests.served import all_tools
from toolserver import __version__

NAME = re.compile(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+")
URL = re.compile(r"https?://[^\s]+")
MEMBERS = {"$schema", "name", "title", "description", "version", "websiteUrl", "remotes", "packages"}
OF_AN_INPUT = {"name", "value", "description", "isSecret", "isRequired", "variables", "type"}


def faults(document):
    """Every rule of the schema, and of the public registry, that the document breaks."""
    texts = {"name": (3, 200), "title": (1, 100), "description": (1, 100), "version": (1, 255)}
    yield from (name for name, (least, most) in texts.items() if not least <= len(document[name]) <= most)
    yield from document.keys() - MEMBERS
    if not NAME.fullmatch(document["name"]):
        yield "name"
    if not urlsplit(document["websiteUrl"]).scheme:
        yield "websiteUrl"
    for remote in document["remotes"]:
        if remote["type"] != "streamable-http" or not URL.fullmatch(remote["url"]):
            yield "remote"
        yield from (f"header {each}" for each in remote.get("headers", []) if not is_input(each))
    for package in document.get("packages", []):
        if package["registryType"] != "pypi":
            yield "package"
        if package["transport"] != {"type": "stdio"} or re.search(r"[~^*]|latest", package["version"]):
            yield "package"
        yield from (f"variable {each}" for each in package.get("environmentVariables", []) if not is_input(each))
        yield from (each for each in package["packageArguments"] if not is_argument(each))


def is_input(given):
    known = given.keys() <= OF_AN_INPUT and "name" in given
    inside = set(re.findall(r"{(\w+)}", given.get("value", "")))
    return known and inside == given.get("variables", {}).keys()


def is_argument(given):
    return given.keys() == {"positional": {"type", "value"}, "named": {"type", "name", "value"}}[given["type"]]


@pytest.mark.parametrize("registry", [TINY, FREE, all_tools()], ids=["tiny", "free", "all"])
@pytest.mark.parametrize("package", [True, False])
def test_the_registry_would_take_it(registry, package):
    document = server_json(registry, FACTS, package=package)
    assert list(faults(document)) == []
    assert document["$schema"] == SCHEMA
    assert ("packages" in document) is package


def test_the_rules_find_what_is_wrong():
    document = server_json(TINY, FACTS, package=True)
    for wrong in ({"name": "toolserver"}, {"description": "x" * 101}, {"icon": "x"}, {"websiteUrl": "data.example"}):
        assert list(faults(document | wrong))


def test_a_service_has_its_host_name_backwards_or_the_name_that_it_is_given():
    assert server_json(TINY, FACTS)["name"] == "example.data/toolserver"
    assert server_json(TINY, FACTS, name="io.github.me/data")["name"] == "io.github.me/data"


def test_the_package_is_a_bridge_to_the_service_under_the_name_that_is_ours():
    (package,) = server_json(TINY, FACTS, package=True)["packages"]
    assert (package["identifier"], package["version"]) == ("agent-toolserver", __version__)
    assert [argument["value"] for argument in package["packageArguments"]] == ["stdio", "https://data.example"]
    assert package["environmentVariables"][0]["isSecret"] is True


def test_where_nothing_is_sold_no_token_is_asked_for():
    document = server_json(FREE, FACTS, package=True)
    assert "headers" not in document["remotes"][0]
    assert "environmentVariables" not in document["packages"][0]
