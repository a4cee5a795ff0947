"""Encrypts a token that waits for its buyer, so that a reader of the database without the memo cannot read it."""


def encrypt_token(token: str, key: bytes) -> bytes:
    """The token under a key."""
    from nacl.secret import SecretBox

    return bytes(SecretBox(key).encrypt(token.encode()))


def decrypt_token(box: bytes, key: bytes) -> str | None:
    """The token again, or None when the key is another."""
    from nacl.exceptions import CryptoError
    from nacl.secret import SecretBox

    try:
        return SecretBox(key).decrypt(box).decode()
    except CryptoError:
        return None
