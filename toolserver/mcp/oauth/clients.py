"""Find known clients: registered ones, and those that describe themselves at their id."""

from toolserver.mcp.oauth.client_documents import ClientDocumentRefused, ClientDocuments, is_client_url
from toolserver.mcp.oauth.records import OAuthClient
from toolserver.mcp.oauth.store import OAuthStore


class ClientDirectory:
    """Finds clients by id."""

    def __init__(self, store: OAuthStore, documents: ClientDocuments) -> None:
        self.store, self._documents = store, documents

    async def find(self, id: str, caller: str | None = None) -> OAuthClient | None:
        """Return a client; None if it is not registered. `caller` is who asks, by address.

        Raises:
            ClientDocumentRefused: the id is a URL that describes no client.
            ClientDocumentsBusy: its document was not read, because of others.
        """
        if is_client_url(id):
            return await self._documents.find(id, caller)
        return await self.store.find_client(id)

    async def find_known(self, id: str, caller: str | None = None) -> OAuthClient | None:
        """Return the same, but None also for a URL that describes no client. Raises ClientDocumentsBusy."""
        try:
            return await self.find(id, caller)
        except ClientDocumentRefused:
            return None
