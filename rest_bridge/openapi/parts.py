"""Writes the parts of the API description that operations share: headers, failures, schemas around payloads."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from toolserver.money.purchases.credit_price import PRICING
from toolserver.registry import error_codes
from toolserver.registry.error_codes import PROBLEMS
from toolserver.registry.json_schema import Schema
from toolserver.registry.response_schema import FREE, PREMIUM, SHARED, Frame, frame_schema
from toolserver.registry.site_facts import SIGN_IN, SiteFacts

PROBLEM_JSON = "application/problem+json"
REQUEST_ID = "3f0c9c52-6f0e-4b0a-9d0b-6f3f4c1f2a77"  # in examples

FRAMES: dict[str, Frame] = {"FreeAnswer": FREE, "PremiumAnswer": PREMIUM}
"""Components for the members around a payload. An answer is `allOf` one of them and its payload."""

_HEADERS: dict[str, tuple[str, str, Any]] = {
    "Age": ("Seconds since the oldest part of the answer was fetched", "integer", 12),
    "Allow": ("The methods of this address", "string", "GET, HEAD"),
    "Cache-Control": ("How long the answer may be kept", "string", "public, max-age=108, stale-if-error=86400"),
    "Cache-Status": ("Whether the answer came from the cache (RFC 9211)", "string", "toolserver; hit; ttl=108"),
    "Content-Digest": ("SHA-256 of the body (RFC 9530), which the receipt also signs", "string", "sha-256=:…:"),
    "ETag": ("A strong ETag; send it back in If-None-Match", "string", '"5d41402abc4b2a76"'),
    "Idempotency-Replayed": ("true if the answer is that of an earlier call with the key", "string", "true"),
    "Last-Modified": ("When the data were refreshed", "string", "Fri, 15 Jan 2027 08:00:00 GMT"),
    "Preference-Applied": (
        "Present if, as requested, the receipt is named but not sent",
        "string",
        "receipt=reference",
    ),
    "RateLimit": ("Remaining calls (draft-ietf-httpapi-ratelimit-headers)", "string", '"daily";r=99871;t=43210'),
    "RateLimit-Policy": ("The limits of free calls", "string", '"daily";q=100000;w=86400, "spacing";q=1;w=30'),
    "Retry-After": ("Seconds to wait before the next call", "integer", 18),
    "X-Credits-Alert": (
        "The thresholds of the token's owner that are crossed: `balance`, `day`; absent if none is",
        "string",
        "balance",
    ),
    "X-Credits-Remaining": ("Credits that can still be spent after this call", "integer", 48),
    "X-Request-Id": ("Identifies the call; your own id is kept if you sent one", "string", REQUEST_ID),
    "X-Service-Pricing": ("Address of the payment documentation", "string", "https://…/docs/payments"),
    "X-Service-Receipt": (
        "The signed receipt of the call (JWS), unless Prefer: receipt=reference",
        "string",
        "eyJ…",
    ),
    "X-Service-Receipt-Id": ("The receipt's id", "string", "rcpt_0123456789abcdef0123456789abcdef"),
}

PARAMETERS: dict[str, Schema] = {
    "meta": {
        "name": "meta",
        "in": "query",
        "description": "short: `_meta` keeps only attribution, untrusted_text, stale and simulated",
        "schema": {"type": "string", "enum": ["full", "short"], "default": "full"},
    },
    "If-None-Match": {
        "name": "If-None-Match",
        "in": "header",
        "description": "An ETag received before; if nothing has changed, the answer is a 304, exempt from spacing",
        "schema": {"type": "string"},
    },
    "Prefer": {
        "name": "Prefer",
        "in": "header",
        "description": "receipt=reference: the answer names its receipt, which stays available, instead of carrying it",
        "schema": {"type": "string"},
    },
    "Idempotency-Key": {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "Use the same key to repeat a call: it is done and charged once, and returns the same bytes",
        "schema": {"type": "string", "minLength": 1, "maxLength": 255},
    },
}

_EXTRA = {
    402: ("X-Service-Pricing", "Retry-After"),
    409: ("Retry-After",),
    429: ("Retry-After", "RateLimit-Policy", "RateLimit"),
    503: ("Retry-After",),
}
FAILURES = (400, 402, 404, 409, 410, 413, 415, 422, 429, 500, 501, 503)


def ref(kind: str, name: str) -> Schema:
    """Return a reference to a component."""
    return {"$ref": f"#/components/{kind}/{name}"}


def headers(names: Iterable[str]) -> Schema:
    """Return references to header components."""
    return {name: ref("headers", name) for name in names}


def failure(status: int) -> Schema:
    """Return a reference to the response that failures with this status share."""
    return ref("responses", _name(status))


def _name(status: int) -> str:
    return "".join(word.capitalize() for word in HTTPStatus(status).name.split("_"))


def head(get: Schema) -> Schema:
    """Return the HEAD operation for a GET: the same request and headers, no body."""
    shared: Schema = {key: get[key] for key in ("tags", "security", "parameters") if key in get}
    ok = {key: value for key, value in get["responses"]["200"].items() if key != "content"}
    named = {"operationId": f"{get['operationId']}_head", "summary": f"{get['summary']}: headers only"}
    return {**named, **shared, "responses": {**get["responses"], "200": ok}}


def _describe_sign_in(facts: SiteFacts) -> Schema:
    """Describe OAuth 2.1 for MCP hosts. Its access tokens are valid only at an address that is not described here."""
    at = facts.url(SIGN_IN)
    flow = {"authorizationUrl": f"{at}/authorize", "tokenUrl": f"{at}/token", "refreshUrl": f"{at}/token", "scopes": {}}
    about = f"For MCP hosts that sign in: access tokens only for {at}, each bound to an allowance"
    return {"type": "oauth2", "description": about, "flows": {"authorizationCode": flow}}


def components(facts: SiteFacts) -> dict[str, Schema]:
    """Return everything under `components` that does not come from a tool."""
    return {
        "securitySchemes": {
            "bearer": {"type": "http", "scheme": "bearer", "description": "svc_live_<64 hex>"},
            **({"oauth": _describe_sign_in(facts)} if facts.oauth else {}),
        },
        "headers": {
            name: {"description": description, "schema": {"type": kind}, "example": example}
            for name, (description, kind, example) in _HEADERS.items()
        },
        "parameters": PARAMETERS,
        "responses": {_name(status): _failure(status, facts) for status in FAILURES},
        "schemas": {
            **{name: anchor_schema(frame_schema(frame)) for name, frame in FRAMES.items()},
            **{name: anchor_schema(schema) for name, schema in SHARED.items()},
            "Problem": _problem(),
            "PremiumPaymentRequired": _payment_required(),
        },
    }


def _failure(status: int, facts: SiteFacts) -> Schema:
    listed = error_codes.with_status(status)
    lines = [f"- `{problem.code}`: {problem.meaning}" for problem in listed]
    schema = ref("schemas", "PremiumPaymentRequired" if status == 402 else "Problem")
    shown = {p.code: {"value": error_codes.example(p, facts=facts, request_id=REQUEST_ID)} for p in listed}
    return {
        "description": "\n".join(lines),
        "headers": headers(["X-Request-Id", *_EXTRA.get(status, ())]),
        "content": {PROBLEM_JSON: {"schema": schema, "examples": shown}},
    }


def _problem() -> Schema:
    codes = [problem.code for problem in PROBLEMS.values() if problem.status != 402]
    error = {
        "type": "object",
        "properties": {
            "loc": {"type": "string", "description": "The argument, with dots if it is nested in another"},
            "msg": {"type": "string", "description": "What is wrong with it"},
            "type": {"type": "string", "description": "The kind of error, in one word for programs"},
        },
        "required": ["loc", "msg", "type"],
    }
    return {
        "type": "object",
        "description": "A failure (RFC 9457)",
        "properties": {
            "type": {"type": "string", "format": "uri", "description": "A page that explains the code"},
            "title": {"type": "string", "description": "The code in words"},
            "status": {"type": "integer", "description": "The HTTP status"},
            "detail": {"type": "string", "description": "What went wrong in this call"},
            "error": {"type": "string", "enum": codes, "description": "The code, for programs"},
            "request_id": {"type": "string", "description": "The id of the call, as in X-Request-Id"},
            "errors": {"type": "array", "items": error, "description": "With invalid_arguments"},
            "limit_bytes": {"type": "integer", "description": "With payload_too_large"},
            "did_you_mean": {"type": "array", "items": {"type": "string"}, "description": "With not_found"},
            "catalog": {"type": "string", "format": "uri", "description": "With not_found"},
            "retry_after_seconds": {"type": "number", "description": "With rate_limited and 503"},
            "limit": {"type": "string", "description": "With rate_limited: the name of the limit"},
        },
        "required": ["type", "title", "status", "detail", "error", "request_id"],
    }


def _payment_required() -> Schema:
    return {
        "type": "object",
        "description": "A premium call that was not accepted. Nothing was run and nothing charged.",
        "properties": {
            "error": {
                "type": "string",
                "enum": [problem.code for problem in error_codes.with_status(402)],
                "description": "The code, for programs",
            },
            "signup": {"type": "string", "format": "uri", "description": "The payment documentation"},
            "pricing": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "examples": [PRICING],
                "description": "What credits cost",
            },
            "detail": {"type": "string", "description": "What went wrong in this call"},
            "request_id": {"type": "string", "description": "The id of the call, as in X-Request-Id"},
            "x402Version": {"type": "integer", "const": 1, "description": "Only where x402 payments are taken"},
            "accepts": {"type": "array", "items": {"type": "object"}, "description": "The offer in x402 version 1"},
        },
        "required": ["error", "signup", "pricing"],
    }


def anchor_schema(node: Any, prefix: str = "") -> Any:
    """Return a schema whose references lead to components: shared ones by name, others by `prefix` and name."""
    if isinstance(node, list):
        return [anchor_schema(item, prefix) for item in node]
    if not isinstance(node, dict):
        return node
    anchored = {key: anchor_schema(value, prefix) for key, value in node.items()}
    target = node.get("$ref")
    if isinstance(target, str) and target.startswith("#/$defs/"):
        name = target.rsplit("/", 1)[1]
        anchored["$ref"] = f"#/components/schemas/{name if name in SHARED else prefix + name}"
    return anchored
