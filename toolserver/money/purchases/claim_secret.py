"""Makes the memo of a purchase, the secret by which the buyer claims the token, and derives hashes and keys from it."""

import base64
import hashlib
import hmac
import re
import secrets

MEMO = re.compile(r"svc_buy_[0-9a-f]{32}")
TX_HASH = re.compile(r"(?:0[xX])?([0-9a-fA-F]{64})")


def new_memo() -> str:
    return f"svc_buy_{secrets.token_hex(16)}"


def memo_hash(memo: str) -> bytes:
    """Return the SHA-256 that is stored instead of a memo: 128 random bits need no slow hash."""
    return hashlib.sha256(memo.encode()).digest()


def tx_hash_of(text: str) -> bytes | None:
    """Return the 32 bytes of a transaction hash in any spelling, so that one transaction is one key; None if the text
    is not such a hash.
    """
    match = TX_HASH.fullmatch(text.strip())
    return bytes.fromhex(match[1]) if match else None


def sealing_key(memo: str, tx_hash: bytes) -> bytes:
    """Return the key that encrypts a token until its buyer has it: HKDF-SHA256 of the memo, for one transaction."""
    extracted = hmac.digest(b"toolserver sealed token", memo.encode(), "sha256")
    return hmac.digest(extracted, tx_hash + b"\1", "sha256")


def challenge_of(verifier: str) -> str:
    """Return the challenge that belongs to a verifier (RFC 7636, S256)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
