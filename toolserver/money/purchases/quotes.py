"""Makes quotes: how many credits an amount buys, the address to pay it to, and the memo that claims them.

The ceilings limit how much is sold without a person's approval: in one purchase, an hour and
a day, by transfers and signed payments (x402) together. A quote names the ceiling that its
amount would exceed.
"""

import base64
import hashlib
import logging
import re
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial

import anyio
import anyio.to_thread

from toolserver.clock import Clock
from toolserver.errors import (
    ChainUnavailable,
    InvalidArguments,
    NotFound,
    PaymentPending,
    RateLimited,
    SalesCeilingReached,
)
from toolserver.money.purchases.chain.ethereum import checksum_address, keccak
from toolserver.money.purchases.chain.rpc_pool import ChainDown, RpcPool
from toolserver.money.purchases.credit_price import ATOMIC, atomic, credits_for
from toolserver.money.purchases.credit_sales import PurchaseQuote
from toolserver.money.purchases.matching import Progress
from toolserver.money.purchases.records import AddressInUse, PurchaseDraft
from toolserver.money.purchases.store import SqlPurchaseStore, memo_hash
from toolserver.money.purchases.units import CHAIN_ID, LEAST, USDC_TEXT
from toolserver.settings import PaymentSettings
from toolserver.sql.errors import StorageFailed
from toolserver.sql.high_water import HighWater

log = logging.getLogger(__name__)

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600, 86_400
REVIEW_S = 3600
RETRY_S = 3
AT_ONCE, PAUSE_S = 500, 0.2  # old quotes in one transaction, and the pause that lets other writers in between two
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")  # SHA-256 as base64url


@dataclass(frozen=True)
class Ceilings:
    """The ceilings, in 0.000001 USDC. None: no ceiling."""

    purchase: int | None = None
    hour: int | None = None
    day: int | None = None


class SalesCeilings:
    """Compares amounts with the ceilings, and holds payments beyond them back for a person."""

    def __init__(self, ceilings: Ceilings, store: SqlPurchaseStore, clock: Clock) -> None:
        self._ceilings, self._store, self._clock = ceilings, store, clock

    @property
    def most(self) -> int | None:
        """The largest purchase, in 0.000001 USDC, or None if there is no such ceiling."""
        return self._ceilings.purchase

    async def find_excess(self, amount: int) -> str | None:
        """Return in words which ceiling an amount (in 0.000001 USDC) would exceed now, or None if it exceeds none."""
        most = self._ceilings
        if most.purchase is not None and amount > most.purchase:
            return f"more than {_usd(most.purchase)} USD in one purchase"
        bounds = [ceiling for ceiling in (most.hour, most.day) if ceiling is not None]
        if not bounds or await self._sum_sold(DAY_S) + amount <= min(bounds):
            return None  # nor the ceiling of an hour, because no more was sold in the hour than in the day
        for ceiling, span_s, name in ((most.hour, HOUR_S, "an hour"), (most.day, DAY_S, "a day")):
            if ceiling is not None and await self._sum_sold(span_s) + amount > ceiling:
                return f"more than {_usd(ceiling)} USD from all buyers within {name}"
        return None

    async def _sum_sold(self, span_s: int) -> int:
        return await self._store.sum_sold(int((self._clock.time() - span_s) * 1000))

    async def hold_excess(self, tx_hash: bytes, purchase: int, amount: int) -> None:
        """Hold back a transfer that exceeds a ceiling. Raises PaymentPending until a person approves it."""
        excess = await self.find_excess(amount)
        now = int(self._clock.time() * 1000)
        if excess and await self._store.hold_transfer(tx_hash, purchase, amount, excess, now):
            log.error("a payment waits for a person", extra={"reason": excess, "tx": f"0x{tx_hash.hex()}"})
            raise PaymentPending(
                f"The payment has arrived, but it is {excess}, so a person has to approve it. Confirm again later.",
                headers={"Retry-After": str(REVIEW_S)},
                retry_after_seconds=REVIEW_S,
            )

    async def refuse_excess(self, amount: int) -> None:
        """Raise SalesCeilingReached if a signed payment, which is not made yet, would exceed a ceiling."""
        excess = await self.find_excess(amount)
        if excess:
            log.error("a payment was refused: it would cross a ceiling", extra={"reason": excess})
            raise SalesCeilingReached(
                f"This payment was not made because it would come to {excess}.",
                headers={"Retry-After": str(REVIEW_S)},
                retry_after_seconds=REVIEW_S,
            )


def make_ceilings(settings: PaymentSettings, store: SqlPurchaseStore, clock: Clock) -> SalesCeilings:
    """Return the ceilings that the settings define: how much is sold without a person's approval."""

    def atomic(usd: int | None) -> int | None:
        return None if usd is None else usd * ATOMIC

    ceilings = Ceilings(
        purchase=atomic(settings.ceiling_purchase_usd),
        hour=atomic(settings.ceiling_hour_usd),
        day=atomic(settings.ceiling_day_usd),
    )
    return SalesCeilings(ceilings, store, clock)


def _usd(amount: int) -> str:
    return f"{amount // ATOMIC:,}".replace(",", " ")


@dataclass(frozen=True)
class QuoteTerms:
    """The terms of quotes. `wallet` returns the address for a purchase's number, or is the one address that all share.

    `most` is the largest amount that may be offered while there is one RPC server, or several
    that count as one, in 0.000001 USDC, or None for any. At most `per_minute` quotes are made
    per minute for all callers together.
    """

    wallet: Callable[[int], bytes] | bytes
    life_s: int = 1800
    first_index: int = 0
    most: int | None = None
    per_minute: int = 300


class Quotes:
    """Makes quotes, each with an address that was never given out before, unless all purchases share one."""

    def __init__(
        self,
        store: SqlPurchaseStore,
        clock: Clock,
        terms: QuoteTerms,
        ceilings: SalesCeilings | None = None,
        marks: HighWater | None = None,
        count_servers: Callable[[], int] = lambda: 1,
    ) -> None:
        self._store, self._clock, self._terms, self._ceilings = store, clock, terms, ceilings
        self._count_servers = count_servers
        self._numbers = AddressNumbers(store, terms.first_index, marks)
        self._lately: deque[float] = deque()  # when the quotes of the last minute were made

    async def make(
        self,
        amount_usd: Decimal,
        challenge: str | None = None,
        credits_per_day: int | None = None,
        tops_up: str | None = None,
    ) -> PurchaseQuote:
        """Return a new quote, which is stored first. `tops_up` is the SHA-256 (hex) of the token that gets the credits.

        Raises InvalidArguments, ChainUnavailable, RateLimited.
        """
        amount = self._amount(amount_usd)
        if challenge is not None and not CHALLENGE.fullmatch(challenge):
            raise invalid("claim_challenge", "must be the SHA-256 of the verifier as 43 characters of base64url")
        excess = await self._ceilings.find_excess(amount) if self._ceilings else None
        self._admit()
        now, memo = int(self._clock.time()), new_memo()
        expires_at = now + self._terms.life_s
        draft = PurchaseDraft(
            memo_hash(memo),
            b"",
            None,
            amount,
            credits_for(amount),
            challenge,
            now * 1000,
            expires_at * 1000,
            credits_per_day,
            tops_up,
        )
        wallet = checksum_address(await self._kept(draft))
        log.info("quote made", extra={"amount": amount, "wallet": wallet})
        return PurchaseQuote(
            wallet,
            memo,
            amount,
            draft.credits,
            datetime.fromtimestamp(expires_at, UTC),
            f"0x{commitment(memo).hex()}",
            payment_uri(wallet, amount),
            excess and f"This would come to {excess}, so a person has to approve the payment after you make it.",
        )

    def _admit(self) -> None:
        """Count a quote against the limit per minute of all callers together. Raises RateLimited."""
        now = self._clock.monotonic()
        while self._lately and self._lately[0] <= now - MINUTE_S:
            self._lately.popleft()
        if len(self._lately) >= self._terms.per_minute:
            wait = max(1, int(self._lately[0] + MINUTE_S - now + 0.999))
            raise RateLimited(
                f"Too many quotes are being requested at the moment. Try again in {wait} s.",
                headers={"Retry-After": str(wait)},
                retry_after_seconds=wait,
                limit="quotes in all",
            )
        self._lately.append(now)

    def _amount(self, amount_usd: Decimal) -> int:
        try:
            amount = atomic(amount_usd)
        except ValueError as error:
            raise invalid("amount_usd", str(error)) from None
        if amount < LEAST:
            raise invalid("amount_usd", "must be at least 1")
        if self._ceilings is not None and self._ceilings.most is not None and amount > self._ceilings.most:
            raise invalid("amount_usd", f"must be at most {self._ceilings.most // ATOMIC}; ask the operator for more")
        if self._terms.most is not None and amount > self._terms.most and self._count_servers() < 2:
            raise ChainUnavailable(
                "Two independent RPC servers must check an amount this large, and there is only one here.",
                headers={"Retry-After": "3600"},
                retry_after_seconds=3600,
            )
        return amount

    async def _kept(self, draft: PurchaseDraft) -> bytes:
        """Store the purchase and return its address. A number is never used twice, even after a failure."""
        wallet = self._terms.wallet
        if isinstance(wallet, bytes):
            await self._store.add_quote(draft._replace(address=wallet))
            return wallet
        while True:
            index = await self._numbers.take()
            address = wallet(index)  # takes about 1 ms, as long as handing it to a thread and back may
            try:
                await self._store.add_quote(draft._replace(address=address, hd_index=index))
            except AddressInUse:  # another process writes the same file
                self._numbers.drop_block()
                continue
            return address


async def put_old_quotes_aside(store: SqlPurchaseStore, clock: Clock, days: float, *, at_once: int = AT_ONCE) -> None:
    """Archive the quotes that expired at least `days` days ago and were not paid, `at_once` in a transaction."""
    before = int((clock.time() - days * DAY_S) * 1000)
    more = True
    while more:
        more = await store.put_quotes_aside(before, at_once) == at_once
        await anyio.sleep(PAUSE_S if more else 0)


def payment_uri(wallet: str, amount: int) -> str:
    """Return the payment as a URI for wallets (EIP-681). `amount` is in 0.000001 USDC."""
    return f"ethereum:{USDC_TEXT}@{CHAIN_ID}/transfer?address={wallet}&uint256={amount}"


def invalid(name: str, why: str) -> InvalidArguments:
    """Return the error for a wrong argument. The error never repeats the argument's value."""
    return InvalidArguments(f"{name}: {why}", errors=[{"loc": name, "msg": why, "type": "value_error"}])


def unavailable(
    detail: str = "The chain cannot be read at the moment. A payment that you made is not lost.",
) -> ChainUnavailable:
    return ChainUnavailable(detail, headers={"Retry-After": "10"}, retry_after_seconds=10)


def pending(progress: Progress) -> PaymentPending:
    """Return the answer while a payment has too few confirmations."""
    return PaymentPending(
        "The transfer does not have enough confirmations yet. Confirm again with the same tx_hash and nonce.",
        headers={"Retry-After": str(RETRY_S)},
        confirmations=progress.confirmations,
        required=progress.required,
        retry_after_seconds=RETRY_S,
    )


MEMO = re.compile(r"svc_buy_[0-9a-f]{32}")


def new_memo() -> str:
    return f"svc_buy_{secrets.token_hex(16)}"


def commitment(memo: str) -> bytes:
    """Return the hash that buyers may put on the chain in place of the memo, which is a secret."""
    return keccak(f"svc-pay-v1|{CHAIN_ID}|{memo}".encode())


def challenge_of(verifier: str) -> str:
    """Return the challenge that belongs to a verifier (RFC 7636, S256)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


ADDRESS_MARK = "address"  # among the marks outside the database: the first number that no process has reserved
BLOCK = 64  # numbers reserved at a time: each time costs three waits for the disk, and a restart skips the rest


class AddressNumbers:
    """Hands out numbers from blocks, each reserved on disk outside the database before its first number is used.

    So neither a restored backup, which knows fewer numbers, nor another process on the same
    file hands one out again. Where instances share a database, the block is reserved there as
    well, so that no two instances get the same one.
    """

    def __init__(self, store: SqlPurchaseStore, first: int = 0, marks: HighWater | None = None) -> None:
        self._store, self._first, self._marks = store, first, marks
        self._next = self._end = 0
        self._reserving = anyio.Lock()

    async def take(self) -> int:
        """Return a number that was never handed out before. Raises StorageFailed, MarksBroken."""
        while self._next >= self._end:
            async with self._reserving:
                if self._next >= self._end:
                    await self._reserve()
        number, self._next = self._next, self._next + 1
        return number

    def drop_block(self) -> None:
        """Forget the rest of the block, because another process has used one of its numbers."""
        self._end = self._next

    async def _reserve(self) -> None:
        start = max(self._first, await self._store.find_next_index())
        end = start + BLOCK
        if self._marks is not None:
            rule = partial(_set_aside, start)
            try:
                end = int(await anyio.to_thread.run_sync(self._marks.change, ADDRESS_MARK, rule))
            except OSError as error:
                raise StorageFailed(f"no deposit address can be reserved: {error}") from error
        begin = await self._store.set_aside(end - BLOCK, BLOCK)
        if self._marks is not None and begin + BLOCK > end:
            await anyio.to_thread.run_sync(self._marks.raise_to, ADDRESS_MARK, begin + BLOCK)
        self._next, self._end = begin, begin + BLOCK


def _set_aside(start: int, before: int | None) -> int:
    """Return the mark after one more block, which begins at `start` or after all numbers that are reserved already."""
    return max(start, before or 0) + BLOCK


class DepositSearch:
    """Looks for transfers to the addresses of purchases."""

    def __init__(self, store: SqlPurchaseStore, chain: RpcPool) -> None:
        self._store, self._chain = store, chain

    async def find(self, memo: str) -> str | None:
        """Return the hash of the first transaction that paid a purchase, or None while there
        is none. Return None also where all purchases share one address: only the buyer can say
        which payment is for which purchase.

        Raises:
            InvalidArguments, NotFound: there is no purchase with this memo.
            ChainUnavailable: no server of the chain answers.
        """
        if not MEMO.fullmatch(memo):
            raise invalid("nonce", "must be the memo of a quote: svc_buy_ and 32 hexadecimal digits")
        purchase = await self._store.find_purchase(memo_hash(memo))
        if purchase is None:
            raise NotFound("There is no purchase with this memo.")
        if purchase.hd_index is None:
            return None
        if (credit := await self._store.find_credit(purchase.id)) is not None:
            return f"0x{credit.tx_hash.hex()}"
        try:
            tx_hash = await self._chain.find_transfer(purchase.address, purchase.created_at // 1000)
        except ChainDown:
            raise unavailable() from None
        return None if tx_hash is None else f"0x{tx_hash.hex()}"
