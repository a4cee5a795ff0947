"""Describes how a caller without credits gets a visitor token: the one path of the API that is no tool and no page."""

from rest_bridge.openapi.parts import failure, headers
from toolserver.calls.visitor_tokens import MOST_SOLUTION
from toolserver.registry.json_schema import Schema
from toolserver.registry.site_facts import JSON, VISITOR_TOKENS

_REQUEST: Schema = {
    "type": "object",
    "properties": {
        "challenge": {"type": "string", "description": "The challenge of a refusal"},
        "solution": {
            "type": "string",
            "maxLength": MOST_SOLUTION,
            "description": "A text so that the SHA-256 of `<challenge>.<solution>` begins with so many zero bits",
        },
    },
    "dependentRequired": {"challenge": ["solution"], "solution": ["challenge"]},
    "additionalProperties": False,
}
_ANSWER: Schema = {
    "type": "object",
    "properties": {
        "token": {
            "type": "string",
            "pattern": "^svc_free_[0-9a-f]{64}$",
            "description": "The visitor token, a secret: send it as a bearer token",
        },
        "expires_at": {"type": "string", "format": "date-time", "description": "When it ends, 30 days from now"},
    },
    "required": ["token", "expires_at"],
}
_DESCRIPTION = """An identity with free limits of its own for 30 days, for callers who share an address, without money.

Three a day cost an address nothing, and an empty body gets one. After that, 429 `rate_limited` has the member `work`:
`algorithm`, `challenge`, `bits`, `expires_at`. Send that challenge with a solution."""


def describe_visitor_tokens() -> dict[str, Schema]:
    """Return the path item, by path."""
    post: Schema = {
        "operationId": "visitor_token",
        "tags": ["service"],
        "summary": "Get a visitor token",
        "description": _DESCRIPTION,
        "security": [],
        "requestBody": {"required": False, "content": {JSON: {"schema": _REQUEST}}},
        "responses": {
            "200": {
                "description": "A visitor token",
                "headers": headers(["Cache-Control", "X-Request-Id"]),
                "content": {JSON: {"schema": _ANSWER}},
            },
            **{str(status): failure(status) for status in (400, 413, 415, 429, 500)},
        },
    }
    return {VISITOR_TOKENS: {"post": post}}
