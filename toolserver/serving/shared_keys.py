"""Compare the keys of an instance that shares a database: they come from a mounted secret and must be the same."""

import hashlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from toolserver.calls.visitor_tokens import KEY_FILE as VISITOR_KEY_FILE
from toolserver.money.receipts.keys import LOG_KEYS, RECEIPT_KEYS, KeyRing, find_key_file
from toolserver.money.receipts.sql_keys import KeysDiffer, PublishedKeys
from toolserver.sql.group_commit import GroupCommit
from toolserver.webhooks.signing import KEY_FILE

AGREE_EVERY_S = 10.0  # a rotation or a revocation reaches every instance within this time


class SharedKeys:
    """The key files of one instance, compared with those of the others. With its own ledger file, there are none."""

    def __init__(self, file: GroupCommit, data_dir: Path, keys_dir: Path | None = None) -> None:
        self._is_misplaced = keys_dir is not None and not file.shared
        self._find = partial(find_key_file, data_dir, keys_dir=keys_dir)
        self._shared = file.shared
        self._published = PublishedKeys(file)

    async def require_mounted(self) -> None:
        """Check that this instance makes no keys if others have published theirs: then a secret was not mounted.

        Raises:
            KeysDiffer, StorageFailed
        """
        if self._is_misplaced:
            raise KeysDiffer("scaling.keys_dir is for instances that share a database, but database_url is not set")
        missing = [path for path in map(self._find, (RECEIPT_KEYS, LOG_KEYS)) if not path.exists()]
        if self._shared and missing and await self._published.has_any():
            raise KeysDiffer(
                f"other instances have published their keys, but {' and '.join(map(str, missing))} are missing:"
                " set `scaling.keys_dir` to the mounted folder that `toolserver keys make` wrote"
            )

    async def agree(self, rings: Mapping[str, KeyRing]) -> None:
        """Publish the keys of these rings, by purpose, and add the other instances' keys to each ring.

        Raises:
            KeysDiffer, StorageFailed
        """
        if not self._shared:
            return
        for purpose, ring in rings.items():
            ring.learn(await self._published.agree(purpose, ring.own))
        for purpose, name in (("webhooks", KEY_FILE), ("visitors", VISITOR_KEY_FILE)):
            if (path := self._find(name)).exists():  # each is created when it is first needed
                fingerprint = hashlib.sha256(f"{purpose} ".encode() + path.read_bytes()).hexdigest()
                await self._published.require_same(purpose, fingerprint)
