"""Writes a tool in the function definition format of each model provider."""

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
    """Return everything about the tool in our own layout, for clients that build their own or call REST."""
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
    """Return how the tool is called over HTTP, and what a call costs. Argument names in braces are in the path."""
    return {
        "method": operation.method,
        "path": operation.path,
        "auth": auth(operation),
        "credits": operation.credits,
        "arguments": place_arguments(operation),
    }


def openai(operation: Operation) -> Definition:
    """Return the OpenAI chat completions format. `strict` is omitted, as it would make every argument required."""
    return {"type": "function", "function": {**_named(operation), "parameters": operation.input_schema}}


def openai_responses(operation: Operation) -> Definition:
    """Return the OpenAI responses format: flat, with `strict` off explicitly because it is on by default."""
    return {"type": "function", **_named(operation), "parameters": operation.input_schema, "strict": False}


def anthropic(operation: Operation) -> Definition:
    """Return the Anthropic messages format."""
    return {**_named(operation), "input_schema": operation.input_schema}


def gemini(operation: Operation) -> Definition:
    """Return a Gemini function declaration, with the arguments as JSON Schema, or without them if a tool takes none.

    (The other form, `parameters`, supports only a part of JSON Schema and refuses an object without members.)
    """
    if not operation.input_schema["properties"]:
        return _named(operation)
    return {**_named(operation), "parametersJsonSchema": _only(operation.input_schema, _GEMINI_KEYWORDS)}


def bedrock(operation: Operation) -> Definition:
    """Return the Amazon Bedrock converse format."""
    return {"toolSpec": {**_named(operation), "inputSchema": {"json": operation.input_schema}}}


def _only(node: Any, keywords: frozenset[str]) -> Any:
    """Return a schema without keywords that a provider does not support. The server checks the whole schema anyway."""
    if isinstance(node, list):
        return [_only(item, keywords) for item in node]
    if not isinstance(node, dict):
        return node
    allowed = {key: value for key, value in node.items() if key in keywords}
    maps = {
        key: {name: _only(inner, keywords) for name, inner in allowed[key].items()} for key in _MAPS & allowed.keys()
    }
    plain = {key: _only(value, keywords) for key, value in allowed.items() if key not in _MAPS | _VALUES}
    return {**allowed, **plain, **maps}


def _named(operation: Operation) -> Definition:
    return {"name": operation.name, "description": operation.description}
