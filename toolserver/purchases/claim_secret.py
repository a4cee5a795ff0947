"""The memo of a purchase: a secret by which the buyer claims the token, and what is derived from it."""

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
    """What is stored instead of a memo: 128 random bits need no slow hash."""
    return hashlib.sha256(memo.encode()).digest()


def tx_hash_of(text: str) -> bytes | None:
    """The 32 bytes of a transaction hash in any of its spellings, so that one transaction is one key."""
    found = TX_HASH.fullmatch(text.strip())
    return bytes.fromhex(found[1]) if found else None


def sealing_key(memo: str, tx_hash: bytes) -> bytes:
    """The key under which a token waits for its buyer: HKDF-SHA256 of the memo, for one transaction."""
    extracted = hmac.digest(b"toolserver sealed token", memo.encode(), "sha256")
    return hmac.digest(extracted, tx_hash + b"\1", "sha256")


def challenge_of(verifier: str) -> str:
    """The challenge that a verifier answers (RFC 7636, S256)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
