"""OAuth in memory: the contract, and what only memory can show."""

import pytest

from tests.mcp.oauth.store_contract import *  # noqa: F403 - the tests of the contract
from tests.mcp.oauth.store_contract import CLIENT, REQUEST
from toolserver.mcp.oauth.memory_store import MemoryOAuthStore


@pytest.fixture
def store():
    return MemoryOAuthStore()


async def test_two_services_share_nothing():
    one, other = MemoryOAuthStore(), MemoryOAuthStore()
    await one.add_client(CLIENT)
    await one.add_request(REQUEST)
    assert await other.find_client(CLIENT.id) is None
    assert await other.find_request(REQUEST.id) is None
