"""Store OAuth data in memory, for services whose ledger is in memory too."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from toolserver.mcp.oauth.records import ConsentRequest, FoundSecret, GrantSecret, OAuthClient, OAuthGrant
from toolserver.mcp.oauth.store import (
    IDLE_CLIENT_MS,
    MOST_CLIENTS,
    MOST_REQUESTS,
    MOST_USED,
    ROOM_AT_ONCE,
    UNUSED_CLIENT_MS,
    OAuthStoreFull,
)


class MemoryOAuthStore:
    """An `OAuthStore` that lasts as long as the process."""

    def __init__(self) -> None:
        self._clients: dict[str, OAuthClient] = {}
        self._requests: dict[bytes, ConsentRequest] = {}
        self._grants: dict[str, OAuthGrant] = {}
        self._secrets: dict[bytes, GrantSecret] = {}

    async def add_client(self, client: OAuthClient) -> None:
        if len(self._clients) >= MOST_CLIENTS:
            self._forget_clients(client.created_at)
        if len(self._clients) >= MOST_CLIENTS:
            self._drop_clients()
        if len(self._clients) >= MOST_CLIENTS:
            raise OAuthStoreFull(f"{MOST_CLIENTS} clients are registered")
        self._clients[client.id] = client

    async def find_client(self, id: str) -> OAuthClient | None:
        return self._clients.get(id)

    async def add_request(self, request: ConsentRequest) -> None:
        if len(self._requests) >= MOST_REQUESTS:
            self._forget_requests(request.created_at)
        if len(self._requests) >= MOST_REQUESTS:
            self._drop_requests()
        self._requests[request.id] = request

    async def find_request(self, id: bytes) -> ConsentRequest | None:
        return self._requests.get(id)

    async def keep_purchase(self, id: bytes, purchase: bytes | None) -> None:
        if id in self._requests:
            self._requests[id] = self._requests[id]._replace(purchase=purchase)

    async def deny_request(self, id: bytes, now: int) -> bool:
        found = self._requests.get(id)
        if found is None or found.answered_at is not None:
            return False
        self._requests[id] = found._replace(answered_at=now, purchase=None)
        return True

    async def allow_request(self, id: bytes, grant: OAuthGrant, code: GrantSecret, now: int) -> bool:
        if not await self.deny_request(id, now):
            return False
        self._grants[grant.id], self._secrets[code.hash] = grant, code
        if (client := self._clients.get(grant.client_id)) is not None:
            self._clients[client.id] = client._replace(used_at=now, owner="")
        return True

    async def find_secret(self, hash: bytes) -> FoundSecret | None:
        found = self._secrets.get(hash)
        return None if found is None else FoundSecret(found, self._grants[found.grant])

    async def exchange(self, hash: bytes, made: Sequence[GrantSecret], now: int) -> bool:
        found = await self.find_secret(hash)
        if found is None or found.secret.used_at is not None or found.grant.revoked_at is not None:
            return False
        self._secrets[hash] = replace(found.secret, used_at=now)
        self._secrets.update({secret.hash: secret for secret in made})
        of_grant = [s for s in self._secrets.values() if s.grant == found.grant.id]
        for old in [s for s in of_grant if s.used_at is not None][:-MOST_USED]:
            del self._secrets[old.hash]
        for old in [s for s in of_grant if s.kind == "access" and s.expires_at <= now]:
            del self._secrets[old.hash]
        if (client := self._clients.get(found.grant.client_id)) is not None:
            self._clients[client.id] = client._replace(used_at=now, owner="")
        return True

    async def revoke_grant(self, id: str, now: int) -> None:
        grant = self._grants.get(id)
        if grant is not None and grant.revoked_at is None:
            self._grants[id] = grant._replace(revoked_at=now)

    async def sweep(self, now: int) -> int:
        ended = [id for id, grant in self._grants.items() if grant.expires_at <= now]
        expired = [s.hash for s in self._secrets.values() if s.expires_at <= now or s.grant in ended]
        for hash in expired:
            del self._secrets[hash]
        for id in ended:
            del self._grants[id]
        return len(ended) + len(expired) + self._forget_requests(now) + self._forget_clients(now)

    def _forget_requests(self, now: int) -> int:
        ended = [id for id, request in self._requests.items() if request.expires_at <= now]
        for id in ended:
            del self._requests[id]
        return len(ended)

    def _drop_requests(self) -> None:
        counts = Counter(request.owner for request in self._requests.values())
        order = sorted(
            self._requests.values(), key=lambda r: (r.purchase is not None, -counts[r.owner], r.created_at, r.id)
        )
        for request in order[: max(1, MOST_REQUESTS // ROOM_AT_ONCE)]:
            del self._requests[request.id]

    def _drop_clients(self) -> None:
        unused = [client for client in self._clients.values() if client.used_at is None]
        counts = Counter(client.owner for client in unused)
        unused.sort(key=lambda c: (-counts[c.owner], c.created_at, c.id))
        for client in unused[: max(1, MOST_CLIENTS // ROOM_AT_ONCE)]:
            del self._clients[client.id]

    def _forget_clients(self, now: int) -> int:
        idle = [
            client.id
            for client in self._clients.values()
            if (client.used_at is None and client.created_at <= now - UNUSED_CLIENT_MS)
            or (client.used_at is not None and client.used_at <= now - IDLE_CLIENT_MS)
        ]
        for id in idle:
            del self._clients[id]
        return len(idle)
