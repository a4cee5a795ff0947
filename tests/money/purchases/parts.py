"""Hand-made receipts, scripted servers, and a desk that sells credits on them into a real ledger file."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.money.ledger.ledgers import opened
from tests.money.purchases.wallet import XPUB
from toolserver.clock import ManualClock
from toolserver.errors import ToolserverError
from toolserver.money.ledger.store import SqlLedger
from toolserver.money.purchases.chain.reorg_watch import ReorgWatch
from toolserver.money.purchases.chain.rpc_pool import RpcPool
from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.purchases.credit_sales import Claim, CreditedPurchase, PurchaseQuote
from toolserver.money.purchases.deposit import DepositKey
from toolserver.money.purchases.matching import (
    TRANSFER,
    TRANSFER_SELECTOR,
    Log,
    ObservedTransaction,
    Receipt,
    Transaction,
    transfers,
)
from toolserver.money.purchases.quotes import Ceilings, Quotes, QuoteTerms, SalesCeilings
from toolserver.money.purchases.service import Confirmations, Rules
from toolserver.money.purchases.store import SqlPurchaseStore
from toolserver.money.purchases.units import USDC

NOW = 1_800_000_000
PAYER, OTHER = bytes([0xAA]) * 20, bytes([0xBB]) * 20
TX, TX2 = bytes([1]) * 32, bytes([2]) * 32
KEY = DepositKey(XPUB)


def word(address: bytes) -> bytes:
    return bytes(12) + address


def transfer_log(to: bytes, usd: float, index: int = 0, *, payer: bytes = PAYER, token: bytes = USDC) -> Log:
    """A Transfer event as the token writes it."""
    return Log(token, (TRANSFER, word(payer), word(to)), round(usd * ATOMIC).to_bytes(32, "big"), index)


def receipt(*logs: Log, tx: bytes = TX, status: int = 1, block: int = 100, fork: str = "") -> Receipt:
    return Receipt(tx, status, block, block_hash(block, fork), logs)


def block_hash(number: int, fork: str = "") -> bytes:
    return f"{fork}{number}".encode().ljust(32, b".")


def observed(
    found: Receipt,
    *,
    latest: int = 103,
    safe: int = 0,
    finalized: int = 0,
    at: int = NOW + 60,
    sent: Transaction | None = None,
    canonical: bytes | None = None,
) -> ObservedTransaction:
    """What a server says of a transaction; by default three blocks lie on top of it."""
    sent = sent or Transaction(USDC, TRANSFER_SELECTOR)
    return ObservedTransaction(found, sent, canonical or found.block_hash, at, latest, safe, finalized)


def paid(to: bytes, usd: float, **more: Any) -> ObservedTransaction:
    """A plain transfer."""
    tx = more.pop("tx", TX)
    return observed(receipt(transfer_log(to, usd), tx=tx), **more)


class Facts(NamedTuple):
    chain_id: int = 8453
    decimals: int = 6
    has_code: bool = True


class Hung(ToolserverError):
    """What a server that does not answer raises."""


@dataclass
class Server:
    """A server that says what it was told to."""

    seen: dict[bytes, ObservedTransaction] = field(default_factory=dict)
    what: Facts = field(default_factory=Facts)
    blocks: dict[int, bytes] = field(default_factory=dict)
    down: bool = False
    asked: int = 0
    signed: set[bytes] = field(default_factory=set)
    is_privately_certified: bool = False

    def sees(self, *found: ObservedTransaction) -> None:
        self.seen |= {each.receipt.tx_hash: each for each in found}

    async def facts(self) -> Facts:
        self._ask()
        return self.what

    async def observe(self, tx_hash: bytes) -> ObservedTransaction | None:
        self._ask()
        return self.seen.get(tx_hash)

    async def block_hash(self, number: int) -> bytes | None:
        self._ask()
        return self.blocks.get(number)

    async def read_heads(self) -> None:
        """The heights, which nobody of these tests reads."""
        self._ask()

    async def balances(self, addresses: Sequence[bytes]) -> list[int]:
        self._ask()
        return [0] * len(addresses)

    async def find_transfer(self, address: bytes, since: int) -> bytes | None:
        self._ask()
        found = [
            seen for seen in self.seen.values() if seen and any(t.payee == address for t in transfers(seen.receipt))
        ]
        return next((seen.receipt.tx_hash for seen in found if seen.block_time >= since), None)

    async def accepts(self, account: bytes, digest: bytes, signature: bytes) -> bool:
        self._ask()
        return account in self.signed

    async def aclose(self) -> None:
        self.down = True

    def _ask(self) -> None:
        self.asked += 1
        if self.down:
            raise Hung("TimeoutError")


@dataclass
class Desk:
    """What a test touches."""

    ledger: SqlLedger
    store: SqlPurchaseStore
    clock: ManualClock
    chain: RpcPool
    quotes: Quotes
    confirmations: Confirmations
    watch: ReorgWatch
    rules: Rules

    async def quote(
        self, usd: str = "5", challenge: str | None = None, credits_per_day: int | None = None
    ) -> PurchaseQuote:
        return await self.quotes.make(Decimal(usd), challenge, credits_per_day)

    async def confirm(self, tx: bytes | str, memo: str, **more: Any) -> CreditedPurchase:
        text = tx if isinstance(tx, str) else f"0x{tx.hex()}"
        return await self.confirmations.confirm(Claim(text, memo, **more))

    async def rows(self, sql: str, *values: Any) -> list[Any]:
        return await self.ledger.file.read(lambda db: db.execute(sql, values).fetchall())

    async def minted(self) -> int:
        """How many credits there are, by the transfers."""
        return int((await self.rows("SELECT coalesce(sum(amount), 0) FROM transfer WHERE debit=1"))[0][0])


@asynccontextmanager
async def desk(
    folder: Path,
    servers: Sequence[Any],
    *,
    rules: Rules | None = None,
    wallet: Any = KEY.address,
    clock: ManualClock | None = None,
    ceilings: Ceilings | None = None,
    kind: str = "sqlite",
    **terms: Any,
) -> AsyncIterator[Desk]:
    """A desk over servers, each asked once a claim unless `rules` say otherwise. It ends with books that are right."""
    clock = clock or ManualClock(datetime.fromtimestamp(NOW, UTC))
    rules = rules or Rules(wait_s=0, answer_s=30)  # a machine under load answers late
    chain = RpcPool([partial(return_server, server) for server in servers], monotonic=clock.monotonic)
    async with opened(kind, folder, clock) as ledger:
        assert isinstance(ledger, SqlLedger)
        store = SqlPurchaseStore(ledger.file)
        ceiling = SalesCeilings(ceilings or Ceilings(), store, clock)
        quotes = Quotes(store, clock, QuoteTerms(wallet, **terms), ceiling, count_servers=lambda: len(chain))
        confirmations = Confirmations(store, chain, clock, rules, ceiling)
        watch = ReorgWatch(store, chain, clock, rules.policy)
        try:
            yield Desk(ledger, store, clock, chain, quotes, confirmations, watch, rules)
            assert await ledger.check() == []
        finally:
            await chain.aclose()


def return_server(server: Any) -> Any:
    return server


def address_of(quote: PurchaseQuote) -> bytes:
    return bytes.fromhex(quote.wallet[2:])
