"""Computes hashes, addresses and signatures as Ethereum defines them.

The libraries that compute them take long to import, so each is imported when it is first
used: a service that sells nothing loads none of them.
"""

import re

_ADDRESS = re.compile("0x[0-9a-fA-F]{40}")
_TX_HASH = re.compile(r"(?:0[xX])?([0-9a-fA-F]{64})")


def keccak(data: bytes) -> bytes:
    """Return the hash that Ethereum uses everywhere: Keccak-256, which is not quite SHA3-256."""
    from eth_hash.auto import keccak as hash_function

    return hash_function(data)


def checksum_address(address: bytes) -> str:
    """Return the address in hexadecimal with its checksum (EIP-55): a letter is upper case
    where the digest of the digits is 8 or more.
    """
    if len(address) != 20:
        raise ValueError("an address must have 20 bytes")
    digits = address.hex()
    digest = keccak(digits.encode()).hex()
    return "0x" + "".join(digit.upper() if by >= "8" else digit for digit, by in zip(digits, digest, strict=False))


def address_from(text: str) -> bytes:
    """Return the 20 bytes of an address in hexadecimal. In mixed case its checksum must be right. Raises ValueError."""
    if not _ADDRESS.fullmatch(text):
        raise ValueError("an address must be 0x and 40 hexadecimal digits")
    address, digits = bytes.fromhex(text[2:]), text[2:]
    if digits not in (digits.lower(), digits.upper()) and checksum_address(address) != text:
        raise ValueError("the address has a wrong checksum: a character is mistyped")
    return address


def tx_hash_of(text: str) -> bytes | None:
    """Return the 32 bytes of a transaction hash in any spelling, so that one transaction is
    one key; None if the text is not such a hash.
    """
    match = _TX_HASH.fullmatch(text.strip())
    return bytes.fromhex(match[1]) if match else None


def message_digest(text: str) -> bytes:
    """Return the hash that a wallet signs for a text, with the prefix of EIP-191."""
    raw = text.encode()
    return keccak(b"\x19Ethereum Signed Message:\n" + str(len(raw)).encode() + raw)


def message_signer(text: str, signature: bytes) -> bytes | None:
    """Return the address whose key signed the text, or None when the signature is not one of a key."""
    return recover_address(message_digest(text), signature)


def recover_address(digest: bytes, signature: bytes) -> bytes | None:
    """Return the address whose key signed a digest, or None when the signature (r, s, v) is not one of a key."""
    from eth_keys.datatypes import Signature
    from eth_keys.exceptions import BadSignature
    from eth_utils.exceptions import ValidationError

    if len(signature) != 65:
        return None
    v = signature[64] - 27 if signature[64] >= 27 else signature[64]
    try:
        public_key = Signature(signature[:64] + bytes([v])).recover_public_key_from_msg_hash(digest)
    except (BadSignature, ValidationError, ValueError):
        return None
    return public_key.to_canonical_address()
