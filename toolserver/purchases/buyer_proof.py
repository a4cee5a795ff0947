"""How a buyer is known again: by the signature of an account that paid, of a text that is good for nothing else.

Each text begins with what it asks for and ends with a nonce and a time, so that a signature for one purchase, refund or
reissue serves no other. Who paid is read from the chain; of signed payments (x402) it is stored.
"""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from toolserver.core.models import iso
from toolserver.errors import ToolserverError
from toolserver.purchases import payer_signature
from toolserver.purchases.deposit import checksum_address
from toolserver.purchases.matching import transfers
from toolserver.purchases.rpc_pool import RpcPool
from toolserver.purchases.units import CHAIN_ID


class ProofMissing(ToolserverError):
    """Nothing shows that this comes from the buyer, and the text says what would."""


class PaidTransfer(NamedTuple):
    """A transfer that was turned into credits: its transaction, and the address of ours that it paid."""

    tx_hash: bytes
    address: bytes


class TokenPayments(NamedTuple):
    """What brought credits to one token: transfers, and the accounts that signed payments (x402)."""

    transfers: list[PaidTransfer]
    signers: list[bytes]


def new_nonce(kind: str) -> str:
    """A name that nobody can guess: `rf_` or `ri_` and 32 hexadecimal digits."""
    return f"{kind}_{secrets.token_hex(16)}"


def refund_text(host: str, fingerprint: str, credits: int, payee: bytes, nonce: str, until: int) -> str:
    """What is signed for a refund. `until` is in epoch milliseconds."""
    asked = f"refund {credits} credits of token {fingerprint} to {checksum_address(payee)}"
    return f"{host} {asked} {_end(nonce, until)}"


def reissue_text(host: str, fingerprint: str, nonce: str, until: int) -> str:
    """What is signed to have a lost token replaced. `until` is in epoch milliseconds."""
    return f"{host} replace the lost token {fingerprint} {_end(nonce, until)}"


def recovery_text(host: str, tx_hash: bytes) -> str:
    """What is signed to have the credits of a lost payment again. It names one transaction, which is credited once."""
    return f"{host} credit the lost payment 0x{tx_hash.hex()} again chain {CHAIN_ID}"


def _end(nonce: str, until: int) -> str:
    return f"nonce {nonce} until {iso(datetime.fromtimestamp(until // 1000, UTC))} chain {CHAIN_ID}"


async def find_payers(chain: RpcPool, payments: TokenPayments) -> list[frozenset[bytes]]:
    """Who paid, payment by payment, as two RPC servers agree where there are two.

    Raises:
        ChainDown: too few servers answer.
        ProofMissing: a transaction is not seen.
    """
    found = [frozenset([signer]) for signer in payments.signers]
    for paid in payments.transfers:
        seen = await chain.observe(paid.tx_hash, agreeing=min(2, len(chain)))
        payers = frozenset(t.payer for t in transfers(seen.receipt) if t.payee == paid.address) if seen else frozenset()
        if not payers:
            raise ProofMissing(f"the payment 0x{paid.tx_hash.hex()} is not seen on the chain: who paid is not known")
        found.append(payers)
    return found


async def find_signer(chain: RpcPool, text: str, signature: str, accounts: Sequence[bytes]) -> bytes:
    """Which of the accounts signed the text. A contract's own word (ERC-1271) needs two servers that agree.

    Raises:
        ChainDown: too few servers answer.
        ProofMissing: none of them did.
    """
    try:
        raw = bytes.fromhex(signature.removeprefix("0x"))
    except ValueError:
        raise ProofMissing("a signature is 0x and at least 65 bytes in hexadecimal digits") from None
    signer = payer_signature.signer(text, raw)
    if signer is not None and signer in accounts:
        return signer
    digest = payer_signature.digest(text)
    if 65 <= len(raw) <= 2048 and len(chain) >= 2:
        for account in accounts[:4]:
            if await chain.accepts(account, digest, raw, agreeing=2):
                return account
    named = ", ".join(map(checksum_address, accounts)) or "any account: none paid for this token"
    raise ProofMissing(f"this is no signature of the text “{text}” by {named}")
