"""Signs and reads the statement of a closed month: the number of rows of each kind, their digests, and the sums.

A statement is a JWS in compact form like a receipt, signed by a key of receipts, but with
another `typ`, so that neither can be taken for the other. Each statement names the SHA-256 of
the one before, so that no month can be removed or inserted.
"""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal, NamedTuple

import msgspec

from toolserver.money.receipts.keys import Key, b64, unb64
from toolserver.money.receipts.sign import ALGORITHMS, encode

TYPE = "month+jws"
OPENING, CLOSING = "opening", "closing"  # the tables of balances in an archive; the others but one are of the database
ON_CHAIN = "on_chain"  # the transfers on the chain, with way and history


class MonthSpan(NamedTuple):
    """A month (UTC): its name, such as 2027-01, and its start (included) and end (excluded) in epoch milliseconds."""

    name: str
    since: int
    until: int

    @classmethod
    def at(cls, ms: int) -> "MonthSpan":
        """Return the month that contains a time in epoch milliseconds."""
        moment = datetime.fromtimestamp(ms / 1000, UTC)
        first = moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        following = first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)
        return cls(first.strftime("%Y-%m"), *(int(end.timestamp()) * 1000 for end in (first, following)))

    @classmethod
    def named(cls, name: str) -> "MonthSpan":
        """Return the month of that name. Raises ValueError."""
        return cls.at(int(datetime.strptime(name, "%Y-%m").replace(tzinfo=UTC).timestamp()) * 1000)


class RowDigest(msgspec.Struct, frozen=True):
    """The number of rows of a table in a month, and the SHA-256 (hex) over their lines in its archive."""

    rows: int
    sha256: str


class LogRoot(msgspec.Struct, frozen=True):
    """The log of uncharged calls at the end of a month: the number of its leaves, and their root hash (hex)."""

    size: int
    root: str


class SealHead(msgspec.Struct, frozen=True):
    """The seals of rows when a month was closed: transactions that were sealed, and the SHA-256 (hex) of all heads."""

    commits: int
    head: str


class MovedMoney(msgspec.Struct, frozen=True):
    """Transfers on the chain: their number, and what came to and left our addresses, in 0.000001 USDC."""

    transfers: int
    received: int
    sent: int


class MonthStatement(msgspec.Struct, frozen=True):
    """A closed month. Times are epoch milliseconds; `previous` is the SHA-256 (hex) of the statement before.

    `credits` has the figures of `toolserver books month`, and `usdc` those of payments, by way and state, in 0.000001
    USDC; `on_chain` has the transfers in blocks of the month by way and by their state when it was closed, None if the
    chain was never read; `seals` says how far the seals of rows had come. Earlier versions closed months with less.
    """

    v: Literal[1]
    service: str
    month: str
    since: int
    until: int
    closed_at: int
    previous: str | None
    tables: dict[str, RowDigest]
    credits: dict[str, int]
    log: LogRoot
    usdc: dict[str, int] | None = None
    seals: SealHead | None = None
    on_chain: dict[str, dict[str, MovedMoney]] | None = None


class StatementUnreadable(ValueError):
    """A text is not the signed statement of a month, or its signature is not valid."""


class SignedMonth(msgspec.Struct, frozen=True):
    """The statement of a month as it was read from its text, with the id of the key that it says signed it."""

    statement: MonthStatement
    kid: str
    text: str
    signature: bytes

    @property
    def sha256(self) -> str:
        """The hash (hex) by which the next statement names this one."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def require_signed(self, key: Key | None) -> None:
        """Raise StatementUnreadable unless `key` is given, made the signature and was valid when the month closed."""
        at = self.statement.closed_at / 1000
        if key is None:
            raise StatementUnreadable(f"the key {self.kid} is not in the key set")
        if not key.verifies(self.signature, self.text.rpartition(".")[0].encode()):
            raise StatementUnreadable(f"the signature was not made by the key {self.kid}")
        if not key.covers(at) or (key.revoked_at is not None and at >= key.revoked_at):
            raise StatementUnreadable(f"the key {self.kid} was not in use when the month was closed")


def sign_month(statement: MonthStatement, key: Key) -> str:
    """Return the signed statement as text."""
    header = encode({"alg": "EdDSA", "kid": key.kid, "typ": TYPE})
    text = f"{b64(header)}.{b64(encode(statement))}"
    return f"{text}.{b64(key.sign(text.encode()))}"


def parse_month(text: str) -> SignedMonth:
    """Read a statement without a check of its signature. Raises StatementUnreadable."""
    try:
        header, payload, signature = text.split(".")
        head = msgspec.json.decode(unb64(header), type=dict[str, str])
        statement = msgspec.json.decode(unb64(payload), type=MonthStatement)
        if head.keys() != {"alg", "kid", "typ"} or head["typ"] != TYPE or head["alg"] not in ALGORITHMS:
            raise StatementUnreadable("its header is not that of a month statement")
        return SignedMonth(statement, head["kid"], text, unb64(signature))
    except StatementUnreadable:
        raise
    except ValueError as error:
        raise StatementUnreadable(f"it is not a month statement: {error}") from None


def find_gap(before: SignedMonth | None, signed: SignedMonth) -> Iterator[str]:
    """Yield what is wrong between a month and the one before it, if the one does not follow the other."""
    said = signed.statement
    if said.previous != (None if before is None else before.sha256):
        yield f"{said.month}: it does not name the month before"
    elif before is not None and said.tables[OPENING] != before.statement.tables[CLOSING]:
        yield f"{said.month}: it does not open with the balances that {before.statement.month} closed with"
