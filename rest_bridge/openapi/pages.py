"""Describes the API's paths that are not tools: discovery, the MCP endpoint, readiness, error pages."""

from typing import Any, get_args

from rest_bridge.openapi.parts import failure, head, headers
from toolserver.registry.error_codes import PROBLEMS
from toolserver.registry.json_schema import Schema
from toolserver.registry.placement import Place
from toolserver.registry.registry import TOOLSETS, Registry
from toolserver.registry.site_facts import HTML, JSON, LIVE, READYZ, STATUS_JSON, TOOL_FORMATS, TOOL_TIERS
from toolserver.registry.site_pages import SitePage, pages

_LIST: Schema = {"type": "array", "items": {"type": "object"}}
_ROUTE: Schema = {
    "type": "object",
    "properties": {
        "method": {"type": "string"},
        "path": {"type": "string"},
        "auth": {"type": "string", "enum": ["none", "bearer"]},
        "credits": {"type": "integer", "description": "What a call costs"},
        "arguments": {
            "type": "object",
            "additionalProperties": {"type": "string", "enum": list(get_args(Place))},
            "description": "Where each argument goes",
        },
    },
    "required": ["method", "path", "auth", "credits", "arguments"],
}
_SOURCE_STATUS: Schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "state": {"type": "string", "enum": ["up", "failing", "down", "unknown"]},
        "circuit": {"type": "string", "enum": ["closed", "open", "half_open"]},
        "last": {
            "type": ["string", "null"],
            "description": "How the last exchange ended: `ok`, or one word for the fault",
        },
        **{name: {"type": ["string", "null"], "format": "date-time"} for name in ("asked_at", "good_at", "changed_at")},
        **{name: {"type": "object", "description": "Exchanges, and shares of them"} for name in ("hour", "past_day")},
        "day": {
            "type": "string",
            "pattern": "^[gpf.]{96}$",
            "description": "For each quarter of an hour: all exchanges good (g), some (p), none (f), or not asked (.)",
        },
    },
    "required": ["name", "state", "circuit", "last", "asked_at", "good_at", "changed_at", "hour", "past_day", "day"],
}
_BODIES: dict[str, Schema] = {
    "/api/llm-tools": {
        "type": "object",
        "properties": {
            "source": {"type": "string"},
            "generated_at": {"type": "string", "format": "date-time"},
            "docs": {"type": "string", "format": "uri"},
            "auth": {"type": "object"},
            "count": {"type": "integer"},
            **{name: _LIST for name in TOOL_FORMATS if name not in ("both", "routes")},
            "base_url": {"type": "string", "format": "uri"},
            "calling": {"type": "string", "description": "How to call a tool by its route"},
            "routes": {"type": "object", "additionalProperties": _ROUTE, "description": "By the names of the tools"},
        },
        "required": ["source", "generated_at", "docs", "auth", "count", "base_url", "calling", "routes"],
    },
    LIVE: {
        "type": "object",
        "properties": {"generated_at": {"type": "string", "format": "date-time"}, "values": _LIST},
        "required": ["generated_at", "values"],
    },
    STATUS_JSON: {
        "type": "object",
        "properties": {
            "generated_at": {"type": "string", "format": "date-time"},
            "status": {"type": "string", "enum": ["ok", "degraded"]},
            "checks": {"type": "object", "additionalProperties": {"type": "boolean"}},
            "service": {"type": "object"},
            "ledger": {"type": "object"},
            "chain": {"type": ["object", "null"]},
            "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
            "quarter_s": {"type": "integer"},
            "day_from": {
                "type": "string",
                "format": "date-time",
                "description": "Start of `day`",
            },
            "sources": {"type": "array", "items": _SOURCE_STATUS},
            "changes": _LIST,
        },
        "required": ["generated_at", "status", "checks", "service", "ledger", "chain", "counts", "sources", "changes"],
    },
    READYZ: {
        "type": "object",
        "properties": {
            "ready": {"type": "boolean"},
            "checks": {"type": "object", "additionalProperties": {"type": "boolean"}},
            "degraded": _LIST,
        },
        "required": ["ready", "checks", "degraded"],
    },
}


def describe_pages(registry: Registry) -> dict[str, Schema]:
    """Return the path items, by path, of the pages that the API description covers."""
    described = {page.path: _item(page, registry) for page in pages(registry) if page.described}
    return {**described, "/problems/{code}": _problem_page()}


def _item(page: SitePage, registry: Registry) -> Schema:
    if page.path == "/api/mcp":
        return {"post": _mcp_post([operation.name for operation in registry]), "get": _mcp_get(page)}
    get = _get(page, registry)
    return {"get": get, "head": head(get)}


def _get(page: SitePage, registry: Registry) -> Schema:
    get: Schema = {
        "operationId": _identifier(page.path),
        "tags": ["service"],
        "summary": page.title,
        "description": page.summary,
        "responses": {"200": _ok(page), "500": failure(500)},
    }
    if page.path == "/api/llm-tools":
        get["parameters"] = [_choice("format", TOOL_FORMATS, "both"), _choice("tier", TOOL_TIERS)]
        get["parameters"] += [_choice("toolset", TOOLSETS, "all"), _names([operation.name for operation in registry])]
        get["responses"]["400"] = failure(400)
    if page.path == READYZ:
        get["responses"]["503"] = {**_ok(page), "description": "Not ready"}
    return get


def _identifier(path: str) -> str:
    """Return the operation id of a path: `/.well-known/api-catalog` -> `well_known_api_catalog`."""
    return "_".join("".join(c if c.isalnum() else " " for c in path.removeprefix("/api")).split())


def _ok(page: SitePage) -> Schema:
    content = _content(page.media_type)
    if page.markdown:
        content |= _content("text/markdown")
    if page.path in _BODIES:
        content = {JSON: {"schema": _BODIES[page.path]}}
    return {"description": page.title, "headers": headers(["X-Request-Id"]), "content": content}


def _content(media_type: str) -> Schema:
    return {media_type: {"schema": {"type": "object" if "json" in media_type else "string"}}}


def _choice(name: str, values: tuple[str, ...], default: str | None = None) -> Schema:
    schema: dict[str, Any] = {"type": "string", "enum": list(values)}
    return {"name": name, "in": "query", "schema": schema | ({"default": default} if default else {})}


def _names(tools: list[str]) -> Schema:
    """Return the parameter `tools`, which takes names instead of a toolset."""
    return {
        "name": "tools",
        "in": "query",
        "style": "form",
        "explode": False,
        "schema": {"type": "array", "items": {"type": "string", "enum": tools}, "minItems": 1},
        "description": "Tool names, separated by commas",
    }


def _problem_page() -> Schema:
    code = {"type": "string", "enum": list(PROBLEMS)}
    get = {
        "operationId": "problem",
        "tags": ["service"],
        "summary": "What an error code means and what to do about it",
        "parameters": [{"name": "code", "in": "path", "required": True, "schema": code}],
        "responses": {
            "200": {"description": "The page", "content": _content(HTML.split(";")[0])},
            "404": failure(404),
            "500": failure(500),
        },
    }
    return {"get": get, "head": head(get)}


def _mcp_post(tools: list[str]) -> Schema:
    identifier = {"type": ["string", "integer", "null"]}
    request = {
        "type": "object",
        "properties": {
            "jsonrpc": {"type": "string", "enum": ["2.0"]},
            "id": {"type": ["string", "integer"]},
            "method": {"type": "string", "examples": ["tools/call"]},
            "params": {"type": "object"},
        },
        "required": ["jsonrpc", "method"],
    }
    response = {
        "type": "object",
        "properties": {
            "jsonrpc": {"type": "string", "enum": ["2.0"]},
            "id": identifier,
            "result": {"type": "object"},
            "error": {"type": "object"},
        },
        "required": ["jsonrpc", "id"],
    }
    answer = {"schema": response}
    listing = {"value": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}}
    return {
        "operationId": "mcp",
        "tags": ["service"],
        "summary": "Model Context Protocol",
        "description": "JSON-RPC 2.0 without a handshake or session. Failures of tools are results with `isError`."
        " A token in the Authorization header pays for premium tools. `?toolset=core|all` or `?tools=a,b` narrows the"
        " list, `?output_schema=off` shortens it, `?meta=short` shortens `_meta` of answers.",
        "parameters": [
            _choice("toolset", TOOLSETS, "core"),
            _names(tools),
            _choice("output_schema", ("on", "off"), "on"),
            _choice("meta", ("full", "short"), "full"),
        ],
        "security": [{}, {"bearer": []}],
        "requestBody": {"required": True, "content": {JSON: {"schema": request, "examples": {"list": listing}}}},
        "responses": {
            "200": {"description": "The response", "content": {JSON: answer}},
            "202": {"description": "The notification was accepted"},
            "400": {"description": "Not a request of this protocol", "content": {JSON: answer}},
            "403": {"description": "The Origin is not allowed"},
            "404": {"description": "The protocol has no such method", "content": {JSON: answer}},
            "413": failure(413),
            "415": failure(415),
        },
    }


def _mcp_get(page: SitePage) -> Schema:
    return {
        "operationId": "mcp_description",
        "tags": ["service"],
        "summary": "What the MCP endpoint is",
        "responses": {
            "200": {"description": page.summary, "content": _content(JSON)},
            "405": {
                "description": "The client asked for an event stream; this endpoint has none",
                "headers": headers(["Allow"]),
            },
        },
    }
