"""A little model: it knows no tool, and only reads what it is shown in a run.

It looks for tools with the search of its host, if there is one, or by the words of names and descriptions, if need be
with a tool that searches tools. It fills arguments from the sentence, and from earlier results, as the schema describes
them. After a refusal it does what the refusal says: sends a candidate, calls again, calls the tool that comes next.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tests.hosts.model_server import TOOL_SEARCH, Call, Json, Result, ShownTool, Turn

SEARCHES = ("ToolSearch", TOOL_SEARCH)
"""What hosts call the search for tools that they do not show at first."""
FEW_WORDS = 1.0  # below this score the words of a sentence name no tool
TRIES = 4  # of one call that is refused
MOST_CALLS = 14  # for one sentence
NO_WORDS = frozenset(
    "a an and any are at be by can do does for from get give has have how i in is it its last me more most much my now "
    "of on or one other please so that the there this to tool use what when which with you your call s".split()
)


class Reader:
    """Plays one conversation. `of_server` are the beginnings of the names or namespaces of the server's tools."""

    def __init__(self, of_server: Sequence[str]) -> None:
        self.of_server = tuple(of_server)
        self.searched = ""

    def __call__(self, turn: Turn) -> Call | str:
        results = turn.results
        if not results:
            return self._begin(turn)
        last = results[-1]
        if len(results) >= MOST_CALLS:
            return f"I have tried {len(results)} times: {last.text}"
        if last.call.name in SEARCHES:
            return self._choose(turn, last.text.splitlines()) or last.text
        problem = find_problem(last.text)
        tool = self._named(turn, last.call.name)
        if problem is None or tool is None:
            return last.text
        if sum(one.call.name == last.call.name for one in results) >= TRIES:
            return last.text
        return follow(problem, tool, last.call) or last.text

    def _tools(self, turn: Turn) -> list[ShownTool]:
        """The tools of the server, as far as the host shows them."""
        return [tool for tool in turn.tools if (tool.namespace or tool.name).startswith(self.of_server)]

    def _named(self, turn: Turn, name: str) -> ShownTool | None:
        return next((tool for tool in self._tools(turn) if tool.name == name), None)

    def _begin(self, turn: Turn) -> Call | str:
        search = next((tool for tool in turn.tools if tool.name in SEARCHES), None)
        if search:
            return Call(search.name, {search.schema["required"][0]: turn.sentence})
        return self._choose(turn) or "I see no tool for that."

    def _choose(self, turn: Turn, listed: Sequence[str] = ()) -> Call | None:
        """Return a call of the tool that fits the sentence best, of those that a search has found if there was one."""
        tools = self._tools(turn)
        shown = [tool for tool in tools if tool.name in listed] or tools
        scores = score(turn.sentence, shown)
        if not scores:
            return None
        best = max(scores, key=lambda name: scores[name])
        tool = next(tool for tool in shown if tool.name == best)
        return Call(tool.name, fill(tool.schema, turn), tool.namespace)


def words_of(text: str) -> list[str]:
    """The words that say something, without endings."""
    words = re.findall(r"[a-z0-9]+", text.lower().replace("_", " "))
    return [re.sub(r"(?<=\w{3})(ies|es|s|ing|ed)$", "", word) for word in words if word not in NO_WORDS]


def score(sentence: str, tools: Iterable[ShownTool]) -> dict[str, float]:
    """How well each tool fits: rare words count more, and words of its name twice."""
    texts = {tool.name: words_of(tool.name) * 2 + words_of(tool.description) for tool in tools}
    found_in = Counter(word for words in texts.values() for word in set(words))
    asked = set(words_of(sentence))
    return {
        name: sum(
            math.log(1 + len(texts) / found_in[word]) * (1 + 0.3 * min(words.count(word) - 1, 2))
            for word in asked
            if word in words
        )
        / (1 + len(words) / 400)
        for name, words in texts.items()
    }


def fill(schema: Json, turn: Turn) -> Json:
    """Return the arguments that the sentence, or an earlier result, has for the properties of a schema."""
    required = schema.get("required", ())
    arguments: Json = {}
    names = proper_names(turn.sentence)
    for name, shape in (schema.get("properties") or {}).items():
        value: Any = None
        if "enum" in shape:
            value = choose_value(turn.sentence, shape)
        elif "pattern" in shape:
            value = find_pattern(shape["pattern"], [turn.sentence, *earlier(turn)]) if name in required else None
        elif shape.get("type") in ("number", "integer"):
            value = find_number(turn.sentence, name, shape, name in required)
        elif shape.get("type") == "string":
            value = remember(name, turn)
            if value is None and (examples := shape.get("examples")):
                value = next((one for one in names if looks_like(one, examples, shape)), None)
                names = [one for one in names if one != value]
        if value is not None:
            arguments[name] = value
    return arguments


def earlier(turn: Turn) -> Iterator[str]:
    """The texts of earlier results, the newest first."""
    return (one.text for one in reversed(turn.said) if isinstance(one, Result))


def remember(name: str, turn: Turn) -> str | None:
    """Return what an earlier result calls by the name of an argument."""
    for text in earlier(turn):
        match = re.search(rf'\\*"{name}\\*"\s*:\s*\\*"([^"\\]+)', text)
        if match:
            return match[1]
    return None


def find_pattern(pattern: str, texts: Iterable[str]) -> str | None:
    """Return the first part of the texts that a whole pattern describes."""
    inner = re.compile(r"(?<![\w-])" + pattern.removeprefix("^").removesuffix("$") + r"(?![\w-])")
    return next((match[0] for text in texts if (match := inner.search(text))), None)


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


def looks_like(name: str, examples: Sequence[str], shape: Json) -> bool:
    """Whether a name has the look of the examples: codes in capitals, or a name."""
    shortest, longest = shape.get("minLength", 0), shape.get("maxLength", 10**6)
    codes = all(str(example).upper() == str(example) for example in examples)
    return shortest <= len(name) <= longest and (name.upper() == name or not codes)


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
        meant = next(iter(problem.get("did_you_mean") or ()), None)
        if wrong in (tool.schema.get("properties") or {}) and meant:
            return Call(call.name, {**call.arguments, wrong: meant}, call.namespace)
        return None
    if "retry_after_seconds" in problem or "call it again" in str(problem.get("detail")):
        return call if problem["error"] != "rate_limited" else None
    return None
