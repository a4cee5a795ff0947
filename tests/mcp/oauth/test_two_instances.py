"""Two instances that are given one code or one refresh token: it is exchanged once."""

import anyio
import pytest

from tests.mcp.oauth.store_contract import NOW, allowed, made
from tests.money.ledger.ledgers import opened_file
from toolserver.mcp.oauth.sql_store import SqlOAuthStore

pytestmark = pytest.mark.live


async def test_a_code_is_exchanged_once_whichever_instance_gets_it(tmp_path):
    async with opened_file("postgres", tmp_path) as one, opened_file("postgres", tmp_path) as other:
        stores = SqlOAuthStore(one), SqlOAuthStore(other)
        code, done = await allowed(stores[0]), []

        async def exchange(store):
            done.append(await store.exchange(code.hash, [made("access"), made("refresh")], NOW))

        async with anyio.create_task_group() as tasks:
            for turn in range(8):
                tasks.start_soon(exchange, stores[turn % 2])
        assert sorted(done) == [False] * 7 + [True]
        await stores[1].revoke_grant("grant_1", NOW)
        assert (await stores[0].find_secret(code.hash)).grant.revoked_at == NOW
