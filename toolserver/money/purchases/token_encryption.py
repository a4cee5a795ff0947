"""Encrypts a token that waits for its buyer, so that a reader of the database without the memo cannot read it."""

import hmac

OVERHEAD = 40  # bytes by which an encrypted text is longer: a nonce and a MAC


def sealing_key(secret: str, payment: bytes) -> bytes:
    """Return the key that encrypts the token of one payment until its buyer has it:
    HKDF-SHA256 of the buyer's secret, which is the memo of a purchase or the Idempotency-Key
    of a top-up.
    """
    extracted = hmac.digest(b"toolserver sealed token", secret.encode(), "sha256")
    return hmac.digest(extracted, payment + b"\1", "sha256")


def encrypt_token(token: str, key: bytes) -> bytes:
    """Return the token, encrypted under a key of 32 bytes."""
    from nacl.secret import SecretBox

    return bytes(SecretBox(key).encrypt(token.encode()))


def decrypt_token(box: bytes, key: bytes) -> str | None:
    """Return the decrypted token, or None if it was encrypted under another key."""
    from nacl.exceptions import CryptoError
    from nacl.secret import SecretBox

    try:
        return SecretBox(key).decrypt(box).decode()
    except CryptoError:
        return None
