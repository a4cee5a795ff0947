"""Serves `/status`, its JSON and its feed, and `/sources`, each rewritten at most every few seconds."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio.to_thread

from rest_bridge.asgi import ParsedRequest, PlainReply, Scope
from rest_bridge.discovery import as_json
from rest_bridge.pages.sources import sources_page
from rest_bridge.pages.status import status_page
from rest_bridge.routes import Handler
from rest_bridge.serving import ServedDocument
from rest_bridge.status_feed import write_feed
from toolserver.clock import Clock
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import SOURCES_PAGE, STATUS, STATUS_FEED, STATUS_JSON, Document, SiteFacts

KEEP_S = 5
ReadStatus = Callable[[], Awaitable[dict[str, Any]]]


def pages(registry: Registry, facts: SiteFacts, read: ReadStatus, clock: Clock) -> dict[str, Handler]:
    """Return handlers by path. `read` returns the content of `/status.json`."""
    return {
        STATUS: every_few_seconds(lambda found: status_page(registry, facts, found), read, clock),
        STATUS_JSON: every_few_seconds(as_json, read, clock),
        STATUS_FEED: every_few_seconds(lambda found: write_feed(facts, found), read, clock),
        SOURCES_PAGE: every_few_seconds(lambda found: sources_page(registry, facts, found), read, clock),
    }


def every_few_seconds(write: Callable[[dict[str, Any]], Document], read: ReadStatus, clock: Clock) -> Handler:
    """Serve a document written from the status, the same for every client for `KEEP_S` seconds."""
    one_at_a_time = anyio.Lock()
    kept: list[tuple[float, ServedDocument]] = []

    async def handler(scope: Scope, found: ParsedRequest) -> PlainReply:
        async with one_at_a_time:
            if not kept or clock.monotonic() - kept[0][0] >= KEEP_S:
                status = await read()
                document = await anyio.to_thread.run_sync(write, status)
                kept[:] = [(clock.monotonic(), ServedDocument(document))]
        return kept[0][1].reply(found, cache_control=b"public, max-age=%d" % KEEP_S)

    return handler
