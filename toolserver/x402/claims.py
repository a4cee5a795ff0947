"""The Idempotency-Key by which the sender of a payment may ask again: only its SHA-256 is stored. Pure."""

import hashlib
import hmac

SECRET_LENGTH = 16  # characters of an Idempotency-Key that nobody guesses


def hash_key(key: str | None, *, least: int = 1) -> bytes | None:
    """The SHA-256 of a key; None when there is none, or when it is shorter than `least` characters."""
    return hashlib.sha256(key.encode()).digest() if key and len(key) >= least else None


def is_same_key(claim: bytes | None, key: str | None, *, least: int = 1) -> bool:
    """Whether a key is the one that `claim` was made from."""
    given = hash_key(key, least=least)
    return claim is not None and given is not None and hmac.compare_digest(claim, given)
