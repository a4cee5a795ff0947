"""Quotes: what an amount buys, where to pay it, and the memo that claims it."""

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

import anyio.to_thread

from toolserver.clock import Clock
from toolserver.errors import ChainUnavailable, InvalidArguments
from toolserver.payments import books
from toolserver.payments.books import Draft, IndexTaken
from toolserver.payments.deposit import checksummed
from toolserver.payments.matching import commitment
from toolserver.payments.memos import memo_hash, new_memo
from toolserver.payments.offers import Quote
from toolserver.payments.units import CHAIN_ID, LEAST, USDC, atomic, credits_for
from toolserver.storage.durable import Durable

log = logging.getLogger(__name__)

CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")  # SHA-256 as base64url


@dataclass(frozen=True)
class Terms:
    """What quotes say. `wallet` is the address of a purchase by its number, or the one that all share.

    `most` is the largest amount that may be offered, None: any.
    """

    wallet: Callable[[int], bytes] | bytes
    life_s: int = 1800
    first_index: int = 0
    most: int | None = None


class Quotes:
    """Makes quotes, each with an address that nobody was ever given before."""

    def __init__(self, file: Durable, clock: Clock, terms: Terms) -> None:
        self._file, self._clock, self._terms = file, clock, terms
        self._next: int | None = None

    async def make(self, amount_usd: Decimal, challenge: str | None = None) -> Quote:
        """A new quote. Raises InvalidArguments, ChainUnavailable."""
        amount = self._amount(amount_usd)
        if challenge is not None and not CHALLENGE.fullmatch(challenge):
            raise invalid("claim_challenge", "must be the SHA-256 of the verifier as 43 characters of base64url")
        now, memo = int(self._clock.time()), new_memo()
        expires_at = now + self._terms.life_s
        draft = Draft(memo_hash(memo), b"", None, amount, credits_for(amount), challenge, now * 1000, expires_at * 1000)
        address = await self._kept(draft)
        log.info("quote made", extra={"amount": amount, "wallet": checksummed(address)})
        return Quote(
            checksummed(address),
            memo,
            amount,
            draft.credits,
            datetime.fromtimestamp(expires_at, UTC),
            f"0x{commitment(memo).hex()}",
            payment_uri(address, amount),
        )

    def _amount(self, amount_usd: Decimal) -> int:
        try:
            amount = atomic(amount_usd)
        except ValueError as error:
            raise invalid("amount_usd", str(error)) from None
        if amount < LEAST:
            raise invalid("amount_usd", "must be at least 1")
        if self._terms.most is not None and amount > self._terms.most:
            raise ChainUnavailable(
                "Amounts this large need two independent servers of the chain to check, and one is set up here.",
                headers={"Retry-After": "3600"},
                retry_after_seconds=3600,
            )
        return amount

    async def _kept(self, draft: Draft) -> bytes:
        """The address of the purchase, once it is stored. A number is never used twice, whatever goes wrong."""
        wallet = self._terms.wallet
        if isinstance(wallet, bytes):
            shared = draft._replace(address=wallet)
            await self._file.alone(lambda db: books.offer(db, shared))
            return wallet
        while True:
            if self._next is None:
                self._next = max(self._terms.first_index, await self._file.read(books.next_index))
            index, self._next = self._next, self._next + 1
            address = await anyio.to_thread.run_sync(wallet, index)
            own = draft._replace(address=address, hd_index=index)
            try:
                await self._file.alone(lambda db, own=own: books.offer(db, own))  # type: ignore[misc]
            except IndexTaken:  # another process writes the same file
                self._next = None
                continue
            return address


def payment_uri(address: bytes, amount: int) -> str:
    """The payment as wallets read it (EIP-681)."""
    return f"ethereum:{checksummed(USDC)}@{CHAIN_ID}/transfer?address={checksummed(address)}&uint256={amount}"


def invalid(name: str, why: str) -> InvalidArguments:
    """An argument that is wrong; its value is never repeated."""
    return InvalidArguments(f"{name}: {why}", errors=[{"loc": name, "msg": why, "type": "value_error"}])
