"""A little model: it knows no tool, and only reads what it is shown in a run.

It looks for tools with the search of its host, if there is one, or by the words of names and descriptions, if need be
with a tool that searches tools. It fills arguments from the sentence, and from earlier results, as the schema describes
them. After a refusal it does what the refusal says: sends a candidate, calls again, calls the tool that comes next.
"""

import json
import math
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tests.hosts.model_server import TOOL_SEARCH, Call, Json, Result, ShownTool, Turn

SEARCHES = ("ToolSearch", TOOL_SEARCH)
"""What hosts call the search for tools that they do not show at first."""
SEARCHES_HERE = "no listed tool fits"
"""So a tool of the server says that it searches its tools."""
HAS_A_PRICE = re.compile(r"costs \d+ credits?", re.IGNORECASE)
CODE = re.compile(r"\b(?=\w*\d)[\w-]{20,}\b")
NOT_TO_GUESS = re.compile(r"token|only if|signature|ISO 8601|cursor|optional lock|question", re.IGNORECASE)
"""Descriptions of arguments that no name in a sentence stands for."""
FROM_ANSWER = re.compile(r"\bfrom \w+_\w+")
"""So a description says that the answer of another tool has the value."""
FEWEST = 20  # tools, in how rare a word counts as: of five that a search has found, each word is in few
FITS = 0.3  # of what a sentence says, as little as a listed tool must have in its words
TRIES = 4  # of one call that is refused
MOST_CALLS = 14  # for one sentence
CONNECTS_S = 1.0
NO_WORDS = frozenset(
    "a an and any are at be by can do does for from get give has have how i in is it its last me more most much my now "
    "of on or one other please so that the there this to tool use what when which with you your call s".split()
)


class Reader:
    """Plays one conversation. `of_server` are the beginnings of the names or namespaces of the server's tools."""

    def __init__(self, of_server: Sequence[str]) -> None:
        self.of_server = tuple(of_server)

    def __call__(self, turn: Turn) -> Call | str:
        results = turn.results
        if not results:
            return self._begin(turn)
        last = results[-1]
        if len(results) >= MOST_CALLS:
            return f"I have tried {len(results)} times: {last.text}"
        if last.call.name in SEARCHES:
            if not self._tools(turn):
                time.sleep(CONNECTS_S)  # the host may not have reached the server yet: a real model takes longer
                return last.call
            return self._choose(turn) or last.text
        problem = find_problem(last.text)
        tool = self._named(turn, last.call.name)
        if problem is None and tool is not None and SEARCHES_HERE in tool.description:
            return self._run(turn, last) or last.text
        if problem is None or tool is None:
            return last.text
        if sum(one.call.name == last.call.name for one in results) >= TRIES:
            return last.text
        return follow(problem, tool, last.call) or last.text

    def _tools(self, turn: Turn) -> list[ShownTool]:
        """The tools of the server, as far as the host shows them."""
        return [tool for tool in turn.tools if (tool.namespace or tool.name).startswith(self.of_server)]

    def _own_name(self, tool: ShownTool) -> str:
        """The name that the server gave a tool, without what the host puts before it."""
        return next((tool.name.removeprefix(one) for one in self.of_server if tool.name.startswith(one)), tool.name)

    def _named(self, turn: Turn, name: str) -> ShownTool | None:
        return next((tool for tool in self._tools(turn) if tool.name == name), None)

    def _begin(self, turn: Turn) -> Call | str:
        search = next((tool for tool in turn.tools if tool.name in SEARCHES), None)
        if search:
            return Call(search.name, {search.schema["required"][0]: keywords(turn.sentence)})
        return self._choose(turn) or "I see no tool for that."

    def _choose(self, turn: Turn) -> Call | None:
        """Return a call of the tool that fits the sentence best, of those that were shown at first or found since."""
        tools = self._tools(turn)
        by_name = {tool.name: tool for tool in tools}
        fits = score(turn.sentence, tools)
        if not fits:
            return None
        calls = {name: Call(name, fill(tool.schema, turn), tool.namespace) for name, tool in by_name.items()}
        best = max(fits, key=lambda name: fits[name] * doubt(turn.sentence, by_name[name], calls[name]))
        if set(by_name[best].schema.get("required", ())) - set(calls[best].arguments):
            return self._look_up(turn, by_name[best]) or calls[best]
        search = next((tool for tool in tools if SEARCHES_HERE in tool.description), None)
        if fits[best] < FITS and search is not None:
            texts = [name for name, shape in search.schema["properties"].items() if shape.get("type") == "string"]
            return Call(search.name, {texts[0]: turn.sentence}, search.namespace)
        return calls[best]

    def _look_up(self, turn: Turn, tool: ShownTool) -> Call | None:
        """Return a call of the tool that comes after one, as its description says, or a search for it."""
        after = re.search(r"then call (\w+)|, call (\w+_\w+)", tool.description)
        if after is None:
            return None
        name = after[1] or after[2]
        shown = next((one for one in self._tools(turn) if self._own_name(one) == name), None)
        if shown is not None:
            return Call(shown.name, fill(shown.schema, turn), shown.namespace)
        search = next((one for one in turn.tools if one.name in SEARCHES), None)
        return Call(search.name, {search.schema["required"][0]: name}) if search else None

    def _run(self, turn: Turn, result: Result) -> Call | None:
        """Return a call of the first of the tools that the server's own search has found."""
        found = next((one for one in objects(result.text) if "input_schema" in one), None)
        if found is None:
            return None
        arguments = fill(found["input_schema"], turn)
        tool = next((tool for tool in self._tools(turn) if self._own_name(tool) == found["name"]), None)
        if tool is not None:
            return Call(tool.name, arguments, tool.namespace)
        return Call(result.call.name, {"call": {"name": found["name"], "arguments": arguments}}, result.call.namespace)


def words_of(text: str) -> list[str]:
    """The words that say something, without endings."""
    words = re.findall(r"[a-z0-9]+", text.lower().replace("_", " "))
    return [re.sub(r"(?<=\w{3})(ies|es|s|ing|ed|e)$", "", word) for word in words if word not in NO_WORDS]


def keywords(sentence: str) -> str:
    """Return the words of a sentence that say something, as models send them to the searches of their hosts."""
    return " ".join(word for word in re.findall(r"[\w.$-]*\w", sentence) if word.lower() not in NO_WORDS)


def score(sentence: str, tools: Iterable[ShownTool]) -> dict[str, float]:
    """How much of a sentence the words of each tool have, from 0 to 1: rare words and those of its name count more.

    A number is no topic.
    """
    texts = {tool.name: words_of(tool.name) * 2 + words_of(tool.description) for tool in tools}
    found_in = Counter(word for words in texts.values() for word in set(words))
    many = max(len(texts), FEWEST)
    weights = {word: math.log(1 + many / (found_in[word] or 0.5)) for word in words_of(sentence) if not word.isdigit()}
    whole = sum(weights.values()) or 1.0
    return {
        name: sum(weight * min(1.0, 0.7 + 0.1 * words.count(word)) for word, weight in weights.items() if word in words)
        / whole
        / (1 + len(words) / 400)
        for name, words in texts.items()
    }


def doubt(sentence: str, tool: ShownTool, call: Call) -> float:
    """How much to take off for a price that the user has not asked for, and for arguments that the sentence lacks."""
    priced = HAS_A_PRICE.search(tool.description) and not {"premium", "paid", "credit"} & set(words_of(sentence))
    lacks = set(tool.schema.get("required", ())) - set(call.arguments)
    return (0.5 if priced else 1.0) * (0.3 if lacks else 1.0)


def fill(schema: Json, turn: Turn) -> Json:
    """Return the arguments that the sentence, or an earlier result, has for the properties of a schema."""
    required = schema.get("required", ())
    arguments: Json = {}
    names, codes = proper_names(turn.sentence), CODE.findall(turn.sentence)
    for name, shape in (schema.get("properties") or {}).items():
        is_answered = FROM_ANSWER.search(shape.get("description", "")) is not None
        value: Any = None
        if "enum" in shape:
            value = choose_value(turn.sentence, shape)
        elif shape.get("type") in ("number", "integer"):
            value = find_number(turn.sentence, name, shape, name in required)
        elif shape.get("type") == "string" and name in required:
            said, answered = next(iter(codes), None), remember(name, turn) or remember_described(shape, turn)
            value = answered or said if is_answered else said or answered
            codes = [code for code in codes if code != value]
        elif shape.get("type") == "string":
            value = next((one for one in names if is_meant(one, shape)), None) or remember_code(name, turn)
            names = [one for one in names if one != value]
        if value is not None:
            arguments[name] = value
    return arguments


def earlier(turn: Turn) -> Iterator[str]:
    """The texts of earlier results, the newest first."""
    return (one.text for one in reversed(turn.said) if isinstance(one, Result))


def remember(name: str, turn: Turn) -> str | None:
    """Return what an earlier answer calls by the name of an argument. The definitions of tools are no answer."""
    for text in earlier(turn):
        shown = list(objects(text))
        if any("input_schema" in one for one in shown):
            continue
        for one in shown:
            if isinstance(one.get(name), str):
                return str(one[name])
    return None


def remember_code(name: str, turn: Turn) -> str | None:
    """Return what an earlier answer calls by the name of an argument, if nobody says such a thing: a token, an id."""
    value = remember(name, turn)
    return value if value and CODE.fullmatch(value) else None


def remember_described(shape: Json, turn: Turn) -> str | None:
    """Return what an earlier result calls by a word of the description of an argument."""
    words = re.findall(r"[a-z_]{3,}", shape.get("description", ""))
    return next((value for word in words if (value := remember(word, turn))), None)


def find_number(sentence: str, name: str, shape: Json, required: bool) -> float | int | None:
    """Return a number of the sentence: for a required property, or one whose own words stand in the sentence."""
    numbers = re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\w)", sentence)
    about = set(words_of(f"{name} {shape.get('description', '')}"))
    if not numbers or not (required or about & set(words_of(sentence))):
        return None
    value = float(numbers[0])
    return int(value) if value == int(value) else value


def choose_value(sentence: str, shape: Json) -> str | None:
    """Return the one of some values that the sentence has, or whose part of the description has words of it."""
    asked = set(words_of(sentence))
    for value in shape["enum"]:
        about = re.search(rf"\b{re.escape(str(value))}\b(.*?)(?=;|,|\bor\b|$)", shape.get("description", ""))
        if asked & set(words_of(f"{value} {about[1] if about else ''}")):
            return str(value)
    return None


def proper_names(sentence: str) -> list[str]:
    """The names and codes of a sentence, such as "San Francisco, CA" or "ETH": longest first."""
    rest = re.sub(r"^\W*\w+('s)?", "", sentence)  # its first word has a capital anyway
    names = re.findall(r"[A-Z][\w.-]*(?:,? [A-Z][\w.-]*)*", rest)
    return sorted((name.rstrip(".") for name in names), key=len, reverse=True)


def is_meant(name: str, shape: Json) -> bool:
    """Whether an argument may stand for a name: some take codes in capitals only, and some take no name."""
    description, examples = shape.get("description", ""), [str(one) for one in shape.get("examples", ())]
    codes = all(one.upper() == one for one in examples) if examples else "ticker" in description.lower()
    fits = shape.get("minLength", 0) <= len(name) <= shape.get("maxLength", 80)
    return fits and not NOT_TO_GUESS.search(description) and (name.upper() == name or not codes)


def find_problem(text: str) -> Json | None:
    """Return the problem that a text tells of: an object with `error`, wherever a host has put it."""
    return next((one for one in objects(text) if isinstance(one.get("error"), str)), None)


def objects(text: str) -> Iterator[Json]:
    """The JSON objects of a text, and of texts in them, outermost first."""
    decoder = json.JSONDecoder()
    at = 0
    while (begin := min((i for i in (text.find("{", at), text.find("[", at)) if i >= 0), default=-1)) >= 0:
        try:
            value, at = decoder.raw_decode(text, begin)
        except ValueError:
            at = begin + 1
            continue
        yield from _within(value)


def _within(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        yield value
    if isinstance(value, str) and "{" in value:
        yield from objects(value)
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _within(part)


def follow(problem: Json, tool: ShownTool, call: Call) -> Call | None:
    """Return the call that a refusal asks for, or None if it asks for none that the model can make."""
    if problem["error"] == "invalid_arguments":
        wrong = next(iter(problem.get("errors") or ()), {}).get("loc")
        sent = set(words_of(str(call.arguments.get(wrong, ""))))
        meant = next((one for one in problem.get("did_you_mean") or () if sent & set(words_of(one))), None)
        if wrong in call.arguments and "leave this argument out" in str(problem.get("detail")):
            arguments = {name: value for name, value in call.arguments.items() if name != wrong}
            return Call(call.name, arguments, call.namespace)
        if wrong in (tool.schema.get("properties") or {}) and meant:
            return Call(call.name, {**call.arguments, wrong: meant}, call.namespace)
        return None
    if "retry_after_seconds" in problem or "call it again" in str(problem.get("detail")):
        return call if problem["error"] != "rate_limited" else None
    return None
