"""Writes the sources of all tools as one document, and its digest, by which answers refer to it."""

import functools
import hashlib
import json
from typing import Any

from toolserver.registry.registry import Operation, Registry
from toolserver.upstream.rights import EVERYTHING, Rights


def list_sources(registry: Registry, rights: Rights = EVERYTHING) -> list[dict[str, Any]]:
    """Return every source once by public name, with the licence under which it is used.

    Several request shapes may share a name.
    """
    shipped = [source for operation in registry for source in operation.shipped]
    by_name = {source.name: source for source in [*shipped, *reversed(registry.sources)]}
    return [
        {"name": name, "licence": rights.describe(source), "fresh_s": source.fresh_s, "kept_s": source.keep_s}
        for name, source in sorted(by_name.items())
    ]


def write_source_list(registry: Registry, rights: Rights = EVERYTHING) -> bytes:
    """Return the body of `/api/sources`: name, licence with attribution and terms, and lifetimes of every source."""
    return _write_sources(tuple(registry), rights)


@functools.lru_cache(8)
def _write_sources(operations: tuple[Operation, ...], rights: Rights) -> bytes:
    listed = list_sources(Registry(operations), rights)
    return json.dumps({"count": len(listed), "sources": listed}, ensure_ascii=False, separators=(",", ":")).encode()


def digest_source_list(registry: Registry, rights: Rights = EVERYTHING) -> str:
    """Return the first 8 hex digits of the SHA-256 of that document, which answers have as `_meta.sources_digest`."""
    return hashlib.sha256(write_source_list(registry, rights)).hexdigest()[:8]
