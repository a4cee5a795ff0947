"""What the tests of the chain's book share: transfers, heads, and a book over the desk of purchases."""

from typing import Any

from tests.money.purchases.parts import NOW, PAYER, Desk, block_hash
from toolserver.money.chain.sql_chain_book import BookRules, SqlChainBook
from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.purchases.matching import BlockHead, ChainHeads, LoggedTransfer, Policy

WALLET = bytes([0x77]) * 20
HEADS = ChainHeads(BlockHead(200, block_hash(200), NOW), 195, 190)
RULES = BookRules(Policy(), 600_000, frozenset({WALLET}))


def logged(tx: bytes, payee: bytes, usd: float, **more: Any) -> LoggedTransfer:
    """A transfer of USDC in block 100, unless told otherwise."""
    block, fork = more.pop("block", 100), more.pop("fork", "")
    fields = {"payer": PAYER, "log_index": 0, "block_time": NOW + 60} | more
    place = {"block_number": block, "block_hash": block_hash(block, fork)}
    return LoggedTransfer(tx_hash=tx, payee=payee, amount=round(usd * ATOMIC), **place, **fields)


def book_of(desk: Desk, rules: BookRules = RULES) -> SqlChainBook:
    return SqlChainBook(desk.ledger.file, rules)
