"""Which document stands where: each is written when it is first asked for, and once."""

import functools
import threading
from types import SimpleNamespace

import anyio
import pytest

from rest_bridge.asgi import parse_request
from rest_bridge.pages.status import status_handlers
from rest_bridge.site import document_paths, site_handlers
from tests.catalog.tiny import FACTS, FREE, TINY
from tests.rest_bridge.made import made
from toolserver.errors import NotFound
from toolserver.registry.site_facts import AI_CATALOG, FRONT, SERVER_CARD, Document, LazyDocuments
from toolserver.registry.site_pages import pages

LIVE = SimpleNamespace(read=dict)


async def read_answer(name):
    return {"sights": b'{"answer":1}'}.get(name)


async def is_well():
    return {}, True


def made_of(documents, *, registry=TINY, ready=is_well, sells=is_well, definitions=lambda given: None):
    """The handlers by path, with these documents."""
    return site_handlers(
        registry,
        documents=documents,
        tool_definitions=definitions,
        ready=ready,
        sells=sells,
        live=LIVE,
        read_answer=read_answer,
    )


def handlers(registry, **more):
    """The handlers by path, with documents that say their path, and the registries that these were written for."""
    written = []

    def documents():
        written.append(registry)
        return {path: Document(path.encode(), "text/plain") for path in [*document_paths(registry), "/changelog"]} | {
            "/docs/payments": Document(b"page", "text/html")
        }

    return made_of(documents, registry=registry, **more), written


async def ask(handler, query=b"", **headers):
    scope = {"headers": [(k.encode(), v.encode()) for k, v in headers.items()], "query_string": query}
    return await handler(scope, parse_request(scope))


async def test_nothing_is_written_before_it_is_asked_for_and_everything_once():
    found, written = handlers(TINY)
    assert written == []
    assert (await ask(found["/llms.txt"])).body == b"/llms.txt"
    assert (await ask(found["/docs"])).body == b"/docs"
    assert written == [TINY]


async def test_documents_are_written_beside_the_event_loop_and_once_for_all_who_wait():
    threads, answers = [], []

    def documents():
        threads.append(threading.current_thread())
        return {path: Document(b"x", "text/plain") for path in document_paths(TINY)}

    found = made_of(documents)

    async def read(path):
        answers.append((await ask(found[path])).body)

    async with anyio.create_task_group() as tasks:
        for path in ("/docs", "/llms.txt", "/problems"):
            tasks.start_soon(read, path)
    assert answers == [b"x"] * 3
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


@pytest.mark.parametrize("path", ["/changelog", "/docs/payments"])
@pytest.mark.parametrize(
    ("accept", "is_markdown"),
    [
        ("text/markdown", True),
        ("text/markdown, text/plain;q=0.5", True),
        ("text/html, text/markdown;q=0.5", False),
        ("*/*", False),
        ("", False),
    ],
)
async def test_a_page_with_two_forms_is_markdown_for_clients_that_name_it_and_no_html(path, accept, is_markdown):
    found, _ = handlers(TINY)
    reply = await ask(found[path], accept=accept)
    assert (reply.body == f"{path}.md".encode()) is is_markdown
    assert dict(reply.headers)[b"vary"] == b"Accept, Accept-Encoding"


async def test_only_the_document_that_is_requested_is_written_and_once():
    """robots.txt waits for no tool page, the sitemap neither, and of a page with two forms one is written."""
    written = []

    def write(path):
        written.append(path)
        return Document(path.encode(), "text/plain")

    paths = [*document_paths(TINY), "/changelog"]
    found = made_of(lambda: LazyDocuments({path: functools.partial(write, path) for path in paths}))
    for path, accept in (("/robots.txt", ""), ("/robots.txt", ""), ("/changelog", "text/markdown")):
        assert (await ask(found[path], accept=accept)).status == 200
    assert written == ["/robots.txt", "/changelog.md"]


async def test_a_document_that_could_not_be_written_is_tried_again():
    failures = [RuntimeError("no template")]

    def write():
        if failures:
            raise failures.pop()
        return Document(b"text", "text/plain")

    found = made_of(lambda: LazyDocuments({"/robots.txt": write}))
    with pytest.raises(RuntimeError, match="no template"):
        await ask(found["/robots.txt"])
    assert (await ask(found["/robots.txt"])).body == b"text"


async def test_health_is_asked_anew_each_time_and_decides_the_status():
    good = {"ready": True, "sells": True}

    async def ready():
        return {"ready": good["ready"]}, good["ready"]

    async def sells():
        return {"ledger": good["sells"]}, good["sells"]

    found, _ = handlers(TINY, ready=ready, sells=sells)
    for part, path, name in (("ready", "/readyz", b"ready"), ("sells", "/healthz/ledger", b"ledger")):
        assert [(one.status, one.body) for one in [await ask(found[path])]] == [(200, b'{"%s":true}' % name)]
        good[part] = False
        assert [(one.status, one.body) for one in [await ask(found[path])]] == [(503, b'{"%s":false}' % name)]
    assert [(one.status, one.body) for one in [await ask(found["/livez"])]] == [(200, b'{"live":true}')]


async def test_tool_definitions_are_made_from_the_query():
    found, _ = handlers(TINY, definitions=lambda given: Document(repr(dict(given)).encode(), "application/json"))
    assert (await ask(found["/api/llm-tools"], b"format=raw")).body == b"{'format': 'raw'}"


@pytest.mark.parametrize("registry", [TINY, FREE], ids=["tiny", "free"])
def test_every_listed_page_has_a_handler_and_every_document_a_path(registry):
    found, _ = handlers(registry)
    found |= status_handlers(registry, FACTS, None, None)
    assert {page.path for page in pages(registry)} - found.keys() - {"/no-charge", FRONT} == {"/api/mcp"}
    assert made(registry, FACTS).keys() | {"/llms.txt", "/llms-full.txt"} == found.keys() - {
        SERVER_CARD,
        AI_CATALOG,
        "/api/llm-tools",
        "/readyz",
        "/healthz/ledger",
        "/livez",
        "/live.json",
        "/t/*",
        "/docs/*",
        "/static/*",
        "/status",
        "/status.json",
        "/status.atom",
        "/sources",
    }


async def test_a_document_that_only_writing_brings_up_is_found_by_its_path():
    def documents():
        return {"/docs/webhooks": Document(b"page", "text/html")}

    found = made_of(documents)
    handler = found["/docs/*"]
    scope = {"headers": [], "query_string": b"", "path": "/docs/webhooks"}
    assert (await handler(scope, parse_request(scope))).body == b"page"
    with pytest.raises(NotFound):
        await handler({**scope, "path": "/docs/none"}, parse_request(scope))


async def test_a_document_is_served_from_its_first_reading_on():
    found, written = handlers(TINY)
    first = await ask(found["/docs"])
    again = await ask(found["/docs"], **{"if-none-match": dict(first.headers)[b"etag"].decode()})
    assert (again.status, written) == (304, [TINY])


async def test_live_values_and_kept_answers_are_read_for_every_request():
    found, written = handlers(TINY)
    reply = await ask(found["/live.json"])
    assert (reply.body, dict(reply.headers)[b"cache-control"]) == (b"{}", b"public, max-age=5")
    scope = {"headers": [], "query_string": b"", "path": "/t/sights.json"}
    assert (await found["/t/*"](scope, parse_request(scope))).body == b'{"answer":1}'
    assert written == []
