"""Makes, stores, publishes, rotates and revokes signing keys (Ed25519). Only the owner of a key file can read it.

A key file is a JWK set (RFC 7517, 8037) whose keys may include the private half. A key is
published before it is used and stays published for ever, so that its signatures can always be
verified; its private half is deleted at the first rotation after its end. Key ids are RFC
7638 thumbprints.
"""

import base64
import binascii
import functools
import hashlib
import json
import logging
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from toolserver.clock import Clock
from toolserver.core.private_file import write_private
from toolserver.errors import ToolserverError

log = logging.getLogger(__name__)

PUBLISH_AHEAD_S = 24 * 3600
LOOK_S = 10.0  # how often a running service checks whether its key file has changed
RECEIPT_KEYS, LOG_KEYS = "keys/receipts.json", "keys/log.json"  # below the data directory


def find_key_file(data_dir: Path, name: str, keys_dir: Path | None = None) -> Path:
    """Return the path of a key file: below the data directory, or in `keys_dir`, the folder of a mounted secret."""
    return data_dir / name if keys_dir is None else keys_dir / Path(name).name


class KeyFileBroken(ToolserverError):
    """A file is not a valid key file. Nothing is signed, and nothing is sold, until an operator has repaired it."""


class ReceiptKeysLost(ToolserverError):
    """The key file of receipts is gone, although receipts were issued. No new key is made in silence."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is lost, but receipts were issued: they could no longer be verified against the published keys."
            " Restore the file from the backup of `keys/`. If there is none, `toolserver keys new --after-loss` starts"
            " a new key, whose published `nbf` shows that it signed nothing before now."
        )


class LogKeysLost(ToolserverError):
    """The key file of the log is gone, although the log was signed. No new key is made in silence."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is lost, but the log of uncharged calls was signed with it: auditors would see another signer."
            " Restore the file from the backup of `keys/`. If there is none, `toolserver keys new --after-loss` makes a"
            " new key: publish its verifier to those who store the old one."
        )


class NoSuchKey(ToolserverError):
    """The named key is not in the file, or a rotation is already in progress."""


def b64(value: bytes) -> str:
    """Return the bytes as base64url without padding, as in JOSE."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    """Return the bytes of a text that `b64` wrote. Only the one canonical text of a value is
    accepted. Raises ValueError.
    """
    try:
        value = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise ValueError("not base64url") from error
    if b64(value) != text:
        raise ValueError("not base64url")
    return value


def thumbprint(public: bytes) -> str:
    """Return the thumbprint of RFC 7638: the hash of the key's required members in their fixed order."""
    return b64(hashlib.sha256(b'{"crv":"Ed25519","kty":"OKP","x":"%s"}' % b64(public).encode()).digest())


@dataclass(frozen=True)
class Key:
    """One key, and when it may be used (epoch seconds): from `nbf` until before `exp`, and not after it was revoked."""

    kid: str
    public: bytes
    seed: bytes | None = None
    nbf: int = 0
    exp: int | None = None
    revoked_at: int | None = None

    def signs(self, now: float) -> bool:
        """Return True if the key may sign at `now` (epoch seconds) and its private half is here."""
        timely = self.nbf <= now and (self.exp is None or now < self.exp)
        return timely and self.seed is not None and self.revoked_at is None

    def covers(self, at: float) -> bool:
        """Return True if this key may have made a signature at `at` (epoch seconds), whether or not it was revoked."""
        return self.nbf <= at and (self.exp is None or at < self.exp)

    def sign(self, message: bytes) -> bytes:
        from nacl.bindings import crypto_sign

        return bytes(crypto_sign(message, self._secret)[:64])  # it returns the signature followed by the message

    def verifies(self, signature: bytes, message: bytes) -> bool:
        from nacl.exceptions import BadSignatureError
        from nacl.exceptions import ValueError as Malformed

        try:
            self._verifier.verify(message, signature)
        except (BadSignatureError, Malformed):
            return False
        return True

    def jwk(self, *, private: bool = False) -> dict[str, Any]:
        """Return the key as a JSON Web Key, without `alg`, because its signatures are known under two names."""
        ends = {"exp": self.exp, "revoked_at": self.revoked_at}
        secret = {"d": b64(self.seed)} if private and self.seed else {}
        return {
            "kty": "OKP",
            "crv": "Ed25519",
            "x": b64(self.public),
            **secret,
            "kid": self.kid,
            "use": "sig",
            "nbf": self.nbf,
            **{name: at for name, at in ends.items() if at is not None},
        }

    @functools.cached_property
    def _secret(self) -> bytes:
        from nacl.bindings import crypto_sign_seed_keypair

        if self.seed is None:
            raise NoSuchKey(f"the private half of {self.kid} is not here")
        return bytes(crypto_sign_seed_keypair(self.seed)[1])

    @functools.cached_property
    def _verifier(self) -> Any:
        from nacl.signing import VerifyKey

        return VerifyKey(self.public)


Keys = tuple[Key, ...]


def make_key(nbf: int = 0) -> Key:
    """Return a new key, valid from `nbf` (epoch seconds). The first key of a service is valid
    from 0, so that no wrong clock can refuse it.
    """
    from nacl.signing import SigningKey

    seed = secrets.token_bytes(32)
    public = bytes(SigningKey(seed).verify_key)
    return Key(thumbprint(public), public, seed, nbf)


def parse_keys(document: Any) -> Keys:
    """Return the Ed25519 keys of a JWK set or of a single JWK, and skip all others. Raises ValueError."""
    listed = document.get("keys", [document]) if isinstance(document, Mapping) else None
    if not isinstance(listed, list):
        raise ValueError("not a JWK set")
    return tuple(_key(jwk) for jwk in listed if isinstance(jwk, Mapping) and jwk.get("crv") == "Ed25519")


def _key(jwk: Mapping[str, Any]) -> Key:
    times = {name: jwk.get(name) for name in ("nbf", "exp", "revoked_at")}
    if any(at is not None and type(at) is not int for at in times.values()):
        raise ValueError("a time in a key is not a whole number")
    public, secret = unb64(str(jwk.get("x"))), jwk.get("d")
    if len(public) != 32:
        raise ValueError("a key does not have 32 bytes")
    kid = jwk.get("kid")
    return Key(
        kid if isinstance(kid, str) and kid else thumbprint(public),
        public,
        unb64(str(secret)) if secret is not None else None,
        times["nbf"] or 0,
        times["exp"],
        times["revoked_at"],
    )


def read_keys(path: Path) -> Keys:
    """Return the keys of a file. Raises KeyFileBroken, FileNotFoundError."""
    try:
        keys = parse_keys(json.loads(path.read_bytes()))
    except ValueError as error:
        raise KeyFileBroken(f"{path} is not a key file ({error}): restore it from a backup") from None
    if not keys:
        raise KeyFileBroken(f"{path} holds no key: restore it from a backup")
    return keys


def write(path: Path, keys: Iterable[Key], *, replacing: bool = True) -> None:
    """Write keys into a file atomically. Raises FileExistsError when the file exists and must not be replaced."""
    document = {"keys": [key.jwk(private=True) for key in keys]}
    write_private(path, json.dumps(document, indent=2) + "\n", replacing=replacing)


def ensure_keys(path: Path) -> Keys:
    """Return the keys of a file, and create it if it is missing. If two processes start together, one creates it."""
    if not path.exists():
        try:
            write(path, [make_key()], replacing=False)
        except FileExistsError:
            pass
    return read_keys(path)


def rotate_keys(keys: Sequence[Key], now: float, *, after_s: float = PUBLISH_AHEAD_S) -> Keys:
    """Return the keys with a new one, which takes over `after_s` seconds after `now`, so that everyone can learn of it.

    Raises:
        NoSuchKey: another key waits to take over already (`after_s=0` replaces it instead).
    """
    start = int(now + after_s)
    waiting = [key for key in keys if key.nbf > now and key.revoked_at is None]
    if waiting and after_s:
        raise NoSuchKey(f"{waiting[0].kid} is published and takes over soon")
    used = [key for key in keys if key not in waiting]
    return (*(_ended(key, start, now) for key in used), make_key(start))


def _ended(key: Key, end: int, now: float) -> Key:
    exp = end if key.exp is None else min(key.exp, end)
    over = exp <= now or key.revoked_at is not None
    return replace(key, exp=exp, seed=None if over else key.seed)


def revoke_key(keys: Sequence[Key], kid: str, now: float) -> Keys:
    """Return the keys with one of them revoked, and with a new one if no other may sign now. Raises NoSuchKey."""
    if kid not in [key.kid for key in keys]:
        raise NoSuchKey(f"there is no key {kid}")
    left = [replace(key, revoked_at=int(now), seed=None) if key.kid == kid else key for key in keys]
    return tuple(left if any(key.signs(now) for key in left) else [*left, make_key(int(now))])


def join_keys(keys: Iterable[Key]) -> Keys:
    """Return each key once, with its earliest end and revocation, and with its private half if any copy has it."""
    joined: dict[str, Key] = {}
    for key in keys:
        before = joined.get(key.kid, key)
        ends = [at for at in (before.exp, key.exp) if at is not None]
        revoked = [at for at in (before.revoked_at, key.revoked_at) if at is not None]
        exp, revoked_at = min(ends, default=None), min(revoked, default=None)
        joined[key.kid] = replace(before, seed=before.seed or key.seed, exp=exp, revoked_at=revoked_at)
    return tuple(joined.values())


class KeyRing:
    """The keys of one file in a running service, read again when the file has changed.

    By `learn`, services that share a database take over each other's public keys, ends and
    revocations.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path, self._clock = path, clock
        self._own, self._others = ensure_keys(path), Keys()
        self._keys = self._own
        self._seen, self._look_at = self._state(), clock.monotonic() + LOOK_S

    @property
    def keys(self) -> Keys:
        now = self._clock.monotonic()
        if now >= self._look_at:
            self._look_at = now + LOOK_S
            self._read_again()
        return self._keys

    @property
    def own(self) -> Keys:
        """The keys of the file, as it is now or as it was when it could last be read."""
        return self._own if self.keys else ()

    def learn(self, published: Keys) -> None:
        """Publish these public keys too. A key that they show as ended or revoked no longer signs here either."""
        self._others = published
        self._keys = join_keys((*self._own, *published))

    def _read_again(self) -> None:
        try:
            state = self._state()
            if state != self._seen:
                self._own, self._seen = read_keys(self._path), state
                self.learn(self._others)
        except (OSError, KeyFileBroken):
            log.exception("the key file cannot be read; the keys known so far are used")

    def current(self) -> Key:
        """Return the key that signs now: the newest valid one. Raises NoSuchKey if there is none."""
        now = self._clock.time()
        able = [key for key in self.keys if key.signs(now)]
        if not able:
            raise NoSuchKey(f"no key of {self._path} may sign at this time")
        return max(able, key=lambda key: key.nbf)

    def find(self, kid: str) -> Key | None:
        return next((key for key in self.keys if key.kid == kid), None)

    def published(self) -> list[dict[str, Any]]:
        """Return all current and former keys without their private halves, the one in use first. Raises NoSuchKey."""
        first = self.current().kid
        return [key.jwk() for key in sorted(self.keys, key=lambda key: (key.kid != first, -key.nbf))]

    def _state(self) -> tuple[int, int, int]:
        status = self._path.stat()
        return status.st_ino, status.st_size, status.st_mtime_ns
