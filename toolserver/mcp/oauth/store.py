"""What a store of OAuth promises, whatever its engine."""

from collections.abc import Sequence
from typing import Protocol

from toolserver.errors import ToolserverError
from toolserver.mcp.oauth.records import DAY_MS, ConsentRequest, FoundSecret, GrantSecret, OAuthClient, OAuthGrant

MOST_CLIENTS, MOST_REQUESTS = 50_000, 20_000
UNUSED_CLIENT_MS, IDLE_CLIENT_MS = DAY_MS, 180 * DAY_MS
MOST_USED = 1000  # rotated refresh tokens of one grant that are still known, to notice that one is used again


class OAuthStoreFull(ToolserverError):
    """There is no room for another one, even after those that ended were forgotten."""


class OAuthStore(Protocol):
    """Clients, requests, grants and secrets, in one durable place. Any method may raise StorageFailed."""

    async def add_client(self, client: OAuthClient) -> None:
        """Keep a registered client; those that nobody used for long go first. Raises OAuthStoreFull."""
        ...

    async def find_client(self, id: str) -> OAuthClient | None:
        """A registered client."""
        ...

    async def add_request(self, request: ConsentRequest) -> None:
        """Keep a request; those that expired go first. Raises OAuthStoreFull."""
        ...

    async def find_request(self, id: bytes) -> ConsentRequest | None:
        """A request, also one that was answered or has expired."""
        ...

    async def keep_purchase(self, id: bytes, purchase: bytes | None) -> None:
        """Keep what is bought during a request, or forget it."""
        ...

    async def deny_request(self, id: bytes, now: int) -> bool:
        """Answer a request with no; False when it was answered before."""
        ...

    async def allow_request(self, id: bytes, grant: OAuthGrant, code: GrantSecret, now: int) -> bool:
        """Answer a request with a grant and its code, in one transaction; False when it was answered before."""
        ...

    async def find_secret(self, hash: bytes) -> FoundSecret | None:
        """A secret with its grant, also one that was used, has expired or is of a revoked grant."""
        ...

    async def exchange(self, hash: bytes, made: Sequence[GrantSecret], now: int) -> bool:
        """Use a secret up and keep those made from it, in one transaction. False, with nothing changed, when it was
        used before or its grant is revoked.
        """
        ...

    async def revoke_grant(self, id: str, now: int) -> None:
        """End a grant with all its secrets; one that was revoked before stays so."""
        ...

    async def sweep(self, now: int) -> int:
        """Forget what has ended, and clients that nobody used for long. Returns how many rows."""
        ...
