"""Defines the results kept for Idempotency-Keys: each has its own part and a part shared with other results."""

import hashlib
import zlib
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from toolserver.money.ledger.protocol import Settlement
    from toolserver.money.receipts.issue import StoredReceipt


KeyName: TypeAlias = tuple[str, str]
"""A scope, such as the fingerprint of a token, and the caller's key within it."""


class KeyedCall(NamedTuple):
    """A call with a key: the fingerprint of its request, the call_id it charges under, and its result if done."""

    request: str
    call_id: str
    result: bytes | None = None


class KeyClaim(NamedTuple):
    """The key that a call claims, and the fingerprint of its request."""

    name: KeyName
    request: str


class KeyTaken(Exception):
    """The key belongs to an earlier call, `known`. Nothing was done."""

    def __init__(self, known: KeyedCall) -> None:
        super().__init__(known.call_id)
        self.known = known


class SharedBytes:
    """Bytes that many results share, hashed and compressed once, when they are first kept."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    @cached_property
    def sha256(self) -> bytes:
        return hashlib.sha256(self.content).digest()

    @cached_property
    def packed(self) -> bytes:
        return zlib.compress(self.content, 1)


class KeptResult(NamedTuple):
    """A result to keep: its own part, and the bytes at its end that it shares with other results, if any.

    The receipt of the call is a line between them. It is stored only with the receipts.
    """

    own: bytes
    shared: SharedBytes | None = None
    receipt: str = ""

    @property
    def whole(self) -> bytes:
        """Return all parts joined, as they are returned to a caller."""
        return self.own if self.shared is None else join_result(self.own, self.receipt, self.shared.content)


class KeyedCharge(NamedTuple):
    """The Idempotency-Key of a charge, and the result to keep for it."""

    claim: KeyClaim
    pack: "Callable[[Settlement, StoredReceipt], KeptResult]"


class NewKeyedCall(NamedTuple):
    """A call to be stored with its result."""

    claim: KeyClaim
    call_id: str
    result: KeptResult


def join_result(own: bytes, receipt: str, shared: bytes) -> bytes:
    """Return the parts of a result joined."""
    return own + receipt.encode() + b"\n" + shared
