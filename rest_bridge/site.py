"""Maps paths to documents. Every document is generated from the registry when it is first requested."""

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import anyio.to_thread

from rest_bridge.asgi import ParsedRequest, PlainReply, Scope
from rest_bridge.discovery import as_json
from rest_bridge.routes import Handler
from rest_bridge.serving import ServedDocument, brief, brief_under, by_query, fresh
from rest_bridge.static_files import PREFIX, static_handler
from toolserver.calls.live_values import LiveValues
from toolserver.core.single_flight import SingleFlight
from toolserver.errors import NotFound
from toolserver.registry.error_codes import PROBLEMS
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import LEDGER_HEALTH, LIVE, LIVEZ, READYZ, Document, tool_path
from toolserver.registry.site_pages import pages

TOOLS = "/t/"

ReadHealth = Callable[[], Awaitable[tuple[Mapping[str, Any], bool]]]
"""Returns a body, and whether it says that all is well (200, else 503)."""


class DocumentsOnFirstUse:
    """Serves fixed documents. Each is written when it is first requested, once for all who wait for it.

    Writing a long one takes up to half a second; it runs in a thread, so that other requests need not wait for it.
    """

    def __init__(self, collect: Callable[[], Mapping[str, Document]]) -> None:
        self._collect, self._collecting = collect, anyio.Lock()
        self._documents: Mapping[str, Document] | None = None
        self._served: dict[str, ServedDocument] = {}
        self._writing = SingleFlight()

    async def read(self, path: str) -> ServedDocument:
        """Return the document at a path. Raise NotFound if there is none."""
        if path not in self._served:
            await self._writing.do(path, functools.partial(self._write, path))
        return self._served[path]

    async def under(self, scope: Scope, request: ParsedRequest) -> PlainReply:
        """Serve a document whose path is known only when the documents are collected."""
        return (await self.read(scope["path"])).reply(request)

    def at(self, path: str) -> Handler:
        """Return the handler of a document that has one form."""

        async def handler(scope: Scope, request: ParsedRequest) -> PlainReply:
            return (await self.read(path)).reply(request)

        return handler

    def either(self, path: str, markdown_path: str) -> Handler:
        """Return the handler of a page that clients who accept Markdown but no HTML get as Markdown."""

        async def handler(scope: Scope, request: ParsedRequest) -> PlainReply:
            wants_markdown = b"text/markdown" in request.accept and b"text/html" not in request.accept
            served = await self.read(markdown_path if wants_markdown else path)
            return served.reply(request, vary=b"Accept, Accept-Encoding")

        return handler

    async def _write(self, path: str) -> None:
        async with self._collecting:
            if self._documents is None:
                self._documents = await anyio.to_thread.run_sync(self._collect)
        documents = self._documents
        if path not in documents:
            raise NotFound("There is nothing at this address.")
        self._served[path] = ServedDocument(await anyio.to_thread.run_sync(documents.__getitem__, path))


def site_handlers(
    registry: Registry,
    *,
    documents: Callable[[], Mapping[str, Document]],
    tool_definitions: Callable[[Mapping[str, str]], Document],
    ready: ReadHealth,
    sells: ReadHealth,
    live: LiveValues,
    read_answer: Callable[[str], Awaitable[bytes | None]],
) -> dict[str, Handler]:
    """Return handlers by path.

    `documents` returns the fixed documents by path, each written when it is read; it is called
    once. `tool_definitions` answers /api/llm-tools from its query parameters. `ready` tells
    whether free calls are answered, `sells` whether paid ones are. `live` reads the cards of
    the home page, `read_answer` what the page of a tool shows, by the tool's name.
    """
    written = DocumentsOnFirstUse(documents)
    return {
        **{path: written.at(path) for path in document_paths(registry)},
        **{page.path: written.either(page.path, page.markdown_path) for page in pages(registry) if page.markdown},
        "/api/llm-tools": by_query(tool_definitions),
        READYZ: fresh(_answer_health(ready)),
        LEDGER_HEALTH: fresh(_answer_health(sells)),
        LIVEZ: fresh(_answer_health(_is_alive)),
        LIVE: brief(lambda: as_json(live.read())),
        "/docs/*": written.under,
        f"{TOOLS}*": brief_under(TOOLS, read_answer),
        f"{PREFIX}*": static_handler(),
    }


def _answer_health(read: ReadHealth) -> Callable[[], Awaitable[tuple[Document, int]]]:
    async def answer() -> tuple[Document, int]:
        body, is_good = await read()
        return as_json(body), 200 if is_good else 503

    return answer


async def _is_alive() -> tuple[Mapping[str, Any], bool]:
    return {"live": True}, True


def document_paths(registry: Registry) -> list[str]:
    """Return the paths of the fixed documents that have one form, without writing them."""
    fixed = [page.markdown_path if page.markdown else page.path for page in pages(registry) if page.fixed]
    return [*fixed, *map(tool_path, registry), *(f"/problems/{code}" for code in PROBLEMS)]
