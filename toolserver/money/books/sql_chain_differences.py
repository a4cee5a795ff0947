"""Compares the documents about money with the book of the chain, in both directions, from the tables alone.

Each payment that was credited, settled, swept or paid back through the last final block has
its transfer in the book, for its amount, and still on the chain. Each transfer that the book
has as credited, held, swept or refunded has a document that says so. What the service has not
had the time to read is not compared: documents of the last minute, and those of which the book
has nothing if they are older than it, or newer than the last look at every address. A transfer
in several parts may have parts that are too small to be listed (dust): these are summed by
address.
"""

import json
from collections.abc import Iterator
from typing import NamedTuple

from toolserver.money.chain.scanner import COLD, FINAL
from toolserver.money.chain.sql_chain_book import ScanMark, find_mark
from toolserver.money.chain.transfer_states import DUST
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.listing import show_signed_usd, show_usd
from toolserver.sql.connection import SqlConnection

READ_MS = 60_000  # for which a document may be newer than what was read for it
FINAL_MS = 7_200_000  # after which a payment of ours is in a final block
STATED_MS = 3_600_000  # for which a state may be older than the document that changes it


class BookedDocument(NamedTuple):
    """A document about a transfer, and what the book of the chain has of it: the number of
    transfers that fit it and are on the chain, their sum, the sum of those in a state that
    fits, and how many were undone. `logs` are those that the document counts.
    """

    tx_hash: bytes
    address: bytes
    amount: int
    logs: str
    at: int
    rows: int
    booked: int
    stated: int
    undone: int


def find_chain_differences(db: SqlConnection) -> Iterator[str]:
    """Yield what the documents and the book of the chain do not have alike, and the addresses
    whose transfers did not add up to their balances when these were last compared. Yield
    nothing if the chain was never read.
    """
    final = find_mark(FINAL, db)
    if final is None:
        return
    decided = find_mark(COLD, db) or ScanMark(final.block, 0)
    begun = db.execute("SELECT min(at) FROM chain_change").fetchone()[0] or final.at
    until = {"final": final.block, "read": final.at - READ_MS, "settled": min(final.at, decided.at) - FINAL_MS}
    for what, sql in _DOCUMENTS.items():
        for tx_hash, side, amount, logs, *rest in db.execute(sql, until):
            document = BookedDocument(bytes(tx_hash), bytes(side), int(amount), logs, *map(int, rest))
            difference = _find_difference(document, begun, decided.at)
            if difference is not None:
                whose = f"0x{document.tx_hash.hex()}, {checksum_address(document.address)}"
                yield f"{whose}: {show_usd(document.amount)} USDC were {what}, {difference}"
    for state, sql in _UNDOCUMENTED.items():
        for tx_hash, amount in db.execute(sql, {"final": final.block, "stated": final.at - STATED_MS}):
            yield f"0x{bytes(tx_hash).hex()}: {show_usd(amount)} USDC are {state} on the chain, and no document says so"
    for address, booked, held, block in db.execute("SELECT address, booked, held, block FROM chain_difference"):
        sums = (
            f"its transfers say {show_signed_usd(booked)} USDC, and it held {show_signed_usd(held)} after block {block}"
        )
        yield f"{checksum_address(bytes(address))}: {sums}"


def count_booked(db: SqlConnection) -> int:
    """Return the number of transfers in the book of the chain through the last final block."""
    final = find_mark(FINAL, db)
    sql = "SELECT count(*) FROM chain_transfer WHERE block_number <= ?"
    return 0 if final is None else int(db.execute(sql, (final.block,)).fetchone()[0])


def _find_difference(document: BookedDocument, begun: int, decided: int) -> str | None:
    """Return in words what the book has instead, or None if it has the document's money.

    `begun` is when the book was begun, `decided` when every address was last compared and
    every state decided (epoch ms).
    """
    is_decided = document.at < decided - READ_MS
    if document.rows == 0 and document.undone == 0 and not (is_decided and document.at >= begun):
        return None
    dust = max(0, len(json.loads(document.logs)) - document.rows) * (DUST - 1)
    if document.booked + dust < document.amount:
        undone = " (undone)" if document.undone else ""
        return f"the book of the chain has {show_usd(document.booked)}{undone}"
    if is_decided and document.stated + dust < document.amount:
        return f"the book of the chain has {show_usd(document.stated)} in that state"
    return None


_COMPARED = """SELECT d.tx_hash, d.side, d.amount, d.logs, d.at,
    count(CASE WHEN m.state != 'undone' THEN 1 END), coalesce(sum(CASE WHEN m.state != 'undone' THEN m.amount END), 0),
    coalesce(sum(CASE WHEN m.state IN ({states}) THEN m.amount END), 0), count(CASE WHEN m.state = 'undone' THEN 1 END)
  FROM ({documents}) AS d
  LEFT JOIN chain_transfer m ON m.tx_hash = d.tx_hash AND {fits} AND m.block_number <= :final
  GROUP BY d.tx_hash, d.side, d.amount, d.logs, d.at"""
_CREDITED = """SELECT c.tx_hash, p.address AS side, c.amount, c.logs, c.credited_at AS at
  FROM tx_credit c JOIN purchase p ON p.id = c.purchase
  WHERE c.chain_id = 8453 AND c.block_number <= :final AND c.credited_at <= :read"""
_SETTLED = """SELECT coalesce(c.tx_hash, p.tx_hash) AS tx_hash, p.authorizer AS side, sum(p.amount) AS amount,
    '[]' AS logs, max(p.settled_at) AS at
  FROM x402_payment p JOIN x402_confirmation c ON c.payload = p.payload
  WHERE p.state = 'settled' AND c.undone_at IS NULL AND c.block_number <= :final AND p.settled_at <= :read
  GROUP BY coalesce(c.tx_hash, p.tx_hash), p.authorizer"""
_SWEPT = """SELECT tx_hash, payer AS side, sum(amount) AS amount, '[]' AS logs, max(done_at) AS at FROM sweep
  WHERE done_at <= :settled AND tx_hash IS NOT NULL GROUP BY tx_hash, payer"""
_REFUNDED = """SELECT tx_hash, payer AS side, sum(amount) AS amount, '[]' AS logs, max(ended_at) AS at FROM refund
  WHERE state = 'paid' AND ended_at <= :settled GROUP BY tx_hash, payer"""
_IN, _OUT = "m.inward = 1 AND m.{} = d.side", "m.outward = 1 AND m.payer = d.side"
_DOCUMENTS = {
    what: _COMPARED.format(documents=documents, fits=fits, states=states)
    for what, documents, fits, states in (
        ("credited", _CREDITED, _IN.format("payee"), "'credited', 'held'"),
        ("settled by x402", _SETTLED, _IN.format("payer"), "'credited', 'held'"),
        ("swept", _SWEPT, _OUT, "'swept'"),
        ("paid back", _REFUNDED, _OUT, "'refunded'"),
    )
}

_STATED = "SELECT m.tx_hash, m.amount FROM chain_transfer m WHERE m.block_number <= :final AND m.state = "
_OF_PURCHASE = """EXISTS (SELECT 1 FROM tx_credit c JOIN purchase p ON p.id = c.purchase
  WHERE c.chain_id = 8453 AND c.tx_hash = m.tx_hash AND p.address = m.payee)"""
_OF_SIGNATURE = """EXISTS (SELECT 1 FROM x402_payment p JOIN x402_confirmation c ON c.payload = p.payload
  WHERE (p.tx_hash = m.tx_hash OR c.tx_hash = m.tx_hash) AND p.authorizer = m.payer
    AND p.state = 'settled' AND (c.undone_at IS NULL OR c.undone_at > :stated))"""
_UNDOCUMENTED = {
    "credited": f"""{_STATED}'credited' AND NOT {_OF_PURCHASE} AND NOT {_OF_SIGNATURE}
      AND NOT EXISTS (SELECT 1 FROM tx_reversal r WHERE r.tx_hash = m.tx_hash AND r.at > :stated)""",
    "held": f"""{_STATED}'held' AND NOT {_OF_PURCHASE} AND NOT {_OF_SIGNATURE}
      AND NOT EXISTS (SELECT 1 FROM tx_reversal r WHERE r.tx_hash = m.tx_hash AND r.at > :stated)
      AND NOT EXISTS (SELECT 1 FROM payment_review r WHERE r.tx_hash = m.tx_hash)""",
    "swept": f"""{_STATED}'swept' AND NOT EXISTS (SELECT 1 FROM sweep s
      WHERE s.payer = m.payer AND s.payee = m.payee AND s.amount = m.amount)""",
    "refunded": f"""{_STATED}'refunded' AND NOT EXISTS (SELECT 1 FROM refund r
      WHERE r.tx_hash = m.tx_hash AND r.payer = m.payer AND r.payee = m.payee AND r.amount = m.amount)""",
}
