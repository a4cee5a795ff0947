"""The results that are kept for Idempotency-Keys: each has a part of its own, and one that it shares with others."""

import hashlib
import zlib
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from toolserver.ledger.protocol import Settlement
    from toolserver.receipts.issue import StoredReceipt


KeyName: TypeAlias = tuple[str, str]
"""A scope, such as the fingerprint of a token, and the caller's key within it."""


class KeyedCall(NamedTuple):
    """A call with a key: its request as a fingerprint, the call_id it charges under, and its result when it is done."""

    request: str
    call_id: str
    result: bytes | None = None


class KeyClaim(NamedTuple):
    """A key that a call wants to have, and the fingerprint of its request."""

    name: KeyName
    request: str


class KeyTaken(Exception):
    """The key belongs to a call that was made before, which is `known`. Nothing was done."""

    def __init__(self, known: KeyedCall) -> None:
        super().__init__(known.call_id)
        self.known = known


class SharedBytes:
    """Bytes that many results have in common: hashed and compressed once, when they are kept for the first time."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    @cached_property
    def sha256(self) -> bytes:
        return hashlib.sha256(self.content).digest()

    @cached_property
    def packed(self) -> bytes:
        return zlib.compress(self.content, 1)


class KeptResult(NamedTuple):
    """A result to keep: the part of its own, and the bytes it ends with and shares with others, if there are any.

    Between them is the receipt of the call, on a line. It is stored with the receipts and not once more.
    """

    own: bytes
    shared: SharedBytes | None = None
    receipt: str = ""

    @property
    def whole(self) -> bytes:
        """All parts, as they are given back."""
        return self.own if self.shared is None else join_result(self.own, self.receipt, self.shared.content)


class KeyedCharge(NamedTuple):
    """The Idempotency-Key that a charge is made with, and the result to keep for it."""

    claim: KeyClaim
    pack: "Callable[[Settlement, StoredReceipt], KeptResult]"


class NewKeyedCall(NamedTuple):
    """A call to be stored with its result."""

    claim: KeyClaim
    call_id: str
    result: KeptResult


def join_result(own: bytes, receipt: str, shared: bytes) -> bytes:
    """The parts of a result as a whole."""
    return own + receipt.encode() + b"\n" + shared
