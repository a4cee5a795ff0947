"""Parsing, done once for each body: the matrix reads the same good bodies thousands of times, and parsing is pure."""

from typing import Any

from cachetools import LRUCache

from toolserver.upstream.decode import ParsedBody, read_body
from toolserver.upstream.source import Get, Source

_READ: LRUCache[Any, Any] = LRUCache(2000)


def parsed_once(source: Source[Any, Any], request: Get, query: Any, body: bytes, *, cut: bool = False) -> ParsedBody:
    """As `read_body`. What fails is read again each time."""
    key = (id(source), request.decode, query, len(body), hash(body), cut)
    if key not in _READ:
        _READ[key] = read_body(source, request, query, body, cut=cut)
    return _READ[key]
