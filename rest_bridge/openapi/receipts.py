"""Describes the API's paths about receipts: the keys, a receipt by its id, and the log of uncharged calls."""

from rest_bridge.openapi.parts import failure, head, headers
from toolserver.money.receipts.log import HOUR_SHAPE
from toolserver.registry.json_schema import Schema
from toolserver.registry.site_facts import JSON, RECEIPT_KEY, RECEIPT_KEYS

RECEIPT_ID = r"^rcpt_[0-9a-f]{32}$"
HASH = r"^[0-9a-f]{64}$"
LOG = "/api/payment/no-charge-log"
_KEY: Schema = {
    "type": "object",
    "properties": {
        "kty": {"const": "OKP", "description": "Kind of the key (RFC 8037)"},
        "crv": {"const": "Ed25519", "description": "Curve of the key"},
        "kid": {"type": "string", "description": "Name of the key, as receipts have it in key_id"},
    },
    "required": ["kty", "crv", "kid"],
}
_KEYS: Schema = {
    "type": "object",
    "properties": {"keys": {"type": "array", "items": _KEY, "description": "The keys, as a JWK Set (RFC 7517)"}},
    "required": ["keys"],
}
_PROOF: Schema = {
    "type": "object",
    "properties": {
        "path": {
            "type": "array",
            "items": {"type": "string", "pattern": HASH},
            "description": "Hashes of the tree from the leaf up, hex (RFC 6962)",
        }
    },
    "required": ["path"],
}
_VERDICT: Schema = {
    "type": "object",
    "properties": {
        "valid": {"type": "boolean", "description": "No check failed"},
        "checks": {
            "type": "object",
            "additionalProperties": {"type": ["boolean", "null"]},
            "description": "Each check; null: it was not asked for, or an earlier one failed",
        },
        "key_id": {
            "type": ["string", "null"],
            "description": "Name of the key that signed it; null: it names none",
        },
        "core": {
            "type": ["object", "null"],
            "description": "What the receipt says; null unless the signature is good",
        },
        "error": {"type": "string", "description": "Why it is not valid; absent when it is"},
    },
    "required": ["valid", "checks"],
}


def describe_receipt_paths() -> dict[str, Schema]:
    """Return the path items, by path."""
    return {
        RECEIPT_KEYS: _path("receipt_keys", "All keys that have ever signed receipts", _KEYS),
        RECEIPT_KEY: _path("receipt_key", "The key that currently signs receipts", _KEY),
        "/api/receipt/{id}": _path(
            "receipt",
            "A stored receipt, for the holder of the token that paid",
            {"type": "object"},
            _receipt_id("path"),
            bearer=True,
        ),
        f"{LOG}/checkpoint": _path(
            "log_checkpoint", "The signed state of the log", {"type": "string"}, kind="text/plain"
        ),
        f"{LOG}/inclusion": _path(
            "log_inclusion", "The proof that a log of this size has a leaf", _PROOF, _number("index"), _number("size")
        ),
        f"{LOG}/consistency": _path(
            "log_consistency",
            "The proof that the log at one size is a prefix of the log at another",
            _PROOF,
            _number("first"),
            _number("second"),
        ),
        f"{LOG}/bucket": _path(
            "log_receipt_bucket",
            "The proof that the log contains the bucket that a receipt names, and the receipt in it",
            _PROOF,
            _text("hour", f"^{HOUR_SHAPE}$"),
            _text("key", HASH),
            _text("receipt", HASH, required=False),
        ),
        f"{LOG}/tile/{{level}}/{{index}}": _path(
            "log_tile",
            "A tile of the tree or its entries (C2SP tlog-tiles); the path of a partial tile ends in `.p/<width>`",
            {"type": "string", "format": "binary"},
            _in_path("level", "^([0-5]|entries)$"),
            _in_path("index", "^[0-9]{3}$"),
            kind="application/octet-stream",
        ),
    }


def describe_stored_verdict() -> dict[str, Schema]:
    """Return GET and HEAD of the path that also verifies a receipt by POST."""
    return _path("receipt_verify_stored", "The verdict on a stored receipt, by its id", _VERDICT, _receipt_id("query"))


def _path(
    name: str, summary: str, schema: Schema, *parameters: Schema, bearer: bool = False, kind: str = JSON
) -> dict[str, Schema]:
    response = {"description": summary, "headers": headers(["Cache-Control", "X-Request-Id"])}
    failures = [402] if bearer else []
    failures += [400, 404] if parameters else []
    failures += [429] if "receipt" in name and parameters else []
    failures += [410] if name in ("receipt", "receipt_verify_stored") else []
    get: Schema = {
        "operationId": name,
        "tags": ["service"],
        "summary": summary,
        "security": [{"bearer": []}] if bearer else [],
        "responses": {
            "200": {**response, "content": {kind: {"schema": schema}}},
            **{str(status): failure(status) for status in sorted([*failures, 500])},
        },
    }
    if parameters:
        get["parameters"] = list(parameters)
    return {"get": get, "head": head(get)}


def _receipt_id(where: str) -> Schema:
    return {"name": "id", "in": where, "required": True, "schema": {"type": "string", "pattern": RECEIPT_ID}}


def _in_path(name: str, pattern: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "pattern": pattern}}


def _text(name: str, pattern: str, *, required: bool = True) -> Schema:
    return {"name": name, "in": "query", "required": required, "schema": {"type": "string", "pattern": pattern}}


def _number(name: str) -> Schema:
    return {
        "name": name,
        "in": "query",
        "required": True,
        "schema": {"type": "integer", "minimum": 0, "maximum": 10**16 - 1},
    }
