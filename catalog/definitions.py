"""A tool written as each model provider wants its function definitions."""

from typing import Any

from toolserver.registry.placement import place_arguments
from toolserver.registry.registry import Operation
from toolserver.registry.response_schema import answer_schema
from toolserver.registry.site_facts import SiteFacts, auth

Definition = dict[str, Any]

_MAPS = {"properties", "$defs"}  # members whose keys are names
_VALUES = {"default", "enum"}  # members that hold values, not schemas
_GEMINI_KEYWORDS = frozenset(
    "type format title description default items minItems maxItems enum properties required minProperties maxProperties"
    " minimum maximum minLength maxLength pattern anyOf uniqueItems $ref $defs oneOf".split()
)


def raw(operation: Operation, facts: SiteFacts) -> Definition:
    """Everything about the tool in our own words, for clients that build their own layout or call REST."""
    return {
        "name": operation.name,
        "title": operation.title,
        "description": operation.description,
        "url": facts.url(operation.path),
        "method": operation.method,
        "auth": auth(operation),
        "tier": operation.tier.value,
        "cost_credits": operation.credits,
        "cache_ttl_s": operation.longest_ttl,
        "parameters": operation.input_schema,
        "returns": answer_schema(operation),
    }


def route(operation: Operation) -> Definition:
    """How the tool is called over HTTP; argument names in braces stand in the path."""
    return {
        "method": operation.method,
        "path": operation.path,
        "auth": auth(operation),
        "arguments": place_arguments(operation),
    }


def openai(operation: Operation) -> Definition:
    """OpenAI chat completions. `strict` is left out: it would make every optional argument required."""
    return {"type": "function", "function": {**_named(operation), "parameters": operation.input_schema}}


def openai_responses(operation: Operation) -> Definition:
    """OpenAI responses: flat, and `strict` is said to be off, because there it is on when nothing is said."""
    return {"type": "function", **_named(operation), "parameters": operation.input_schema, "strict": False}


def anthropic(operation: Operation) -> Definition:
    """Anthropic messages."""
    return {**_named(operation), "input_schema": operation.input_schema}


def gemini(operation: Operation) -> Definition:
    """A Gemini function declaration, with the arguments as JSON Schema; left out when a tool takes none.

    (`parameters`, the other form, knows only a part of JSON Schema and refuses an object without members.)
    """
    if not operation.input_schema["properties"]:
        return _named(operation)
    return {**_named(operation), "parametersJsonSchema": _only(operation.input_schema, _GEMINI_KEYWORDS)}


def bedrock(operation: Operation) -> Definition:
    """Amazon Bedrock converse."""
    return {"toolSpec": {**_named(operation), "inputSchema": {"json": operation.input_schema}}}


def _only(node: Any, keywords: frozenset[str]) -> Any:
    """A schema without the keywords that a provider does not know. We check arguments by the whole schema anyway."""
    if isinstance(node, list):
        return [_only(item, keywords) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {key: value for key, value in node.items() if key in keywords}
    maps = {key: {name: _only(inner, keywords) for name, inner in kept[key].items()} for key in _MAPS & kept.keys()}
    plain = {key: _only(value, keywords) for key, value in kept.items() if key not in _MAPS | _VALUES}
    return {**kept, **plain, **maps}


def _named(operation: Operation) -> Definition:
    return {"name": operation.name, "description": operation.description}
