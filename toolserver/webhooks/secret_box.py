"""Encrypt the secrets of subscriptions at rest. Signing needs them, so they cannot be hashed.

The key is a file beside the database, readable by its owner only: a copy of the database alone opens no secret.
"""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

import msgspec

from toolserver.errors import ToolserverError
from toolserver.money.purchases.token_encryption import decrypt_token, encrypt_token
from toolserver.money.receipts.keys import find_key_file

KEY_FILE = "keys/webhooks.key"  # below the data directory
KEY_BYTES = 32
OVERLAP_MS = 24 * 3_600_000  # how long the previous secret stays valid


class SecretsUnreadable(ToolserverError):
    """The key file is damaged, or these secrets were encrypted with another key."""


class SubscriptionSecrets(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The owner's secrets: the signing secret, for a while the previous one, and custom headers. Never logged."""

    secret: str
    previous: str | None = None
    previous_until: int = 0
    headers: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return "SubscriptionSecrets(…)"

    def older(self, now: int) -> str | None:
        """Return the previous secret if it is still valid at `now` in milliseconds."""
        return self.previous if now < self.previous_until else None

    def rotate(self, secret: str, now: int) -> "SubscriptionSecrets":
        """Return the secrets with a new signing secret. The previous one stays valid for a day."""
        return msgspec.structs.replace(self, secret=secret, previous=self.secret, previous_until=now + OVERLAP_MS)


class SecretBoxKey:
    """Encrypts and decrypts."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def __repr__(self) -> str:
        return "SecretBoxKey(…)"

    def seal(self, held: SubscriptionSecrets) -> bytes:
        """Encrypt the secrets for storage."""
        return encrypt_token(msgspec.json.encode(held).decode(), self._key)

    def unseal(self, sealed: bytes) -> SubscriptionSecrets:
        """Decrypt the secrets. Raises SecretsUnreadable."""
        text = decrypt_token(sealed, self._key)
        if text is None:
            raise SecretsUnreadable("the secrets of a subscription were encrypted with another key")
        return msgspec.json.decode(text, type=SubscriptionSecrets)


def temporary_key() -> SecretBoxKey:
    """Return a key that lasts as long as the process, for data stored only in memory."""
    return SecretBoxKey(secrets.token_bytes(KEY_BYTES))


def open_key(data_dir: Path, keys_dir: Path | None = None) -> SecretBoxKey:
    """Return the key of a data directory or a mounted secret, created when first needed. Raises SecretsUnreadable."""
    return ensure_key(find_key_file(data_dir, KEY_FILE, keys_dir))


def ensure_key(path: Path) -> SecretBoxKey:
    """Return the key in a file, which is created if it is missing. Raises SecretsUnreadable."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        pass
    key = path.read_bytes()
    if len(key) != KEY_BYTES:
        raise SecretsUnreadable(f"{path} does not contain a key of {KEY_BYTES} bytes")
    return SecretBoxKey(key)
