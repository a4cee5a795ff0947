"""Connecting to a sister's ledger: what has to be set, what is done at the start and at the end."""

import json

import httpx
import pytest

from tests.calls.parts import START
from tests.money.ledger.ledgers import FOLLOWS, KEY_ID, OWNER_URL, SECRET, SERVICE, token
from toolserver.clock import ManualClock
from toolserver.money.ledger.client.ledger import CLOSE_S, build_ledger_client, open_ledger_client
from toolserver.money.ledger.client.messages import VALIDATE, authorization, signature
from toolserver.settings import LedgerSettings as Settings
from toolserver.sql.sqlite import durable

AWAY = httpx.MockTransport(lambda request: httpx.Response(503))


async def test_without_an_address_there_is_no_client(tmp_path):
    with pytest.raises(ValueError, match="set url, key_id and secret"):
        async with open_ledger_client(Settings(), tmp_path / "b.sqlite3"):
            pass


async def test_calls_that_died_with_the_process_before_are_releases_at_the_start(tmp_path, caplog):
    clock = ManualClock(START)
    async with durable(tmp_path / "b.sqlite3") as file:
        dying = build_ledger_client(FOLLOWS, file, clock, transport=AWAY)
        await dying.journal.note("c1", "committed")
        await dying.owner.aclose()
    async with open_ledger_client(FOLLOWS, tmp_path / "b.sqlite3", clock, transport=AWAY) as ledger:
        assert ledger.deliveries.died == ["c1"]
        assert (await ledger.journal.waiting()).size == 1
    assert [record.count for record in caplog.records if "died" in record.message] == [1]


async def test_at_an_orderly_end_charged_calls_are_delivered(tmp_path):
    clock = ManualClock(START)
    async with open_ledger_client(FOLLOWS, tmp_path / "b.sqlite3", clock, transport=AWAY) as ledger:
        await ledger.journal.note("c1", "committed")
        ledger.deliveries.begin("c1")
    async with open_ledger_client(FOLLOWS, tmp_path / "b.sqlite3", clock, transport=AWAY) as ledger:
        assert (await ledger.journal.waiting()).size == 0


@pytest.mark.parametrize("missing", ["url", "key_id", "secret"])
def test_a_client_needs_an_address_a_key_and_its_secret(missing):
    with pytest.raises(ValueError, match="set url, key_id and secret"):
        build_ledger_client(FOLLOWS.model_copy(update={missing: None}), None, ManualClock(START))


async def test_at_the_end_the_connection_is_closed_and_nothing_is_reported_if_nothing_died(tmp_path, caplog):
    async with open_ledger_client(FOLLOWS, tmp_path / "b.sqlite3", ManualClock(START), transport=AWAY) as ledger:
        closed = []
        aclose = ledger.owner.aclose

        async def close():
            closed.append(True)
            await aclose()

        ledger.owner.aclose = close
    assert (closed, ledger.deliveries.died, CLOSE_S) == ([True], [], 2.0)
    assert "died" not in caplog.text


async def test_a_client_asks_the_owner_as_its_settings_say(tmp_path):
    asked = []

    def answer(request):
        asked.append(request)
        return httpx.Response(200, json={"ok": True, "credits_remaining": 3})

    clock, transport = ManualClock(START), httpx.MockTransport(answer)
    async with open_ledger_client(FOLLOWS, tmp_path / "b.sqlite3", clock, transport=transport) as ledger:
        assert await ledger.balance(token(1)) == 3
    (request,) = asked
    nonce = signature(request.headers["authorization"]).nonce
    signed = authorization(KEY_ID, SECRET, VALIDATE, int(START.timestamp()), request.content, nonce)
    assert (str(request.url), request.headers["authorization"]) == (OWNER_URL + VALIDATE, signed)
    assert json.loads(request.content) == {"cost": 0, "token": token(1), "service": SERVICE, "ttl_s": 60.0}
