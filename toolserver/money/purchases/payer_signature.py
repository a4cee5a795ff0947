"""Recovers the account that signed a text (EIP-191)."""

from eth_keys.datatypes import Signature
from eth_keys.exceptions import BadSignature
from eth_utils.crypto import keccak
from eth_utils.exceptions import ValidationError

from toolserver.money.purchases.units import CHAIN_ID


def text_to_sign(host: str, memo: str, tx_hash: bytes) -> str:
    """Return the exact text that the payer signs to claim a payment."""
    return f"{host} confirm {memo} 0x{tx_hash.hex()} chain {CHAIN_ID}"


def digest(text: str) -> bytes:
    """Return the hash that a wallet signs for a text, with the prefix of EIP-191."""
    raw = text.encode()
    return keccak(b"\x19Ethereum Signed Message:\n" + str(len(raw)).encode() + raw)


def signer(text: str, signature: bytes) -> bytes | None:
    """Return the address whose key signed the text, or None when the signature is not one of a key."""
    return recover_address(digest(text), signature)


def recover_address(digest: bytes, signature: bytes) -> bytes | None:
    """Return the address whose key signed a digest, or None when the signature (r, s, v) is not one of a key."""
    if len(signature) != 65:
        return None
    v = signature[64] - 27 if signature[64] >= 27 else signature[64]
    try:
        public_key = Signature(signature[:64] + bytes([v])).recover_public_key_from_msg_hash(digest)
    except (BadSignature, ValidationError, ValueError):
        return None
    return public_key.to_canonical_address()
