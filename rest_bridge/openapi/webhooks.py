"""Describes deliveries to subscribers as an OpenAPI webhook: the one request that this service sends to others."""

from typing import Any

from toolserver.registry.json_schema import Schema
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import JSON
from toolserver.webhooks.signing import (
    PREVIOUS_HEADER,
    RECEIPT_HEADER,
    SIGNATURE_HEADER,
    SUBSCRIPTION_HEADER,
    TIMESTAMP_HEADER,
)

SUBSCRIBE = "webhook_subscribe"

_DESCRIPTION = f"""Sent to a `webhook_url` in every slot of about five minutes, or when its condition becomes true.

To verify a delivery, compute the HMAC-SHA256 of `{TIMESTAMP_HEADER}`, a dot and the raw body, with the whole secret as
the key. Compare `sha256=` and its hex digits with `{SIGNATURE_HEADER}` in constant time, and refuse a timestamp that is
more than five minutes away. The `webhook-` headers carry the same in the form of Standard Webhooks. Answer with any
2xx within 10 seconds. A delivery that your server does not accept is retried after 5 s, 30 s and 2 min with the same
`webhook-id` and the same bytes. If every attempt fails, it costs nothing. Notices of
`credit-alerts` cost nothing."""

_HEADERS = {
    SIGNATURE_HEADER: (True, "`sha256=` and hex digits", "^sha256=[0-9a-f]{64}$"),
    TIMESTAMP_HEADER: (True, "Unix time in seconds, new in every attempt", "^[0-9]+$"),
    SUBSCRIPTION_HEADER: (True, "The id of the subscription", "^wh_[0-9a-f]{16}$"),
    "webhook-id": (True, "The same in every attempt of a delivery", "^msg_[0-9a-f]{32}$"),
    "webhook-timestamp": (True, f"The same as {TIMESTAMP_HEADER}", "^[0-9]+$"),
    "webhook-signature": (
        True,
        "The Standard Webhooks signature, for a day after a rotation of each secret",
        "^v1,",
    ),
    PREVIOUS_HEADER: (
        False,
        "For a day after a rotation: a signature for each secret that was replaced, the newest first",
        "^sha256=[0-9a-f]{64}( sha256=[0-9a-f]{64})*$",
    ),
    RECEIPT_HEADER: (False, "The receipt of the charge; absent if the delivery is free", "^rcpt_[0-9a-f]{32}$"),
}

_VALUE = "The new value; for any_new the new items; null if not known"
_CONDITION = {
    "type": "object",
    "description": "What triggered the delivery, if the subscription has a condition",
    "required": ["name", "state", "old", "new"],
    "properties": {
        "name": {"type": "string", "description": "Name of the condition, or the field that it watches"},
        "state": {"enum": ["fired", "cleared", "no_data"], "description": "no_data is free"},
        "old": {"description": "The value that was reported last"},
        "new": {"description": _VALUE},
    },
}


def describe_deliveries(registry: Registry) -> dict[str, Any]:
    """Return the member `webhooks` of the document, or nothing if the registry offers no subscriptions."""
    if SUBSCRIBE not in {operation.name for operation in registry}:
        return {}
    return {"webhooks": {"delivery": {"post": _delivery()}}}


def _delivery() -> Schema:
    parameters = [
        {
            "name": name,
            "in": "header",
            "required": required,
            "description": meaning,
            "schema": {"type": "string", "pattern": form},
        }
        for name, (required, meaning, form) in _HEADERS.items()
    ]
    body = {
        "type": "object",
        "required": ["subscription_id", "endpoint", "delivered_at", "data"],
        "properties": {
            "subscription_id": {"type": "string", "description": "The id of the subscription"},
            "endpoint": {"type": "string", "description": "Short name of the premium endpoint, or credit-alerts"},
            "delivered_at": {"type": "string", "format": "date-time", "description": "With milliseconds"},
            "data": {
                "type": "object",
                "description": "The whole payload of the endpoint, or the notice of a crossed threshold",
            },
            "condition": _CONDITION,
            "test": {"const": True, "description": "Only in tests"},
        },
    }
    return {
        "operationId": "delivery",
        "tags": ["account"],
        "summary": "A delivery to your server",
        "description": _DESCRIPTION,
        "security": [],
        "parameters": parameters,
        "requestBody": {"required": True, "content": {JSON: {"schema": body}}},
        "responses": {
            "2XX": {"description": "Accepted: the delivery is charged, unless it is free"},
            "410": {"description": "No more deliveries wanted: the subscription is paused"},
            "default": {"description": "Not accepted: retried within the slot; redirects are not followed"},
        },
    }
