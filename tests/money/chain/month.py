"""A seeded history of payments of every kind on a chain that is reorganised, with what should be known of each."""

import hashlib
import random
from collections import Counter
from dataclasses import dataclass, field
from functools import partial

from tests.money.chain.log_node import BLOCK_S, GENESIS, LogNode
from tests.money.chain.parts import RULES, WALLET
from tests.money.purchases.parts import NOW, Desk, Server, paid
from toolserver.money.chain.scanner import ChainScanner, ScanTerms
from toolserver.money.chain.sql_chain_book import SqlChainBook
from toolserver.money.purchases.chain.node import ChainNode
from toolserver.money.purchases.chain.rpc_pool import RpcPool
from toolserver.money.purchases.sql_sweeps import record_moved, record_sending
from toolserver.money.purchases.transfer_authorization import Authorization

STRANGER, COLLECTOR = "0x" + "5a" * 20, "0x" + "c0" * 20
KINDS = "exact exact twice short parts late dust nothing foreign moved swept wallet".split()
START = (NOW - GENESIS) // BLOCK_S


@dataclass
class Month:
    """The node, the desk that sells, and the book that reads. `expected` has the state of each transaction's transfer,
    as far as it was meant to reach one.
    """

    node: LogNode
    desk: Desk
    server: Server
    scanner: ChainScanner
    rng: random.Random
    wallets: dict[str, str] = field(default_factory=dict)  # address -> memo, of quotes
    expected: dict[str, str] = field(default_factory=dict)
    claimed: dict[str, str] = field(default_factory=dict)  # address -> transaction
    txs: int = 0

    def tx(self) -> str:
        self.txs += 1
        return f"0x{hashlib.sha256(f'{self.rng.random()} {self.txs}'.encode()).hexdigest()}"

    async def quote(self) -> str:
        quote = await self.desk.quote()
        self.wallets[quote.wallet.lower()] = quote.memo
        return quote.wallet.lower()

    def pay(self, to: str, usd: float, payer: str = STRANGER) -> str:
        tx = self.tx()
        self.node.mine((tx, payer, to, round(usd * 10**6)))
        self.desk.clock.advance(BLOCK_S)
        return tx

    def pass_blocks(self, blocks: int) -> None:
        self.node.height += blocks
        self.desk.clock.advance(BLOCK_S * blocks)

    async def confirm(self, address: str, tx: str, usd: float) -> None:
        seen = paid(bytes.fromhex(address[2:]), usd, tx=bytes.fromhex(tx[2:]), at=int(self.desk.clock.time()))
        self.server.sees(seen)
        await self.desk.confirm(bytes.fromhex(tx[2:]), self.wallets[address])
        self.claimed[address] = tx

    async def sweep(self, address: str) -> str:
        amount = self.node.balance(address, self.node.height)
        terms = bytes.fromhex(address[2:]), bytes.fromhex(COLLECTOR[2:])
        one = Authorization(*terms, amount, NOW * 2, self.rng.randbytes(32))
        tx = self.tx()
        await record_sending(self.desk.ledger.file, one, bytes.fromhex(tx[2:]), NOW * 1000)
        self.node.mine((tx, address, COLLECTOR, amount))
        await record_moved(self.desk.ledger.file, one, NOW * 1000)
        return tx

    async def step(self) -> None:
        """Something that happens in a month."""
        kind = self.rng.choice(KINDS)
        if kind == "wallet":
            self.expected[self.pay(f"0x{WALLET.hex()}", 3)] = "foreign"
            return
        address = await self.quote()
        if kind == "late":
            self.pass_blocks(1300)
            self.expected[self.pay(address, 5)] = "late"
        elif kind == "short":
            self.expected[self.pay(address, 0.5)] = "short"
        elif kind in ("dust", "nothing"):
            for _ in range(self.rng.randrange(1, 4)):
                self.pay(address, 0.009 if kind == "dust" else 0)
        elif kind == "parts":
            tx = self.tx()
            self.node.mine(*((tx, STRANGER, address, amount) for amount in (600_000, 600_000, 500)))
            self.expected[tx] = "quoted"
        else:
            tx = self.pay(address, 5)
            self.expected[tx] = "quoted"
            if kind in ("exact", "twice", "swept") and self.rng.random() < 0.8:
                self.pass_blocks(12)
                await self.confirm(address, tx, 5)
                self.expected[tx] = "credited"
                if kind == "twice":
                    self.expected[self.pay(address, 7)] = "second"
                if kind == "swept":
                    self.expected[await self.sweep(address)] = "swept"
            if kind == "moved":
                self.pass_blocks(12)
                self.expected[self.pay(COLLECTOR, 2, payer=address)] = "foreign"
        self.pass_blocks(self.rng.randrange(4))

    def reorganise(self) -> None:
        """Replace up to ten blocks. Each transaction of theirs is mined again sooner or later, or never."""
        gone = self.node.reorganise(self.rng.randint(1, min(10, self.node.final_lag - 1)))
        by_tx: dict[str, list[tuple[str, str, str, int]]] = {}
        for moved in gone:
            by_tx.setdefault(moved.tx, []).append((moved.tx, moved.payer, moved.payee, moved.amount))
        again = [tx for tx in by_tx if tx in self.claimed.values() or self.rng.random() < 0.6]
        self.rng.shuffle(again)
        for tx in again:
            self.node.height += self.rng.randrange(3)
            self.node.mine(*by_tx[tx])
        for tx in by_tx.keys() - set(again):
            if tx in self.expected:
                self.expected[tx] = "undone"
        self.node.height += 12
        self.desk.clock.advance(BLOCK_S * 12)

    async def read_states(self) -> dict[str, Counter[str]]:
        found: dict[str, Counter[str]] = {}
        for tx, state in await self.desk.rows("SELECT tx_hash, state FROM chain_transfer"):
            found.setdefault(f"0x{bytes(tx).hex()}", Counter())[state] += 1
        return found


def scanner_of(desk: Desk, url: str, terms: ScanTerms | None = None) -> tuple[ChainScanner, RpcPool]:
    """A scanner of the desk's file over one server, and its pool, to be closed."""
    pool = RpcPool([partial(ChainNode, url, timeout_s=20)], monotonic=desk.clock.monotonic)
    book = SqlChainBook(desk.ledger.file, RULES)
    return ChainScanner(book, pool, desk.clock, RULES, terms), pool
