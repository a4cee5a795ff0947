"""The keys of an instance that shares a database: they come from a mounted secret, and are those of the others."""

import hashlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from toolserver.receipts.keys import LOG_KEYS, RECEIPT_KEYS, KeyRing, find_key_file
from toolserver.receipts.postgres_keys import PublishedKeys
from toolserver.receipts.published_keys import KeysDiffer
from toolserver.storage.group_commit import GroupCommit
from toolserver.webhooks.secret_box import KEY_FILE

AGREE_EVERY_S = 10.0  # a rotation or a revocation reaches every instance within this time


class SharedKeys:
    """The key files of one instance, compared with those of the others. With a file of its own there are no others."""

    def __init__(self, file: GroupCommit, data_dir: Path, keys_dir: Path | None = None) -> None:
        self._is_misplaced = keys_dir is not None and not file.shared
        self._find, self._shared = partial(find_key_file, data_dir, keys_dir=keys_dir), file.shared
        self._published = PublishedKeys(file)

    async def require_mounted(self) -> None:
        """See that no keys are made here where other instances have published theirs: then a secret was not mounted.

        Raises:
            KeysDiffer, StorageFailed
        """
        if self._is_misplaced:
            raise KeysDiffer("scaling.keys_dir is for instances that share a database_url, and that is not set")
        missing = [path for path in map(self._find, (RECEIPT_KEYS, LOG_KEYS)) if not path.exists()]
        if self._shared and missing and await self._published.has_any():
            raise KeysDiffer(
                f"other instances have published their keys, and {' and '.join(map(str, missing))} are missing:"
                " set `scaling.keys_dir` to the mounted folder that `toolserver keys make` wrote"
            )

    async def agree(self, rings: Mapping[str, KeyRing]) -> None:
        """Publish the keys of these rings, by what they are for, and let each ring know those of the others.

        Raises:
            KeysDiffer, StorageFailed
        """
        if not self._shared:
            return
        for purpose, ring in rings.items():
            ring.learn(await self._published.agree(purpose, ring.own))
        if (path := self._find(KEY_FILE)).exists():  # made when the first webhook is
            fingerprint = hashlib.sha256(b"webhooks " + path.read_bytes()).hexdigest()
            await self._published.require_same("webhooks", fingerprint)
