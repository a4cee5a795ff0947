"""Clients by id: registered, or described at their id."""

import pytest

from tests.mcp.oauth.store_contract import CLIENT
from toolserver.mcp.oauth.client_documents import ClientDocumentRefused
from toolserver.mcp.oauth.clients import ClientDirectory
from toolserver.mcp.oauth.memory_store import MemoryOAuthStore

URL = "https://host.example/client"


class Documents:
    async def find(self, url, caller=None):
        self.caller = caller
        if url != URL:
            raise ClientDocumentRefused("no document")
        return CLIENT._replace(id=url, document=True)


async def test_a_url_is_read_and_a_name_is_looked_up():
    store = MemoryOAuthStore()
    await store.add_client(CLIENT)
    clients = ClientDirectory(store, Documents())
    assert await clients.find(CLIENT.id) == CLIENT
    assert await clients.find("other") is None
    assert (await clients.find(URL)).document
    with pytest.raises(ClientDocumentRefused):
        await clients.find(URL + "x")
    assert await clients.find_known(URL + "x") is None
    assert await clients.find_known(CLIENT.id) == CLIENT
