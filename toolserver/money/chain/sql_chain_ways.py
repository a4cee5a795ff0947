"""Sums the transfers in the book of the chain by the way in which they were paid, and by state.

    transfer ....... to the address of a purchase
    x402_topup ..... by a signature, for credits
    x402_call ...... by a signature, for one call
    other .......... to one of our wallets, and no document names it
    sent ........... from one of our addresses

Every transfer has one way and one state, so the sums of a span are all that moved in it.
Amounts are in 0.000001 USDC, times are epoch milliseconds.
"""

from typing import Literal, get_args

from toolserver.money.chain.scanner import FINAL
from toolserver.money.chain.sql_chain_book import find_mark
from toolserver.money.chain.sql_chain_sums import StateSums
from toolserver.money.chain.transfer_states import STATES
from toolserver.sql.connection import SqlConnection

PaymentWay = Literal["transfer", "x402_topup", "x402_call", "other", "sent"]
WAYS: tuple[PaymentWay, ...] = get_args(PaymentWay)

# A payment that moved to another transaction is known by both. Two of one payer and amount in one transaction are
# interchangeable, so they count as top-ups if one of them is.
_SIGNED = """(EXISTS (SELECT 1 FROM x402_payment p WHERE p.tx_hash = m.tx_hash AND {terms})
  OR EXISTS (SELECT 1 FROM x402_confirmation c JOIN x402_payment p ON p.payload = c.payload
    WHERE c.tx_hash = m.tx_hash AND {terms}))"""
_TERMS = "p.authorizer = m.payer AND p.amount = m.amount"
WAY = f"""CASE WHEN m.outward = 1 THEN 'sent'
    WHEN {_SIGNED.format(terms=f"{_TERMS} AND p.request LIKE 'topup %'")} THEN 'x402_topup'
    WHEN {_SIGNED.format(terms=_TERMS)} THEN 'x402_call'
    WHEN EXISTS (SELECT 1 FROM tx_credit c WHERE c.chain_id = 8453 AND c.tx_hash = m.tx_hash)
      OR EXISTS (SELECT 1 FROM purchase p WHERE p.address = m.payee AND p.hd_index IS NOT NULL)
      OR EXISTS (SELECT 1 FROM old_quote o WHERE o.address = m.payee AND o.hd_index IS NOT NULL)
    THEN 'transfer' ELSE 'other' END"""
"""The way of a transfer `m`, in SQL."""
_SUMS = f"""SELECT {WAY} AS way, m.state, count(*),
    sum(CASE WHEN m.inward = 1 THEN m.amount ELSE 0 END), sum(CASE WHEN m.outward = 1 THEN m.amount ELSE 0 END)
  FROM chain_transfer m WHERE m.block_time >= :since AND m.block_time < :until GROUP BY 1, 2"""

ChainWays = dict[PaymentWay, dict[str, StateSums]]


def sum_ways(db: SqlConnection, since: int, until: int) -> ChainWays | None:
    """Return the transfers of the blocks from `since` to before `until` by way and state, without empty sums; None
    if the chain was never read.
    """
    if find_mark(FINAL, db) is None:
        return None
    rows = db.execute(_SUMS, {"since": since, "until": until}).fetchall()
    sums = {(way, state): StateSums(int(count), int(received), int(sent)) for way, state, count, received, sent in rows}
    by_way: ChainWays = {way: {state: sums[way, state] for state in STATES if (way, state) in sums} for way in WAYS}
    return {way: states for way, states in by_way.items() if states}
