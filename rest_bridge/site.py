"""Maps paths to documents. Every document is generated from the registry on first use."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import anyio.to_thread

from rest_bridge.asgi import ParsedRequest, PlainReply, Scope
from rest_bridge.discovery import as_json
from rest_bridge.routes import Handler
from rest_bridge.serving import ServedDocument, brief, brief_under, by_query, fresh, lazy, negotiate
from rest_bridge.static_files import PREFIX, static_handler
from toolserver.calls.live_values import LiveValues
from toolserver.errors import NotFound
from toolserver.registry.error_codes import PROBLEMS
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import LEDGER_HEALTH, LIVE, LIVEZ, READYZ, Document, tool_path
from toolserver.registry.site_pages import SitePage, pages

TOOLS = "/t/"

ReadHealth = Callable[[], Awaitable[tuple[Mapping[str, Any], bool]]]
"""Returns a body, and whether it says that all is well (200, else 503)."""


class DocumentsOnFirstUse:
    """Writes all fixed documents once, in a thread, when one of them is first requested.

    Writing takes a third of a second, and outside a thread all other requests would wait for it.
    """

    def __init__(self, write: Callable[[], Mapping[str, Document]]) -> None:
        self._write, self._written, self._writing = write, dict[str, Document](), anyio.Lock()
        self._served: dict[str, ServedDocument] = {}

    def __getitem__(self, path: str) -> Document:
        return self._written[path]

    async def under(self, scope: Scope, request: ParsedRequest) -> PlainReply:
        """Serve a document whose existence is known only when all documents are written."""
        path: str = scope["path"]
        if path not in self._written:
            raise NotFound("There is nothing at this address.")
        if path not in self._served:
            self._served[path] = ServedDocument(self._written[path])
        return self._served[path].reply(request)

    def before(self, handler: Handler) -> Handler:
        """Wrap a handler so that it is called only after the documents are written."""

        async def handle(scope: Scope, request: ParsedRequest) -> PlainReply:
            if not self._written:
                async with self._writing:
                    if not self._written:
                        self._written.update(await anyio.to_thread.run_sync(self._write))
            return await handler(scope, request)

        return handle


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

    `documents` writes every fixed document, by path, when the first of them is requested.
    `tool_definitions` answers /api/llm-tools from its query parameters. `ready` tells whether
    free calls are answered, `sells` whether paid ones are.
    `live` reads the cards of the home page, `read_answer` what the page of a tool shows, by the tool's name.
    """
    written = DocumentsOnFirstUse(documents)

    def document(path: str) -> Handler:
        return written.before(lazy(lambda: written[path]))

    def either(page: SitePage) -> Handler:
        return written.before(
            negotiate(lambda: written[page.path], lambda: written[page.markdown_path], "text/markdown")
        )

    return {
        **{path: document(path) for path in document_paths(registry)},
        **{page.path: either(page) for page in pages(registry) if page.markdown},
        "/api/llm-tools": by_query(tool_definitions),
        READYZ: fresh(_answer_health(ready)),
        LEDGER_HEALTH: fresh(_answer_health(sells)),
        LIVEZ: fresh(_answer_health(_is_alive)),
        LIVE: brief(lambda: as_json(live.read())),
        "/docs/*": written.before(written.under),
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
