"""Describes the API's paths that are not tools: discovery, the MCP endpoint, readiness, error pages."""

from typing import Any, get_args

from rest_bridge.openapi.parts import failure, head, headers
from toolserver.registry.error_codes import PROBLEMS
from toolserver.registry.json_schema import Schema
from toolserver.registry.placement import Place
from toolserver.registry.registry import TOOLSETS, Registry
from toolserver.registry.site_facts import (
    HTML,
    JSON,
    LEDGER_HEALTH,
    LIVE,
    LIVEZ,
    READYZ,
    STATUS_JSON,
    TOOL_FORMATS,
    TOOL_TIERS,
)
from toolserver.registry.site_pages import SitePage, pages


def _list(description: str) -> Schema:
    return {"type": "array", "items": {"type": "object"}, "description": description}


def _time(description: str) -> Schema:
    return {"type": "string", "format": "date-time", "description": description}


def _time_or_null(description: str) -> Schema:
    return {"type": ["string", "null"], "format": "date-time", "description": description}


_ROUTE: Schema = {
    "type": "object",
    "properties": {
        "method": {"type": "string", "description": "The HTTP method"},
        "path": {"type": "string", "description": "The path, with the names of arguments in braces"},
        "auth": {"type": "string", "enum": ["none", "bearer"], "description": "Whether a bearer token is needed"},
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
        "name": {"type": "string", "description": "The permanent name of the source"},
        "state": {
            "type": "string",
            "enum": ["up", "failing", "down", "unknown"],
            "description": "failing: the last exchange failed; down: three in a row did; unknown: not asked for a day",
        },
        "circuit": {
            "type": "string",
            "enum": ["closed", "open", "half_open"],
            "description": "open: not asked for a while; half_open: asked once, to see whether it is back",
        },
        "last": {
            "type": ["string", "null"],
            "description": "How the last exchange ended: `ok`, or one word for the fault; null: not asked for a day",
        },
        "asked_at": _time_or_null("When it was last asked; null: not in the past day"),
        "good_at": _time_or_null("When it last answered well; null: not in the past day"),
        "changed_at": _time_or_null("When it last went down or came back; null: no change is known"),
        **{name: {"type": "object", "description": "Exchanges, and shares of them"} for name in ("hour", "past_day")},
        "day": {
            "type": "string",
            "pattern": "^[gpf.]{96}$",
            "description": "For each quarter of an hour: all exchanges good (g), some (p), none (f), or not asked (.)",
        },
        "known": {
            "type": "object",
            "description": (
                "Beyond the past day: when it was last seen alive and by whom (`seen_on`, `seen_by`), what it announced"
                " (`announced`, with `ends_on` of a sunset), members it no longer gives (`gone`), why no other source"
                " stands in (`alone`), and a note"
            ),
        },
    },
    "required": [
        "name",
        "state",
        "circuit",
        "last",
        "asked_at",
        "good_at",
        "changed_at",
        "hour",
        "past_day",
        "day",
        "known",
    ],
}
_CHECKS: Schema = {
    "type": "object",
    "additionalProperties": {"type": "boolean"},
    "description": "Whether each part works that calls depend on",
}

_BODIES: dict[str, Schema] = {
    "/api/llm-tools": {
        "type": "object",
        "properties": {
            "source": {"type": "string", "description": "The host name of this service"},
            "generated_at": _time("When the list was written"),
            "docs": {"type": "string", "format": "uri", "description": "Documentation for people"},
            "auth": {"type": "object", "description": "How to authenticate, and where to get a token"},
            "count": {"type": "integer", "description": "How many tools are listed"},
            **{
                name: _list("The tools in the layout of this name")
                for name in TOOL_FORMATS
                if name not in ("both", "routes")
            },
            "base_url": {"type": "string", "format": "uri", "description": "What the paths of `routes` begin with"},
            "calling": {"type": "string", "description": "How to call a tool by its route"},
            "routes": {"type": "object", "additionalProperties": _ROUTE, "description": "By the names of the tools"},
        },
        "required": ["source", "generated_at", "docs", "auth", "count", "base_url", "calling", "routes"],
    },
    LIVE: {
        "type": "object",
        "properties": {
            "generated_at": _time("When this was written"),
            "values": _list("The headline of each free tool that has a kept answer"),
        },
        "required": ["generated_at", "values"],
    },
    STATUS_JSON: {
        "type": "object",
        "properties": {
            "generated_at": _time("When the status was read"),
            "status": {"type": "string", "enum": ["ok", "degraded"], "description": "degraded: a check fails"},
            "checks": _CHECKS,
            "service": {"type": "object", "description": "Version, uptime in seconds, calls, and how long they took"},
            "ledger": {"type": "object", "description": "Whether the ledger of credits is up, and where it is kept"},
            "chain": {
                "type": ["object", "null"],
                "description": "Servers of the chain for payments, and those that are usable; null: no payments",
            },
            "counts": {
                "type": "object",
                "additionalProperties": {"type": "integer"},
                "description": "Sources by state",
            },
            "quarter_s": {"type": "integer", "description": "Seconds that a letter of `day` stands for"},
            "day_from": _time("Start of `day`"),
            "sources": {"type": "array", "items": _SOURCE_STATUS, "description": "Each source and its past day"},
            "changes": _list("Sources that went down or came back, the latest first"),
        },
        "required": ["generated_at", "status", "checks", "service", "ledger", "chain", "counts", "sources", "changes"],
    },
    READYZ: {
        "type": "object",
        "properties": {
            "ready": {"type": "boolean", "description": "Whether calls should be sent to this instance"},
            "checks": _CHECKS,
            "degraded": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Names of the parts that the service runs without at present",
            },
        },
        "required": ["ready", "checks", "degraded"],
    },
    LEDGER_HEALTH: {
        "type": "object",
        "properties": {
            "ledger": {"type": "boolean", "description": "Whether paid calls are answered"},
            "checks": _CHECKS,
        },
        "required": ["ledger", "checks"],
    },
    LIVEZ: {
        "type": "object",
        "properties": {"live": {"type": "boolean", "const": True, "description": "The process runs"}},
        "required": ["live"],
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
    if page.path in (READYZ, LEDGER_HEALTH):
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
    request = {
        "type": "object",
        "properties": {
            "jsonrpc": {"type": "string", "enum": ["2.0"], "description": "Version of JSON-RPC"},
            "id": {"type": ["string", "integer"], "description": "Identifies the request; without it, a notification"},
            "method": {"type": "string", "examples": ["tools/call"], "description": "Method of the protocol"},
            "params": {"type": "object", "description": "Parameters of the method"},
        },
        "required": ["jsonrpc", "method"],
    }
    response = {
        "type": "object",
        "properties": {
            "jsonrpc": {"type": "string", "enum": ["2.0"], "description": "Version of JSON-RPC"},
            "id": {
                "type": ["string", "integer", "null"],
                "description": "That of the request; null: it could not be read",
            },
            "result": {"type": "object", "description": "What the method returns; absent after an error"},
            "error": {"type": "object", "description": "Code, message and data of a failure of the protocol"},
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
