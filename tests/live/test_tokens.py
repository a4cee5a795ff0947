"""Answers fit into a context window: every tool's answer in tokens of o200k_base, on the world at its busiest."""

import itertools
import json
from collections.abc import Iterator

import httpx
import pytest

from tests.live.processes import CORE, PATHS, UNLIMITED, Program, started
from tests.live.programs import CLIENTS, NODE, installed, ran
from tests.requirements import proves
from tests.size import sized
from toolserver.registry.registry import Registry, Tier

pytestmark = pytest.mark.live

DEFAULT, LONGEST, ANY = 8_000, 20_000, 25_000  # tokens
MOST_META = 0.15  # of the bytes of the nine core answers
LISTS = {"": (7_600, 30_000), "?output_schema=off": (3_200, 13_000)}  # tokens and bytes of the core
LISTS |= {"?toolset=all": (24_600, None), "?toolset=all&output_schema=off": (10_500, None)}
INPUTS = 9_000  # tokens of names, descriptions and arguments
TOOLS = Registry.load("tools")
WORDS = sized(1, fast=1, long=2)  # arguments that are given at once, of those that are one of several words


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """The demo in the scenario in which most happens."""
    with started("demo", folder=tmp_path_factory.mktemp("busy"), **UNLIMITED) as program:
        httpx.put(f"{program.ready['world_url']}/_sim/scenario", json={"name": "busy"}).raise_for_status()
        yield program


def count(tmp_path, texts):
    """Tokens of each text."""
    installed(NODE, CLIENTS / "node_modules" / "gpt-tokenizer")
    (tmp_path / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    done = ran(NODE, "count_tokens.mjs", tmp_path / "texts.json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def as_sent(value):
    """JSON as the service writes it: no blanks, and letters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def told(program, path, **parameters):
    """An answer's text, of whatever tier."""
    headers = {"authorization": f"Bearer {program.ready['token']}"}
    answer = httpx.get(program.url + path, params=parameters, headers=headers, timeout=30)
    answer.raise_for_status()
    return answer.text


def choices(operation):
    """All combinations of the words that arguments may be, without a limit."""
    words = {
        name: [None, *schema["enum"]]
        for name, schema in operation.input_schema["properties"].items()
        if "enum" in schema and name not in ("limit", "cursor")
    }
    for chosen in itertools.product(*words.values()):
        yield {name: word for name, word in zip(words, chosen, strict=True) if word is not None}


@proves("answers.fit")
def test_an_answer_with_default_arguments_is_short(busy, tmp_path):
    tools = [o for o in TOOLS if o.tier in (Tier.FREE, Tier.PREMIUM) and o.method == "GET" and "{" not in o.path]
    counts = count(tmp_path, [told(busy, o.path) for o in tools])
    found = {o.name: tokens for o, tokens in zip(tools, counts, strict=True)}

    assert len(found) >= 44
    assert {name: tokens for name, tokens in found.items() if tokens > DEFAULT} == {}


@proves("answers.fit")
def test_an_answer_at_its_longest_limit_fits(busy, tmp_path):
    limited = [o for o in TOOLS if o.tier in (Tier.FREE, Tier.PREMIUM) and "limit" in o.input_schema["properties"]]
    asked = [(o, {"limit": o.input_schema["properties"]["limit"]["maximum"]}) for o in limited]
    asked += [(o, chosen | {"text": "whole"}) for o, chosen in asked if "text" in o.input_schema["properties"]]
    counts = count(tmp_path, [told(busy, o.path, **chosen) for o, chosen in asked])

    assert len(asked) >= 20
    assert {f"{o.name} {chosen}": n for (o, chosen), n in zip(asked, counts, strict=True) if n > LONGEST} == {}


def test_an_answer_with_any_words_for_arguments_fits_unless_a_limit_was_given(busy, tmp_path):
    asked = [
        (operation, chosen)
        for operation in TOOLS
        if operation.tier is Tier.FREE and operation.method == "GET"
        for chosen in choices(operation)
        if chosen and len(chosen) <= WORDS
    ]
    counts = count(tmp_path, [told(busy, operation.path, **chosen) for operation, chosen in asked])
    long = [f"{o.name} {chosen}: {n}" for (o, chosen), n in zip(asked, counts, strict=True) if n > ANY]

    assert len(asked) > 20
    assert long == []


def test_meta_is_a_small_part_of_the_core_answers(demo):
    texts = [told(demo, PATHS[name]) for name in CORE]
    parts = [json.dumps(json.loads(text)["_meta"], separators=(",", ":"), ensure_ascii=False) for text in texts]
    meta = sum(len(part.encode()) for part in parts)

    assert meta <= MOST_META * sum(len(text.encode()) for text in texts)


def listed(program, query):
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"accept": "application/json, text/event-stream"}
    answer = httpx.post(f"{program.ready['mcp_url']}{query}", json=message, headers=headers)
    return answer.content, answer.json()["result"]["tools"]


@proves("discovery.small")
def test_the_lists_of_tools_are_short(busy, tmp_path):
    tools = {query: listed(busy, query)[1] for query in LISTS}
    texts = {query: as_sent(found) for query, found in tools.items()}
    tokens = dict(zip(LISTS, count(tmp_path, list(texts.values())), strict=True))
    inputs = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in tools["?toolset=all"]]

    assert len(tools[""]) == 21
    for query, (most_tokens, most_bytes) in LISTS.items():
        assert tokens[query] <= most_tokens, query
        assert most_bytes is None or len(texts[query].encode()) <= most_bytes, query
    assert sum(count(tmp_path, [as_sent(each) for each in inputs])) < INPUTS
