"""Store OAuth data in SQL, in the database of the ledger or of its journal."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from toolserver.mcp.oauth.store import (
    IDLE_CLIENT_MS,
    STORE_LIMITS,
    UNUSED_CLIENT_MS,
    ConsentRequest,
    GrantSecret,
    OAuthClient,
    OAuthGrant,
    OAuthStoreFull,
    PresentedSecret,
    StoreLimits,
)
from toolserver.sql.connection import SqlConnection
from toolserver.sql.group_commit import GroupCommit

R = TypeVar("R")

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
