"""A follower and its owner over real sockets: served, gone, and back at the same address."""

import logging
from contextlib import asynccontextmanager

import anyio
import pytest

from tests.money.ledger.ledgers import FOLLOWED, KEY_ID, SECRET, SERVICE, token
from toolserver.clock import SystemClock
from toolserver.errors import PaymentRequired
from toolserver.money.ledger.client.ledger import open_ledger_client
from toolserver.money.ledger.server.api import internal_app
from toolserver.money.ledger.store import FILE, open_ledger
from toolserver.serving.listen import bind_socket, serve
from toolserver.settings import LedgerSettings, Settings

pytestmark = pytest.mark.live

RICH = token(1)


@asynccontextmanager
async def owner(folder, port=0):
    """The internal listener; its address."""
    sock, stop = bind_socket("127.0.0.1", port), anyio.Event()
    address = sock.getsockname()[1]
    async with open_ledger(folder / FILE) as ledger:
        await ledger.mint(RICH, 10, cause="rich")
        app = internal_app(ledger, FOLLOWED, SystemClock())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: serve(app, sock, Settings(), stop=stop))
            yield ledger, address
            stop.set()


async def test_calls_are_billed_over_the_network_and_survive_its_failures(tmp_path, caplog):
    caplog.set_level(logging.CRITICAL)
    async with owner(tmp_path) as (ledger, port):
        settings = LedgerSettings(url=f"http://127.0.0.1:{port}", service=SERVICE, key_id=KEY_ID, secret=SECRET)
        async with open_ledger_client(settings, tmp_path / "b.sqlite3") as follower:
            async with anyio.create_task_group() as tasks:
                for number in range(4):
                    tasks.start_soon(lambda n=number: follower.charge(f"c{n}", RICH, 1, endpoint="/x"))
            assert await follower.balance(RICH) == await ledger.balance(RICH) == 6

    follows = open_ledger_client(settings, tmp_path / "b.sqlite3")
    async with follows as follower:
        with pytest.raises(PaymentRequired) as caught:
            await follower.charge("c4", RICH, 1, endpoint="/x")
        assert caught.value.code == "billing_unavailable"
        async with owner(tmp_path, port) as (ledger, _):
            assert (await follower.charge("c5", RICH, 1, endpoint="/x")).remaining == 5
            with anyio.fail_after(10):
                while (await follower.journal.waiting()).size:  # noqa: ASYNC110
                    await anyio.sleep(0.05)
            assert await ledger.holds() == []
        await follower.deliveries.finish_all()
