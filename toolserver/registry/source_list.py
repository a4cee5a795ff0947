"""The sources of all tools as one document, and its digest, by which answers refer to it."""

import functools
import hashlib
import json
from typing import Any

from toolserver.registry.registry import Registry
from toolserver.upstream.reading import describe


def list_sources(registry: Registry) -> list[dict[str, Any]]:
    """Every source once by public name, with its licence; several request shapes may share a name."""
    shipped = [source for operation in registry for source in operation.shipped]
    found = {source.name: source for source in [*shipped, *reversed(registry.sources)]}
    return [
        {"name": name, "licence": describe(source), "fresh_s": source.fresh_s, "kept_s": source.keep_s}
        for name, source in sorted(found.items())
    ]


@functools.lru_cache(8)
def write_source_list(registry: Registry) -> bytes:
    """The body of `/api/sources`: name, licence with attribution and terms, and lifetimes of every source."""
    listed = list_sources(registry)
    return json.dumps({"count": len(listed), "sources": listed}, ensure_ascii=False, separators=(",", ":")).encode()


def digest_source_list(registry: Registry) -> str:
    """The first 8 hexadecimal digits of the SHA-256 of that document: `_meta.sources_digest` of answers."""
    return hashlib.sha256(write_source_list(registry)).hexdigest()[:8]
