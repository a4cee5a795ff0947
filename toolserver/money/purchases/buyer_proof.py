"""Recognises a buyer by the signature of an account that paid, under a text that is good for nothing else.

Each text names the request that it is for, and a nonce with a time or a transaction, so that
a signature for one purchase, refund or reissue serves no other. The payer of a transfer is
read from the chain, that of a signed payment (x402) from the database.
"""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from toolserver.core.models import iso
from toolserver.errors import ToolserverError
from toolserver.money.purchases.chain.ethereum import checksum_address, message_digest, message_signer
from toolserver.money.purchases.chain.rpc_pool import RpcPool
from toolserver.money.purchases.matching import transfers
from toolserver.money.purchases.units import CHAIN_ID


class ProofMissing(ToolserverError):
    """Nothing proves that the request comes from the buyer. The text says what would."""


class PaidTransfer(NamedTuple):
    """A transfer that was turned into credits: its transaction, and the address of this service that it paid."""

    tx_hash: bytes
    address: bytes


class TokenPayments(NamedTuple):
    """The payments that brought credits to one token: transfers, and the accounts that signed payments (x402)."""

    transfers: list[PaidTransfer]
    signers: list[bytes]


def new_nonce(kind: str) -> str:
    """Return an id that nobody can guess: `kind` (`rf` or `ri`), an underscore and 32 hexadecimal digits."""
    return f"{kind}_{secrets.token_hex(16)}"


def refund_text(host: str, fingerprint: str, credits: int, payee: bytes, nonce: str, until: int) -> str:
    """Return the text to sign for a refund. `until` is in epoch milliseconds."""
    request = f"refund {credits} credits of token {fingerprint} to {checksum_address(payee)}"
    return f"{host} {request} {_end(nonce, until)}"


def reissue_text(host: str, fingerprint: str, nonce: str, until: int) -> str:
    """Return the text to sign for the replacement of a lost token. `until` is in epoch milliseconds."""
    return f"{host} replace the lost token {fingerprint} {_end(nonce, until)}"


def recovery_text(host: str, tx_hash: bytes) -> str:
    """Return the text to sign for the credits of a lost payment. It names one transaction, which is credited once."""
    return f"{host} credit the lost payment 0x{tx_hash.hex()} again chain {CHAIN_ID}"


def _end(nonce: str, until: int) -> str:
    return f"nonce {nonce} until {iso(datetime.fromtimestamp(until // 1000, UTC))} chain {CHAIN_ID}"


async def find_payers(chain: RpcPool, payments: TokenPayments) -> list[frozenset[bytes]]:
    """Return the accounts that paid, payment by payment; where two RPC servers are configured, they have to agree.

    Raises:
        ChainDown: too few servers answer.
        ProofMissing: a transaction is not on the chain.
    """
    payers_by_payment = [frozenset([signer]) for signer in payments.signers]
    for paid in payments.transfers:
        seen = await chain.observe(paid.tx_hash, agreeing=min(2, len(chain)))
        payers = frozenset(t.payer for t in transfers(seen.receipt) if t.payee == paid.address) if seen else frozenset()
        if not payers:
            raise ProofMissing(f"the payment 0x{paid.tx_hash.hex()} is not seen on the chain, so its payer is unknown")
        payers_by_payment.append(payers)
    return payers_by_payment


async def find_signer(chain: RpcPool, text: str, signature: str, accounts: Sequence[bytes]) -> bytes:
    """Return the account that signed the text. For a contract (ERC-1271), two servers have to agree that it did.

    Raises:
        ChainDown: too few servers answer.
        ProofMissing: none of the accounts signed it.
    """
    try:
        raw = bytes.fromhex(signature.removeprefix("0x"))
    except ValueError:
        raise ProofMissing("a signature must be 0x and at least 65 bytes in hexadecimal digits") from None
    signer = message_signer(text, raw)
    if signer is not None and signer in accounts:
        return signer
    digest = message_digest(text)
    if 65 <= len(raw) <= 2048 and len(chain) >= 2:
        for account in accounts[:4]:
            if await chain.accepts(account, digest, raw, agreeing=2):
                return account
    named = ", ".join(map(checksum_address, accounts)) or "any account, because none paid for this token"
    raise ProofMissing(f"this is not a signature of the text “{text}” by {named}")
