"""Writes /openapi.json: the REST interface in OpenAPI 3.1, generated from the registry."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from rest_bridge.openapi.pages import describe_pages
from rest_bridge.openapi.parts import FRAMES, PARAMETERS, anchor_schema, components, failure, head, headers, ref
from rest_bridge.openapi.receipts import describe_receipt_paths, describe_stored_verdict
from rest_bridge.openapi.visitor_tokens import describe_visitor_tokens
from rest_bridge.openapi.webhooks import describe_deliveries
from rest_bridge.pages.receipts import VERIFY
from toolserver import API_VERSION
from toolserver.registry.deprecations import DEPRECATIONS, Deprecation, deprecate_members, find_deprecations
from toolserver.registry.json_schema import Schema
from toolserver.registry.placement import has_placeholders, names_in, place_arguments
from toolserver.registry.registry import Operation, Registry, Tier
from toolserver.registry.response_schema import SHARED, answer_schema, frame_of, frame_schema
from toolserver.registry.site_facts import (
    FREE_LICENCE,
    JSON,
    PREMIUM_LICENCE,
    SERVICE,
    TIER_HEADINGS,
    SiteFacts,
    auth,
    price,
    sells,
    tool_path,
)

NO_EXAMPLES: Mapping[str, Any] = MappingProxyType({})

_LICENCES = {Tier.FREE: "permissive, with the attribution that each source requires", Tier.PREMIUM: "inference-only"}


def openapi(
    registry: Registry,
    facts: SiteFacts,
    examples: Mapping[str, Any] = NO_EXAMPLES,
    deprecations: Sequence[Deprecation] = DEPRECATIONS,
) -> dict[str, Any]:
    """Return the description. `examples` has answers by tool name."""
    shared = components(facts)
    schemas = {
        name: schema for operation in registry.listed for name, schema in _schemas(operation, deprecations).items()
    }
    return {
        "openapi": "3.1.0",
        "info": _info(registry, facts),
        "servers": [{"url": facts.url("")}],
        "externalDocs": {"url": facts.url("/docs"), "description": "Documentation for people"},
        "tags": _tags(registry),
        "paths": {
            **_paths(registry, facts, examples, deprecations),
            **describe_pages(registry),
            **describe_visitor_tokens(),
        },
        **describe_deliveries(registry),
        "components": {**shared, "schemas": {**shared["schemas"], **schemas}},
        "x-license": _licence_texts(registry),
    }


def _info(registry: Registry, facts: SiteFacts) -> dict[str, Any]:
    simulated = " This server answers from a simulated world: every value is invented." if facts.simulated else ""
    contact = {"contact": {"name": facts.contact}} if facts.contact else {}
    return {
        "title": SERVICE,
        "version": API_VERSION,
        "summary": "Live data for AI agents",
        "description": f"Typed tools with live data, also served over MCP.{simulated}\n\n"
        + "\n\n".join(_licence_texts(registry).values()),
        **contact,
        "license": {"name": "Licence of the data", "url": facts.url("/docs#licence")},
    }


def _licence_texts(registry: Registry) -> dict[str, str]:
    return {"free": FREE_LICENCE, **({"premium": PREMIUM_LICENCE} if sells(registry) else {})}


def _tags(registry: Registry) -> list[Schema]:
    used = {operation.tier for operation in registry.listed}
    tiers = [{"name": tier.value, "description": text} for tier, text in TIER_HEADINGS.items() if tier in used]
    return [*tiers, {"name": "service", "description": "Discovery, MCP and readiness"}]


def _paths(
    registry: Registry, facts: SiteFacts, examples: Mapping[str, Any], deprecations: Sequence[Deprecation]
) -> dict[str, Schema]:
    paths: dict[str, Schema] = {}
    for operation in registry.listed:
        described = _operation(operation, facts, examples, deprecations)
        if any(each.kind in ("path", "tool") for each in find_deprecations(operation, deprecations)):
            described["deprecated"] = True
        item = paths.setdefault(operation.path, {})
        item[operation.method.lower()] = described
        if operation.method == "GET":
            item["head"] = head(described)
    if sells(registry):
        paths.setdefault(VERIFY, {}).update(describe_stored_verdict())
        paths.update(describe_receipt_paths())
    return paths


def _operation(
    operation: Operation, facts: SiteFacts, examples: Mapping[str, Any], deprecations: Sequence[Deprecation]
) -> Schema:
    return {
        "operationId": operation.name,
        "tags": [operation.tier.value],
        "summary": operation.title,
        "description": operation.text,
        "externalDocs": {"url": facts.url(tool_path(operation))},
        "security": [{"bearer": []}] if auth(operation) == "bearer" else [],
        **_request(operation, deprecations),
        "responses": _responses(operation, examples),
        "x-credits": operation.credits,
        "x-price": price(operation),
        "x-cache-ttl": operation.longest_ttl,
        "x-sources": list(dict.fromkeys(source.name for source in operation.sources)),
        "x-license": _LICENCES.get(operation.tier, "yours"),
    }


# --- requests


def _request(operation: Operation, deprecations: Sequence[Deprecation]) -> Schema:
    """Return the parameters of a request, and its body with a separate schema for the arguments in it."""
    schema = deprecate_members(operation.input_schema, operation, "argument", deprecations)
    properties, required = schema["properties"], schema.get("required", [])
    placed = place_arguments(operation)
    parameters = [
        _parameter(name, place, properties[name], required=place == "path" or name in required)
        for name, place in placed.items()
        if place != "body"
    ]
    parameters += [] if operation.personal else [ref("parameters", PARAMETERS["meta"]["name"])]
    parameters += [ref("parameters", name) for name in _request_headers(operation)]
    request: Schema = {"parameters": parameters} if parameters else {}
    if _has_body(operation):
        in_body = set(names_in(placed, "body"))
        schema = ref("schemas", f"{operation.name}.arguments")
        request["requestBody"] = {"required": bool(set(required) & in_body), "content": {JSON: {"schema": schema}}}
    return request


def _has_body(operation: Operation) -> bool:
    """Return True if a request has a body. The body has no members if the tool takes no arguments at all."""
    placed = place_arguments(operation)
    return operation.takes_body and (bool(names_in(placed, "body")) or not placed)


def _body_schema(operation: Operation, deprecations: Sequence[Deprecation]) -> Schema:
    """Return the schema of the arguments in the body."""
    schema = deprecate_members(operation.input_schema, operation, "argument", deprecations)
    in_body = names_in(place_arguments(operation), "body")
    properties = {name: schema["properties"][name] for name in in_body}
    required = [name for name in schema.get("required", []) if name in in_body]
    return {**schema, "properties": properties, **({"required": required} if "required" in schema else {})}


def _is_action(operation: Operation) -> bool:
    """Return True for the POSTs of payment and account tools, which a key makes one."""
    return operation.personal and operation.method == "POST"


def _request_headers(operation: Operation) -> list[str]:
    if operation.tier is Tier.PREMIUM:
        return ["Idempotency-Key", "Prefer"]
    if _is_action(operation):
        return ["Idempotency-Key"]
    return ["If-None-Match"] if _revalidates(operation) else []


def _parameter(name: str, where: str, schema: Schema, *, required: bool) -> Schema:
    listed = {"style": "form", "explode": False} if schema.get("type") == "array" else {}
    described = {"description": schema["description"]} if "description" in schema else {}
    going = {"deprecated": True} if schema.get("deprecated") else {}
    plain = {key: value for key, value in schema.items() if key not in ("description", "deprecated")}
    return {"name": name, "in": where, "required": required, **described, **going, **listed, "schema": plain}


# --- responses


def _revalidates(operation: Operation) -> bool:
    """Return True if the operation's answers are cacheable and have an ETag."""
    return operation.tier is Tier.FREE and operation.reads_only and operation.longest_ttl > 0


_FRESHNESS = ("Cache-Control", "Age", "ETag", "Last-Modified", "Cache-Status")
_RECEIPT = (
    "Cache-Control",
    "Idempotency-Replayed",
    "X-Credits-Alert",
    "X-Credits-Remaining",
    "X-Service-Receipt-Id",
    "X-Service-Receipt",
    "Content-Digest",
    "Preference-Applied",
)
_LIMITS = ("RateLimit-Policy", "RateLimit")


def _answer_headers(operation: Operation) -> list[str]:
    if operation.tier is Tier.PREMIUM:
        return [*_RECEIPT, "X-Request-Id"]
    fresh = _FRESHNESS if _revalidates(operation) else ("Cache-Control", "Cache-Status")
    limited = operation.tier is Tier.FREE and operation.spaced
    repeated = ("Idempotency-Replayed",) if _is_action(operation) else ()
    return [*fresh, *repeated, *(_LIMITS if limited else ()), "X-Request-Id"]


def _responses(operation: Operation, examples: Mapping[str, Any]) -> Schema:
    content: Schema = {"schema": ref("schemas", operation.name)}
    if operation.name in examples:
        content["example"] = examples[operation.name]
    responses: Schema = {
        str(operation.status): {
            "description": operation.title,
            "headers": headers(_answer_headers(operation)),
            "content": {JSON: content},
        }
    }
    if _revalidates(operation):
        responses["304"] = {
            "description": "Not changed since that ETag",
            "headers": headers([*_FRESHNESS, "X-Request-Id"]),
        }
    return {**responses, **{str(status): failure(status) for status in _failures(operation)}}


def _failures(operation: Operation) -> list[int]:
    """Return the statuses that a call of this operation can fail with."""
    posts, premium = operation.takes_body, operation.tier is Tier.PREMIUM
    pays = posts and operation.tier is Tier.PAYMENT
    possible = {
        400: True,
        402: pays or auth(operation) == "bearer",
        404: pays or has_placeholders(operation.path),
        409: pays or (posts and operation.tier is Tier.ACCOUNT),
        413: posts,
        415: posts,
        422: premium or _is_action(operation),
        429: True,
        500: True,
        501: operation.tier is Tier.ACCOUNT,  # if a sister service keeps the ledger and does not support it
        503: premium or pays,
    }
    return [status for status, can_be in possible.items() if can_be]


# --- schemas of answers and bodies


def _schemas(operation: Operation, deprecations: Sequence[Deprecation]) -> dict[str, Schema]:
    """Return the operation's own components: its answer, its body, if any, and the models that they refer to."""
    prefix = f"{operation.name}."
    schema = deprecate_members(answer_schema(operation, full=True), operation, "field", deprecations)
    models = {prefix + name: model for name, model in schema.pop("$defs", {}).items() if name not in SHARED}
    schemas = {operation.name: _around_payload(operation, schema), **models}
    if _has_body(operation):
        schemas[prefix + "arguments"] = _body_schema(operation, deprecations)
    return {name: anchor_schema(model, prefix) for name, model in schemas.items()}


def _around_payload(operation: Operation, schema: Schema) -> Schema:
    """Return the answer's schema as a frame plus its own members, or unchanged if it has no frame."""
    frames = [name for name, frame in FRAMES.items() if frame is frame_of(operation)]
    if not frames:
        return schema
    name = frames[0]
    frame = frame_schema(FRAMES[name])
    own = {key: value for key, value in schema["properties"].items() if frame["properties"].get(key) != value}
    required = [key for key in schema["required"] if key not in frame["required"]]
    return {"allOf": [ref("schemas", name), {"type": "object", "properties": own, "required": required}]}
