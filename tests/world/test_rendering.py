"""Pages are made once for each distinct request in each state of the world, and kept within bounds."""

import gzip

import anyio
import pytest

from tests.world.toy import T
from toolserver.world.answers import COMPRESSED_FROM, RenderedReply, Renderer
from toolserver.world.model import Ask, Edits, Reply, World

TEXT = b"0123456789" * 60


class Provider:
    """Answers with the path, and counts how often it is asked."""

    def __init__(self):
        self.made = 0

    def __call__(self, world, ask):
        self.made += 1
        return Reply.json({"path": ask.path, "query": ask.query})


def asked(path="/a", query="", **headers):
    return Ask("GET", "api.example", path, query, headers, b"")


def test_a_reply_has_an_etag_of_its_bytes_and_is_compressed_where_that_helps():
    long, other, short = (RenderedReply.of(Reply(body, 200, "text/plain")) for body in (TEXT, TEXT + b"x", b"short"))

    assert long.etag == RenderedReply.of(long.reply).etag != other.etag
    assert gzip.decompress(long.packed) == TEXT
    assert len(b"short") < COMPRESSED_FROM
    assert short.packed is None
    assert long.size == len(TEXT) + len(long.packed)


@pytest.mark.parametrize(
    ("again", "renderings"),
    [
        (asked(), 1),
        (asked(**{"accept-encoding": "gzip"}), 1),
        (asked(**{"x-key": "k"}), 2),
        (asked(query="a=1"), 2),
        (asked("/b"), 2),
    ],
    ids=["the same", "another encoding", "another key", "another query", "another path"],
)
async def test_a_page_is_made_again_only_for_what_a_provider_can_see(again, renderings):
    renderer, provider, world = Renderer(), Provider(), World(1, T)
    await renderer.page(provider, world, asked())
    await renderer.page(provider, world, again)

    assert provider.made == renderings


async def test_another_seed_instant_or_edit_is_another_page():
    renderer, provider, edits = Renderer(), Provider(), Edits()
    for world in (
        World(1, T, edits),
        World(1, T, edits),
        World(2, T, edits),
        World(1, T + 1, edits),
        World(1, T, Edits()),
    ):
        await renderer.page(provider, world, asked())

    assert provider.made == 4


async def test_callers_who_ask_at_once_share_one_page():
    renderer, provider, world = Renderer(), Provider(), World(1, T)
    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(renderer.page, provider, world, asked())

    assert provider.made == 1


async def test_the_oldest_page_is_forgotten_beyond_the_bound():
    renderer, provider, world = Renderer(most_pages=2), Provider(), World(1, T)
    for path in ("/a", "/b", "/a", "/c", "/a"):
        await renderer.page(provider, world, asked(path))
    assert provider.made == 3
    await renderer.page(provider, world, asked("/b"))
    assert provider.made == 4


async def test_a_page_that_a_fault_changed_is_not_kept():
    renderer, provider, world = Renderer(), Provider(), World(1, T)
    page = await renderer.page(provider, world, asked())
    changed = await renderer.changed(page, lambda reply: Reply(b"broken", 500, reply.content_type))

    assert (changed.reply.status, changed.reply.body) == (500, b"broken")
    assert changed.etag != page.etag
    assert await renderer.page(provider, world, asked()) is page
