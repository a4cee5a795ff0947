"""Tools are found by everyday words."""

import re

import pytest

from tests.registry.everyday_questions import read_everyday_questions
from tests.registry.keyword_search import search_as_claude_code
from tests.requirements import proves
from toolserver.registry import tool_index
from toolserver.registry.registry import HINT_WORDS, Registry, Tier
from toolserver.registry.tool_index import ToolIndex, describe_tool, split_words

REGISTRY = Registry.load("tools")
INDEX = ToolIndex(REGISTRY)


def test_a_second_index_of_the_same_tools_reads_none_of_them_again(monkeypatch):
    read = []
    monkeypatch.setattr(tool_index, "split_words", lambda text: read.append(text) or split_words(text))
    again = ToolIndex(REGISTRY.unlist(["weather"]))
    assert read == []
    assert again.search("weather", 1) == INDEX.search("weather", 1)
    assert read != []


def found(query, limit=5):
    return [operation.name for operation in INDEX.search(query, limit)]


@proves("find-tools.questions")
@pytest.mark.parametrize("held_out", [False, True])
def test_everyday_questions_find_their_tool(held_out):
    asked = [each for each in read_everyday_questions() if each.held_out is held_out]
    ranked = {each.question: found(each.question) for each in asked}
    first = [each for each in asked if ranked[each.question][:1] == [each.tool]]
    among = [each for each in asked if each.tool in ranked[each.question]]
    assert len(first) >= 0.8 * len(asked), [(q, names[:2]) for q, names in ranked.items()]
    assert len(among) >= 0.95 * len(asked)


@pytest.mark.parametrize(
    ("misspelt", "name"),
    [
        ("wether in Paris", "weather"),
        ("earthqake", "earthquakes"),
        ("vulcano", "volcanoes"),
        ("exchnage rates", "forex"),
        ("astronautes", "humans_in_space"),
        ("UNEMPLOYMNET", "economic_data"),
    ],
)
def test_typing_errors_do_not_matter(misspelt, name):
    assert found(misspelt)[0] == name


@pytest.mark.parametrize("operation", list(REGISTRY), ids=lambda operation: operation.name)
def test_every_tool_is_found_by_its_name_and_by_its_title(operation):
    assert operation.name in found(operation.name)
    assert operation.name in found(operation.title)


def test_a_free_tool_comes_before_a_priced_one_that_fits_as_well():
    assert found("briefing")[0] == "briefing"
    assert found("github trending repositories")[0] == "code_host_trending"


@pytest.mark.parametrize("query", ["", "  ", "what is the", "?!", "zzzzqqqq", "x" * 300])
def test_without_a_word_that_a_tool_has_the_first_tools_are_listed(query):
    assert found(query) == [operation.name for operation in list(REGISTRY)[:5]]


def test_words_lose_their_endings():
    assert len({word for text in ("erupting", "erupted", "erupts") for word in split_words(text)}) == 1
    assert split_words("Is it the") == []


def test_hints_are_short_and_every_tool_has_one():
    lengths = {operation.name: len(operation.search_hint.split()) for operation in REGISTRY}
    assert {name for name, length in lengths.items() if not 3 <= length <= HINT_WORDS} == set()


def test_no_hint_holds_five_words_of_a_question_in_a_row():
    """Hints are other words for what a tool answers, not the questions that they are judged by."""
    for each in read_everyday_questions():
        asked, hint = (re.findall(r"[\w']+", text.casefold()) for text in (each.question, hint_of(each.tool)))
        runs = {tuple(asked[n : n + 5]) for n in range(len(asked) - 4)}
        assert not runs & {tuple(hint[n : n + 5]) for n in range(len(hint) - 4)}, (each.question, hint)


def hint_of(name):
    return REGISTRY[name].search_hint


@proves("find-tools.hints")
def test_the_keyword_search_of_a_host_finds_the_tool_among_all():
    """A tool that is always loaded needs no search: the model has it."""
    asked = read_everyday_questions()
    ranked = {each.question: search_as_claude_code(each.question, REGISTRY) for each in asked}
    loaded = {operation.name for operation in REGISTRY if operation.always_loaded}
    first = [each for each in asked if each.tool in loaded or ranked[each.question][:1] == [each.tool]]
    among = [each for each in asked if each.tool in loaded or each.tool in ranked[each.question]]
    assert len(first) >= 0.8 * len(asked), [(q, names[:2]) for q, names in ranked.items()]
    assert len(among) >= 0.95 * len(asked)


def test_three_free_tools_at_most_are_always_loaded():
    loaded = [operation for operation in REGISTRY if operation.always_loaded]
    assert 1 <= len(loaded) <= 3
    assert all(operation.tier is Tier.FREE and operation.toolset == "core" for operation in loaded)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("air_quality", 'find_tools with `call` {"name": "air_quality", "arguments": {…}}'),
        ("premium_whales", "?toolset=all"),
        ("find_tools", "?toolset=all"),
    ],
)
def test_a_definition_says_how_to_call_the_tool(name, how):
    described = describe_tool(REGISTRY[name])
    assert how in described["mcp"]
    assert described["rest"] == f"GET {REGISTRY[name].path}"
    assert described["cost_credits"] == REGISTRY[name].credits
    assert described["input_schema"] == REGISTRY[name].input_schema
    assert described["arguments_in"].keys() == described["input_schema"]["properties"].keys()
