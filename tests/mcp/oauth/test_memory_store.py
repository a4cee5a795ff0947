"""OAuth in memory: what only memory can show. The contract is in test_store.py."""

from tests.mcp.oauth.test_store import CLIENT, REQUEST
from toolserver.mcp.oauth.memory_store import MemoryOAuthStore


async def test_two_services_share_nothing():
    one, other = MemoryOAuthStore(), MemoryOAuthStore()
    await one.add_client(CLIENT)
    await one.add_request(REQUEST)
    assert await other.find_client(CLIENT.id) is None
    assert await other.find_request(REQUEST.id) is None
