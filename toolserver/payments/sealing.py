"""A token that waits for its buyer, unreadable to whoever has the database but not the memo."""


def sealed(token: str, key: bytes) -> bytes:
    """The token under a key."""
    from nacl.secret import SecretBox

    return bytes(SecretBox(key).encrypt(token.encode()))


def unsealed(box: bytes, key: bytes) -> str | None:
    """The token again, or None when the key is another."""
    from nacl.exceptions import CryptoError
    from nacl.secret import SecretBox

    try:
        return SecretBox(key).decrypt(box).decode()
    except CryptoError:
        return None
