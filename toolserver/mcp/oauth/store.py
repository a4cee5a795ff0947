"""Define what OAuth stores (clients, requests that wait for a person, grants, and the secrets
that use a grant), what a store promises whatever its engine, the store in memory, and the
store in the database of the ledger or its journal.

A reader of these records cannot spend anything. A secret (a code, an access token, a refresh
token) is stored as its SHA-256. Beside it is the token of the allowance, encrypted under a
key derived from the secret itself. Times are in milliseconds since 1970.
"""

import hashlib
import hmac
import json
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple, Protocol, TypeVar

from toolserver.errors import ToolserverError
from toolserver.money.purchases.token_encryption import decrypt_token, encrypt_token
from toolserver.sql.connection import SqlConnection
from toolserver.sql.group_commit import GroupCommit

R = TypeVar("R")
SecretKind = Literal["code", "access", "refresh"]
MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
UNUSED_CLIENT_MS, IDLE_CLIENT_MS = DAY_MS, 180 * DAY_MS


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """How much a store holds.

    A full table drops the `dropped_share`-th part of what it may have, so that it is not
    sorted each time. `used` is how many rotated refresh tokens of one grant are still stored,
    to notice reuse.
    """

    clients: int = 50_000
    requests: int = 20_000
    used: int = 1000
    dropped_share: int = 100


STORE_LIMITS = StoreLimits()


class OAuthClient(NamedTuple):
    """A client. `secret_hash` is None for public clients; `document` says that it describes itself at its id, a URL.

    `owner` is who registered it, an address or the /48 of one; it is stored until the client is used first.
    """

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    created_at: int
    auth_method: str = "none"
    secret_hash: bytes | None = None
    used_at: int | None = None
    document: bool = False
    owner: str = ""


class ConsentRequest(NamedTuple):
    """A valid authorization request that waits for a person.

    `id` and `browser` are hashes of secrets that only that person's browser has. `purchase`
    is the person's purchase during the request, encrypted under the id. `owner` is who began
    it, an address or the /48 of one.
    """

    id: bytes
    browser: bytes
    client_id: str
    client_name: str
    redirect_uri: str
    state: str | None
    challenge: str
    created_at: int
    expires_at: int
    purchase: bytes | None = None
    answered_at: int | None = None
    owner: str = ""


class OAuthGrant(NamedTuple):
    """What a person allowed a client. `child` is the SHA-256 (hex) of the allowance's token; empty without one."""

    id: str
    client_id: str
    redirect_uri: str
    challenge: str
    child: str
    created_at: int
    expires_at: int
    revoked_at: int | None = None


@dataclass(frozen=True, slots=True)
class GrantSecret:
    """A code, an access token or a refresh token. Codes and refresh tokens are used only once."""

    hash: bytes
    grant: str
    kind: SecretKind
    sealed: bytes
    expires_at: int
    used_at: int | None = None


class PresentedSecret(NamedTuple):
    """A presented secret and its grant."""

    secret: GrantSecret
    grant: OAuthGrant


def new_secret(kind: SecretKind) -> str:
    """Return a secret of 256 random bits. Logs recognise its shape and mask it."""
    return f"svc_{kind}_{secrets.token_hex(32)}"


def hash_secret(secret: str) -> bytes:
    """Return the hash that is stored instead of a secret. 256 random bits need no slow hash."""
    return hashlib.sha256(secret.encode(errors="replace")).digest()


def seal_under(secret: str, text: str) -> bytes:
    """Encrypt a text under a secret."""
    return encrypt_token(text, _key(secret))


def unseal_with(secret: str, sealed: bytes) -> str | None:
    """Decrypt the text; None if the secret is another one."""
    return decrypt_token(sealed, _key(secret))


def make_secret(kind: SecretKind, grant: str, child: str, expires_at: int) -> tuple[str, GrantSecret]:
    """Make a new secret of a grant and its stored form. `child` is the token of the allowance."""
    secret = new_secret(kind)
    return secret, GrantSecret(hash_secret(secret), grant, kind, seal_under(secret, child), expires_at)


def _key(secret: str) -> bytes:
    return hmac.digest(b"toolserver oauth secret", secret.encode(errors="replace"), "sha256")


class OAuthStoreFull(ToolserverError):
    """There is no room for another record, even after deleting those that have ended."""


class OAuthStore(Protocol):
    """Clients, requests, grants and secrets, in one durable place. Any method may raise StorageFailed."""

    async def add_client(self, client: OAuthClient) -> None:
        """Store a registered client, after deleting clients unused for a long time.

        A full table drops the oldest of the owner who has most, of clients that were never
        used. Raises OAuthStoreFull if all were used.
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

    async def find_secret(self, hash: bytes) -> PresentedSecret | None:
        """Return a secret with its grant, also if it was used, has expired or belongs to a revoked grant."""
        ...

    async def exchange(self, hash: bytes, successors: Sequence[GrantSecret], now: int) -> bool:
        """Mark a secret as used and store its successors, in one transaction.

        Returns False and changes nothing if the secret was used before or its grant is revoked.
        """
        ...

    async def revoke_grant(self, id: str, now: int) -> None:
        """End a grant and all its secrets. A grant that is already revoked is unchanged."""
        ...

    async def sweep(self, now: int) -> int:
        """Delete ended records and clients unused for a long time. Returns the number of deleted rows."""
        ...


class MemoryOAuthStore:
    """An `OAuthStore` that lasts as long as the process."""

    def __init__(self, limits: StoreLimits = STORE_LIMITS) -> None:
        self.limits = limits
        self._clients: dict[str, OAuthClient] = {}
        self._requests: dict[bytes, ConsentRequest] = {}
        self._grants: dict[str, OAuthGrant] = {}
        self._secrets: dict[bytes, GrantSecret] = {}

    async def add_client(self, client: OAuthClient) -> None:
        if len(self._clients) >= self.limits.clients:
            self._forget_clients(client.created_at)
        if len(self._clients) >= self.limits.clients:
            self._drop_clients()
        if len(self._clients) >= self.limits.clients:
            raise OAuthStoreFull(f"{self.limits.clients} clients are registered")
        self._clients[client.id] = client

    async def find_client(self, id: str) -> OAuthClient | None:
        return self._clients.get(id)

    async def add_request(self, request: ConsentRequest) -> None:
        if len(self._requests) >= self.limits.requests:
            self._forget_requests(request.created_at)
        if len(self._requests) >= self.limits.requests:
            self._drop_requests()
        self._requests[request.id] = request

    async def find_request(self, id: bytes) -> ConsentRequest | None:
        return self._requests.get(id)

    async def keep_purchase(self, id: bytes, purchase: bytes | None) -> None:
        if id in self._requests:
            self._requests[id] = self._requests[id]._replace(purchase=purchase)

    async def deny_request(self, id: bytes, now: int) -> bool:
        request = self._requests.get(id)
        if request is None or request.answered_at is not None:
            return False
        self._requests[id] = request._replace(answered_at=now, purchase=None)
        return True

    async def allow_request(self, id: bytes, grant: OAuthGrant, code: GrantSecret, now: int) -> bool:
        if not await self.deny_request(id, now):
            return False
        self._grants[grant.id], self._secrets[code.hash] = grant, code
        if (client := self._clients.get(grant.client_id)) is not None:
            self._clients[client.id] = client._replace(used_at=now, owner="")
        return True

    async def find_secret(self, hash: bytes) -> PresentedSecret | None:
        secret = self._secrets.get(hash)
        return None if secret is None else PresentedSecret(secret, self._grants[secret.grant])

    async def exchange(self, hash: bytes, successors: Sequence[GrantSecret], now: int) -> bool:
        presented = await self.find_secret(hash)
        if presented is None or presented.secret.used_at is not None or presented.grant.revoked_at is not None:
            return False
        self._secrets[hash] = replace(presented.secret, used_at=now)
        self._secrets.update({secret.hash: secret for secret in successors})
        of_grant = [s for s in self._secrets.values() if s.grant == presented.grant.id]
        for old in [s for s in of_grant if s.used_at is not None][: -self.limits.used]:
            del self._secrets[old.hash]
        for old in [s for s in of_grant if s.kind == "access" and s.expires_at <= now]:
            del self._secrets[old.hash]
        if (client := self._clients.get(presented.grant.client_id)) is not None:
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
        for request in order[: max(1, self.limits.requests // self.limits.dropped_share)]:
            del self._requests[request.id]

    def _drop_clients(self) -> None:
        unused = [client for client in self._clients.values() if client.used_at is None]
        counts = Counter(client.owner for client in unused)
        unused.sort(key=lambda c: (-counts[c.owner], c.created_at, c.id))
        for client in unused[: max(1, self.limits.clients // self.limits.dropped_share)]:
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


ROOM = "oauth"  # the lock for writes about clients and grants: one instance at a time
_IDLE = "(used_at IS NULL AND created_at<=?) OR used_at<=?"
_TOUCH = "UPDATE oauth_client SET used_at=?, owner='' WHERE id=?"
_ANSWER = "UPDATE oauth_request SET answered_at=?, purchase=NULL WHERE id=? AND answered_at IS NULL"
_DROP_REQUESTS = (
    "DELETE FROM oauth_request WHERE id IN (SELECT id FROM oauth_request ORDER BY"
    " CASE WHEN purchase IS NULL THEN 0 ELSE 1 END, count(*) OVER (PARTITION BY owner) DESC, created_at, id LIMIT ?)"
)
_DROP_CLIENTS = (
    "DELETE FROM oauth_client WHERE id IN (SELECT id FROM oauth_client WHERE used_at IS NULL ORDER BY"
    " count(*) OVER (PARTITION BY owner) DESC, created_at, id LIMIT ?)"
)
_USE = (
    "UPDATE oauth_secret SET used_at=? WHERE hash=? AND used_at IS NULL"
    " AND grant_id IN (SELECT id FROM oauth_grant WHERE revoked_at IS NULL)"
)
_FORGET_USED = (
    "DELETE FROM oauth_secret WHERE hash IN"
    " (SELECT hash FROM oauth_secret WHERE grant_id=? AND used_at IS NOT NULL"
    f" ORDER BY used_at DESC LIMIT {2**62} OFFSET ?)"
)


class SqlOAuthStore:
    """An `OAuthStore` over a database with group commit."""

    def __init__(self, file: GroupCommit, limits: StoreLimits = STORE_LIMITS) -> None:
        self._file, self.limits = file, limits

    async def _write(self, job: Callable[[SqlConnection], R]) -> R:
        return await self._file.alone(job, room=ROOM)

    async def add_client(self, client: OAuthClient) -> None:
        await self._write(partial(_add_client, client, self.limits))

    async def find_client(self, id: str) -> OAuthClient | None:
        return await self._file.read(partial(_find_client, id))

    async def add_request(self, request: ConsentRequest) -> None:
        await self._write(partial(_add_request, request, self.limits))

    async def find_request(self, id: bytes) -> ConsentRequest | None:
        return await self._file.read(partial(_find_request, id))

    async def keep_purchase(self, id: bytes, purchase: bytes | None) -> None:
        await self._write(
            lambda db: db.execute("UPDATE oauth_request SET purchase=? WHERE id=?", (purchase, id)).rowcount
        )

    async def deny_request(self, id: bytes, now: int) -> bool:
        return await self._write(lambda db: db.execute(_ANSWER, (now, id)).rowcount == 1)

    async def allow_request(self, id: bytes, grant: OAuthGrant, code: GrantSecret, now: int) -> bool:
        return await self._write(partial(_allow, id, grant, code, now))

    async def find_secret(self, hash: bytes) -> PresentedSecret | None:
        return await self._file.read(partial(_find_secret, hash))

    async def exchange(self, hash: bytes, successors: Sequence[GrantSecret], now: int) -> bool:
        return await self._write(partial(_exchange, hash, successors, self.limits.used, now))

    async def revoke_grant(self, id: str, now: int) -> None:
        sql = "UPDATE oauth_grant SET revoked_at=? WHERE id=? AND revoked_at IS NULL"
        await self._write(lambda db: db.execute(sql, (now, id)).rowcount)

    async def sweep(self, now: int) -> int:
        return await self._write(partial(_sweep, now))


def _add_client(client: OAuthClient, limits: StoreLimits, db: SqlConnection) -> None:
    if _count(db, "oauth_client") >= limits.clients:
        _forget_clients(db, client.created_at)
    if _count(db, "oauth_client") >= limits.clients:
        db.execute(_DROP_CLIENTS, (max(1, limits.clients // limits.dropped_share),))
    if _count(db, "oauth_client") >= limits.clients:
        raise OAuthStoreFull(f"{limits.clients} clients are registered")
    uris = json.dumps(client.redirect_uris)
    row = (client.id, client.name, uris, client.created_at, client.auth_method, client.secret_hash, client.used_at)
    db.execute("INSERT INTO oauth_client VALUES(?,?,?,?,?,?,?,?)", (*row, client.owner))


def _find_client(id: str, db: SqlConnection) -> OAuthClient | None:
    columns = "id, name, redirect_uris, created_at, auth_method, secret_hash, used_at, owner"
    row = db.execute(f"SELECT {columns} FROM oauth_client WHERE id=?", (id,)).fetchone()  # nosec B608 # fixed names
    if row is None:
        return None
    id, name, uris, created_at, *rest, owner = row
    return OAuthClient(id, name, tuple(json.loads(uris)), created_at, *rest)._replace(owner=owner)


def _add_request(request: ConsentRequest, limits: StoreLimits, db: SqlConnection) -> None:
    if _count(db, "oauth_request") >= limits.requests:
        _forget_requests(db, request.created_at)
    if _count(db, "oauth_request") >= limits.requests:
        db.execute(_DROP_REQUESTS, (max(1, limits.requests // limits.dropped_share),))
    db.execute("INSERT INTO oauth_request VALUES(?,?,?,?,?,?,?,?,?,?,?,?)", request)


def _find_request(id: bytes, db: SqlConnection) -> ConsentRequest | None:
    row = db.execute("SELECT * FROM oauth_request WHERE id=?", (id,)).fetchone()
    return None if row is None else ConsentRequest(*row)


def _allow(id: bytes, grant: OAuthGrant, code: GrantSecret, now: int, db: SqlConnection) -> bool:
    if db.execute(_ANSWER, (now, id)).rowcount != 1:
        return False
    db.execute("INSERT INTO oauth_grant VALUES(?,?,?,?,?,?,?,?)", grant)
    _add_secret(db, code)
    db.execute(_TOUCH, (now, grant.client_id))
    return True


def _find_secret(hash: bytes, db: SqlConnection) -> PresentedSecret | None:
    row = db.execute(
        "SELECT s.hash, s.grant_id, s.kind, s.sealed, s.expires_at, s.used_at, g.*"
        " FROM oauth_secret s JOIN oauth_grant g ON g.id=s.grant_id WHERE s.hash=?",
        (hash,),
    ).fetchone()
    return None if row is None else PresentedSecret(GrantSecret(*row[:6]), OAuthGrant(*row[6:]))


def _exchange(hash: bytes, successors: Sequence[GrantSecret], most_used: int, now: int, db: SqlConnection) -> bool:
    if db.execute(_USE, (now, hash)).rowcount != 1:
        return False
    for secret in successors:
        _add_secret(db, secret)
    (grant,) = db.execute("SELECT grant_id FROM oauth_secret WHERE hash=?", (hash,)).fetchone()
    db.execute(_FORGET_USED, (grant, most_used))
    db.execute("DELETE FROM oauth_secret WHERE grant_id=? AND kind='access' AND expires_at<=?", (grant, now))
    (client,) = db.execute("SELECT client_id FROM oauth_grant WHERE id=?", (grant,)).fetchone()
    db.execute(_TOUCH, (now, client))
    return True


def _add_secret(db: SqlConnection, secret: GrantSecret) -> None:
    row = (secret.hash, secret.grant, secret.kind, secret.sealed, secret.expires_at, secret.used_at)
    db.execute("INSERT INTO oauth_secret VALUES(?,?,?,?,?,?)", row)


def _sweep(now: int, db: SqlConnection) -> int:
    ended = "SELECT id FROM oauth_grant WHERE expires_at<=?"
    sql = f"DELETE FROM oauth_secret WHERE expires_at<=? OR grant_id IN ({ended})"  # nosec B608 # fixed names
    secrets = db.execute(sql, (now, now)).rowcount
    grants = db.execute("DELETE FROM oauth_grant WHERE expires_at<=?", (now,)).rowcount
    return secrets + grants + _forget_requests(db, now) + _forget_clients(db, now)


def _forget_requests(db: SqlConnection, now: int) -> int:
    return db.execute("DELETE FROM oauth_request WHERE expires_at<=?", (now,)).rowcount


def _forget_clients(db: SqlConnection, now: int) -> int:
    times = (now - UNUSED_CLIENT_MS, now - IDLE_CLIENT_MS)
    return db.execute(f"DELETE FROM oauth_client WHERE {_IDLE}", times).rowcount  # nosec B608 # fixed names


def _count(db: SqlConnection, table: str) -> int:
    (count,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()  # nosec B608 # fixed names
    return int(count)
