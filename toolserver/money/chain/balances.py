"""Compares what every address of ours holds with the sum of its transfers in the book of the chain."""

from collections.abc import Sequence
from typing import NamedTuple

from toolserver.money.chain.sql_chain_book import BalanceDifference, SqlChainBook
from toolserver.money.purchases.chain.rpc_pool import BATCH, RpcPool


class BalanceComparison(NamedTuple):
    """How many addresses were compared, what they should hold and hold in all (0.000001 USDC), and which differ."""

    addresses: int
    booked: int
    held: int
    differences: list[BalanceDifference]


async def compare_balances(
    book: SqlChainBook, chain: RpcPool, block: int, named: Sequence[bytes] | None = None
) -> BalanceComparison:
    """Compare the `named` addresses, or all that were ever issued and the wallets, after a block. Raises ChainDown."""
    count, booked_sum, held_sum, differences = 0, 0, 0, list[BalanceDifference]()
    last, rest = b"", list(named or ())
    while page := (await book.list_issued(last) if named is None else rest[:BATCH]):
        held, booked = await chain.balances_at(page, block), await book.sum_booked(page, block)
        pairs = zip(page, booked, held, strict=True)
        differences += [BalanceDifference(*each) for each in pairs if each[1] != each[2]]
        count, booked_sum, held_sum = count + len(page), booked_sum + sum(booked), held_sum + sum(held)
        last, rest = page[-1], rest[BATCH:]
    return BalanceComparison(count, booked_sum, held_sum, differences)
