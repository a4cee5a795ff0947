"""From bytes to what `parse` is given, and the checks every body goes through before and after it."""

import json
import re
from collections.abc import Sized
from typing import Any

from toolserver.errors import SourceChanged, SourceEmpty, SourceError
from toolserver.upstream.source import Get, Source

UNREADABLE = (LookupError, ValueError, TypeError, ArithmeticError, AttributeError, RecursionError, SyntaxError)
_HTML = re.compile(rb"\s*(?:\xef\xbb\xbf)?\s*<(?:!doctype html|html)", re.IGNORECASE)


def parsed(source: Source[Any, Any], request: Get, query: Any, body: bytes, *, cut: bool = False) -> Any:
    """The source's result for a body. Raises a SourceError for everything that is not a good answer.

    `cut` says that reading stopped at the source's limit: only complete lines are parsed.
    """
    if cut:
        body = body[: body.rfind(b"\n") + 1]
    try:
        result = source.parse(_decoded(request, body), query)
    except SourceError:
        raise
    except UNREADABLE as error:
        raise SourceChanged(f"{type(error).__name__}: {error}") from error
    if _is_list(result) and len(result) < source.least:
        raise SourceEmpty(f"{len(result)} items")
    return result


def _is_list(result: Any) -> bool:
    """Lists, tuples and mappings have items; a NamedTuple is one thing with fields."""
    return isinstance(result, Sized) and not isinstance(result, str | bytes) and not hasattr(result, "_fields")


def _decoded(request: Get, body: bytes) -> Any:
    if not body.strip():
        return None
    if _HTML.match(body[:200]) and not request.headers.get("Accept", "").startswith("text/html"):
        raise SourceChanged("an HTML page")
    if request.decode == "bytes":
        return body
    start = body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start == b"<" and not request.headers.get("Accept", "").startswith("text/html"):
        raise SourceChanged("markup where data was expected")
    text = body.decode(json.detect_encoding(body) if request.decode == "json" else "utf-8-sig")
    return json.loads(text, parse_constant=_no_constant) if request.decode == "json" else text


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
