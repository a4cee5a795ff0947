"""Reads a query string or a JSON body into the mapping that the pipeline checks."""

from typing import Any
from urllib.parse import parse_qsl

import msgspec

from toolserver.errors import InvalidArguments, InvalidJson, UnsupportedMediaType

MOST_PARAMETERS = 50


def from_query(query: bytes) -> dict[str, str]:
    """Return query parameters by name. Raise InvalidArguments if they are not UTF-8, repeated or far too many."""
    if not query:
        return {}
    try:
        pairs = parse_qsl(
            query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_PARAMETERS
        )
    except (UnicodeDecodeError, ValueError) as error:
        raise InvalidArguments(
            "The query string is not URL-encoded UTF-8 or has too many parameters.", errors=[]
        ) from error
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = sorted({name for name in names if names.count(name) > 1})
        errors = [{"loc": name, "msg": "given more than once", "type": "repeated"} for name in repeated]
        raise InvalidArguments("A parameter is given more than once.", errors=errors)
    return found


def take_short_meta(given: dict[str, str]) -> bool:
    """Remove `meta` from the query parameters and return True if it is `short`: no tool has this argument.

    Raises InvalidArguments for a value other than `short` and `full`.
    """
    word = given.pop("meta", "full")
    if word not in ("short", "full"):
        error = {"loc": "meta", "msg": "must be short or full", "type": "literal_error"}
        raise InvalidArguments("`meta` must be `short` or `full`.", errors=[error])
    return word == "short"


def from_body(body: bytes, content_type: bytes | None) -> dict[str, Any]:
    """Return the JSON object of a request body; an empty body is an empty object.

    Raises:
        UnsupportedMediaType: the content type is not JSON.
        InvalidJson: the body is not a JSON object.
    """
    if not body.strip():
        return {}
    kind = (content_type or b"application/json").split(b";")[0].strip().lower()
    if kind != b"application/json" and not kind.endswith(b"+json"):
        raise UnsupportedMediaType("Send the body as application/json.")
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise InvalidJson("The body is not valid JSON.") from error
    if not isinstance(value, dict):
        raise InvalidJson("The body must be a JSON object.")
    return value
