"""Sign deliveries by the rule of our specification and by Standard Webhooks, both over the same bytes.

A secret `whsec_<32 hex digits>` serves both. Our own rule uses the whole text as its key;
Standard Webhooks decodes the part after the prefix as base64, which yields 24 bytes.

Signing needs the secrets of subscriptions, so they are stored encrypted, not hashed. The key
is a file beside the database, readable by its owner only: a copy of the database alone opens
no secret.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from toolserver.core.private_file import ensure_random_file
from toolserver.errors import SubscriptionConflict, ToolserverError
from toolserver.money.purchases.token_encryption import decrypt_token, encrypt_token
from toolserver.money.receipts.keys import find_key_file

KEY_FILE = "keys/webhooks.key"  # below the data directory
KEY_BYTES = 32
OVERLAP_MS = 24 * 3_600_000  # how long a replaced secret stays valid
MOST_SECRETS = 20  # valid at once: each one signs every delivery


class SecretsUnreadable(ToolserverError):
    """The key file is damaged, or these secrets were encrypted with another key."""


class ReplacedSecret(NamedTuple):
    """A secret that was replaced, and the time in milliseconds until which it signs beside its successors."""

    secret: str
    until: int


class SubscriptionSecrets(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The owner's secrets: the signing secret, those replaced within a day, and custom headers. Never logged.

    `replaced` has the newest first. `previous` is how earlier versions stored the only one that they kept.
    """

    secret: str
    previous: str | None = None
    previous_until: int = 0
    headers: Mapping[str, str] = {}
    replaced: tuple[ReplacedSecret, ...] = ()

    def __repr__(self) -> str:
        return "SubscriptionSecrets(…)"

    def older(self, now: int) -> tuple[str, ...]:
        """Return the replaced secrets that are still valid at `now` in milliseconds, the newest first."""
        return tuple(former.secret for former in self._list_valid(now))

    def rotate(self, secret: str, now: int) -> "SubscriptionSecrets":
        """Return the secrets with a new signing secret; each former one stays valid for a day.

        Raises SubscriptionConflict: so many are valid that one of them would have to end early.
        """
        replaced = (ReplacedSecret(self.secret, now + OVERLAP_MS), *self._list_valid(now))
        if len(replaced) >= MOST_SECRETS:
            raise SubscriptionConflict(
                f"{MOST_SECRETS} secrets of the subscription are valid. Rotate again when one is a day old."
            )
        return SubscriptionSecrets(secret, headers=self.headers, replaced=replaced)

    def _list_valid(self, now: int) -> list[ReplacedSecret]:
        former = () if self.previous is None else (ReplacedSecret(self.previous, self.previous_until),)
        return [one for one in (*self.replaced, *former) if now < one.until]


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
    key = ensure_random_file(path, KEY_BYTES)
    if len(key) != KEY_BYTES:
        raise SecretsUnreadable(f"{path} does not contain a key of {KEY_BYTES} bytes")
    return SecretBoxKey(key)


PREFIX = "whsec_"
SIGNATURE_HEADER = "X-Service-Signature"
PREVIOUS_HEADER = "X-Service-Signature-Previous"
TIMESTAMP_HEADER = "X-Service-Timestamp"
SUBSCRIPTION_HEADER = "X-Service-Subscription"
RECEIPT_HEADER = "X-Service-Receipt-Id"
TOLERANCE_S = 300


def new_secret() -> str:
    """Return a new signing secret with 128 random bits."""
    return PREFIX + secrets.token_hex(16)


def sign_service(secret: str, timestamp: int, body: bytes) -> str:
    """Return the value of X-Service-Signature: hex HMAC-SHA256 over the timestamp, a dot and the body."""
    return "sha256=" + hmac.new(secret.encode(), b"%d." % timestamp + body, hashlib.sha256).hexdigest()


def sign_standard(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return one Standard Webhooks signature: base64 HMAC-SHA256 over id, timestamp and body, joined by dots."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = hmac.new(key, b"%s.%d." % (message_id.encode(), timestamp) + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(signed).decode()


def standard_headers(
    secret: str, older: Sequence[str], *, message_id: str, timestamp: int, body: bytes
) -> dict[str, str]:
    """Return the headers of Standard Webhooks, signed with every secret that is valid."""
    keys = [secret, *older]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(sign_standard(key, message_id, timestamp, body) for key in keys),
    }


def signature_headers(
    secret: str, older: Sequence[str], *, message_id: str, timestamp: int, body: bytes
) -> dict[str, str]:
    """Return the headers that prove who sent `body`, at a time in Unix seconds.

    While replaced secrets are valid (`older`, the newest first), Standard Webhooks gets all
    signatures in its single header. Our own rule puts the older ones into a separate header,
    with spaces between them.
    """
    headers = {
        SIGNATURE_HEADER: sign_service(secret, timestamp, body),
        TIMESTAMP_HEADER: str(timestamp),
        **standard_headers(secret, older, message_id=message_id, timestamp=timestamp, body=body),
    }
    former = " ".join(sign_service(key, timestamp, body) for key in older)
    return {**headers, PREVIOUS_HEADER: former} if former else headers


def verify_service(secret: str, signature: str, timestamp: str, body: bytes, *, now: float) -> bool:
    """Check what a receiver checks: the signature in constant time, and a timestamp at most five minutes away."""
    if not timestamp.isascii() or not timestamp.isdigit() or abs(now - int(timestamp)) > TOLERANCE_S:
        return False
    return hmac.compare_digest(sign_service(secret, int(timestamp), body).encode(), signature.encode())
