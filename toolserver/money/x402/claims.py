"""Hashes the Idempotency-Key with which a sender may repeat a payment: only its SHA-256 is stored. Pure."""

import hashlib
import hmac

SECRET_LENGTH = 16  # characters that an Idempotency-Key needs to be hard to guess


def hash_key(key: str | None, *, least: int = 1) -> bytes | None:
    """Return the SHA-256 of a key, or None if there is no key or it has fewer than `least` characters."""
    return hashlib.sha256(key.encode()).digest() if key and len(key) >= least else None


def is_same_key(claim: bytes | None, key: str | None, *, least: int = 1) -> bool:
    """Return True if `claim` is the hash of this key."""
    hashed = hash_key(key, least=least)
    return claim is not None and hashed is not None and hmac.compare_digest(claim, hashed)
