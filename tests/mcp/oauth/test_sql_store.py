"""OAuth in SQLite: the contract, and what only a file can show."""

import pytest

from tests.mcp.oauth.store_contract import *  # noqa: F403 - the tests of the contract
from tests.mcp.oauth.store_contract import CHILD, CLIENT, GRANT, NOW, REQUEST
from tests.money.ledger.ledgers import opened_file
from tests.postgres import POSTGRES
from toolserver.mcp.oauth.records import make_secret
from toolserver.mcp.oauth.sql_store import SqlOAuthStore
from toolserver.sql.sqlite import durable


@pytest.fixture(params=["sqlite", POSTGRES])
async def store(request, tmp_path):
    async with opened_file(request.param, tmp_path) as file:
        yield SqlOAuthStore(file)


async def test_a_grant_outlives_the_process_and_the_file_holds_no_secret(tmp_path):
    path = tmp_path / "ledger.sqlite3"
    code, stored = make_secret("code", GRANT.id, CHILD, NOW + 60_000)
    async with durable(path) as file:
        store = SqlOAuthStore(file)
        await store.add_client(CLIENT)
        await store.add_request(REQUEST)
        assert await store.allow_request(REQUEST.id, GRANT, stored, NOW)
    async with durable(path) as file:
        assert await SqlOAuthStore(file).find_secret(stored.hash) == (stored, GRANT)
    written = b"".join(each.read_bytes() for each in tmp_path.glob("ledger.sqlite3*"))
    assert stored.hash in written
    assert code.encode() not in written
    assert CHILD.encode() not in written
