"""Define what a store of OAuth data promises, whatever its engine."""

from collections.abc import Sequence
from typing import Protocol

from toolserver.errors import ToolserverError
from toolserver.mcp.oauth.records import DAY_MS, ConsentRequest, FoundSecret, GrantSecret, OAuthClient, OAuthGrant

MOST_CLIENTS, MOST_REQUESTS = 50_000, 20_000
UNUSED_CLIENT_MS, IDLE_CLIENT_MS = DAY_MS, 180 * DAY_MS
ROOM_AT_ONCE = 100  # a full table drops the hundredth part of what it may have, so that it is not sorted each time
MOST_USED = 1000  # rotated refresh tokens of one grant that are still stored, to notice reuse


class OAuthStoreFull(ToolserverError):
    """There is no room for another record, even after deleting those that have ended."""


class OAuthStore(Protocol):
    """Clients, requests, grants and secrets, in one durable place. Any method may raise StorageFailed."""

    async def add_client(self, client: OAuthClient) -> None:
        """Store a registered client, after deleting clients unused for a long time.

        A full table drops the oldest of the owner who has most, of clients that were never used. Raises OAuthStoreFull
        if all were used.
        """
        ...

    async def find_client(self, id: str) -> OAuthClient | None:
        """Return a registered client, or None."""
        ...

    async def add_request(self, request: ConsentRequest) -> None:
        """Store a request, after deleting expired ones.

        A full table drops the oldest of the owner who has most, and last those during which something was bought.
        """
        ...

    async def find_request(self, id: bytes) -> ConsentRequest | None:
        """Return a request, also one that was answered or has expired."""
        ...

    async def keep_purchase(self, id: bytes, purchase: bytes | None) -> None:
        """Store the purchase made during a request, or delete it."""
        ...

    async def deny_request(self, id: bytes, now: int) -> bool:
        """Deny a request. Returns False if it was answered before."""
        ...

    async def allow_request(self, id: bytes, grant: OAuthGrant, code: GrantSecret, now: int) -> bool:
        """Answer a request with a grant and its code, in one transaction. Returns False if it was answered before."""
        ...

    async def find_secret(self, hash: bytes) -> FoundSecret | None:
        """Return a secret with its grant, also if it was used, has expired or belongs to a revoked grant."""
        ...

    async def exchange(self, hash: bytes, made: Sequence[GrantSecret], now: int) -> bool:
        """Mark a secret as used and store those made from it, in one transaction.

        Returns False and changes nothing if the secret was used before or its grant is revoked.
        """
        ...

    async def revoke_grant(self, id: str, now: int) -> None:
        """End a grant and all its secrets. A grant that is already revoked is unchanged."""
        ...

    async def sweep(self, now: int) -> int:
        """Delete ended records and clients unused for a long time. Returns the number of deleted rows."""
        ...
