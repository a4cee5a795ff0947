"""Stores the keys that the instances of one database publish together, in that database."""

import json
from dataclasses import replace
from functools import partial

from toolserver.errors import ToolserverError
from toolserver.money.receipts.keys import Key, Keys, join_keys, parse_keys
from toolserver.sql.connection import SqlConnection
from toolserver.sql.group_commit import GroupCommit

ROOM = "keys"


class PublishedKeys:
    """The published keys of each purpose: public keys, or the fingerprint of a secret that has no public half."""

    def __init__(self, file: GroupCommit) -> None:
        self._file = file

    async def agree(self, purpose: str, held: Keys) -> Keys:
        """Publish the keys of this instance beside those of others, and return all of them, without private halves.

        Raises:
            KeysDiffer: other keys are published. StorageFailed.
        """
        published = await self._file.read(partial(_list, purpose))
        if set(agreed := agree_on_keys(held, published, name=purpose)) == set(published):
            return agreed  # nearly always the case, because instances call this every few seconds
        return await self._file.alone(partial(_agree, purpose, held), room=ROOM)

    async def require_same(self, purpose: str, fingerprint: str) -> None:
        """Publish the fingerprint of a secret, which every instance must have.

        Raises:
            KeysDiffer: another fingerprint is published. StorageFailed.
        """
        await self._file.alone(partial(_require_same, purpose, fingerprint), room=ROOM)

    async def has_any(self) -> bool:
        """Return True if an instance has published its keys."""
        return await self._file.read(_has_any)


def _list(purpose: str, db: SqlConnection) -> Keys:
    rows = db.execute("SELECT jwk FROM published_key WHERE purpose=?", (purpose,)).fetchall()
    return parse_keys({"keys": [json.loads(jwk) for (jwk,) in rows]})


def _agree(purpose: str, held: Keys, db: SqlConnection) -> Keys:
    published = _list(purpose, db)
    agreed = agree_on_keys(held, published, name=purpose)
    for key in set(agreed) - set(published):
        _store(db, purpose, key)
    return agreed


def _store(db: SqlConnection, purpose: str, key: Key) -> None:
    sql = """INSERT INTO published_key(purpose, kid, jwk) VALUES(?,?,?)
      ON CONFLICT(purpose, kid) DO UPDATE SET jwk=excluded.jwk"""
    db.execute(sql, (purpose, key.kid, json.dumps(key.jwk())))


def _require_same(purpose: str, fingerprint: str, db: SqlConnection) -> None:
    rows = db.execute("SELECT kid FROM published_key WHERE purpose=?", (purpose,)).fetchall()
    if not rows:
        db.execute("INSERT INTO published_key(purpose, kid, jwk) VALUES(?,?,'{}')", (purpose, fingerprint))
    elif rows != [(fingerprint,)]:
        raise KeysDiffer(f"the key for {purpose} here differs from that of the other instances: set `scaling.keys_dir`")


def _has_any(db: SqlConnection) -> bool:
    return db.execute("SELECT 1 FROM published_key LIMIT 1").fetchone() is not None


class KeysDiffer(ToolserverError):
    """The database publishes other keys: this instance has those of another service, or its secret was not mounted."""


def agree_on_keys(held: Keys, published: Keys, *, name: str) -> Keys:
    """Return the keys to publish from now on, without private halves: the published ones with the held ones added.

    `name` says in messages what the keys are for.

    Raises:
        KeysDiffer: keys are published, and none of the held ones is among them.
    """
    listed = {key.kid for key in published}
    if published and not any(key.kid in listed for key in held):
        raise KeysDiffer(
            f"the database publishes none of the keys for {name} here: give every instance the same keys by setting"
            f" `scaling.keys_dir` to a mounted folder that `toolserver keys make` wrote"
        )
    return join_keys(replace(key, seed=None) for key in (*published, *held))
