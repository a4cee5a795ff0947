"""How receipts are issued: values that a store applies in one transaction, decided by pure rules.

A receipt and its booked call, for the log of uncharged calls, are stored in the same transaction, and the receipt is
signed within it: only there is it certain which bucket of the log it can name.
"""

import hashlib
import secrets
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from toolserver.receipts.keys import Key, KeyRing
from toolserver.receipts.log_buckets import NOT_YET, BookedCall, BucketNamer, LogBucket, UnchargedCall, hour_at
from toolserver.receipts.sign import (
    Algorithm,
    Sale,
    as_object,
    compact,
    core_of,
    encode,
    name_signer,
    receipt_id,
    signing_input,
)


class StoredReceipt(NamedTuple):
    """A receipt as it is stored: `core`, the JWS signature over it, the name of its signer. `at` is in milliseconds."""

    id: str
    owner: str
    core: bytes
    signer: str
    signature: bytes
    at: int

    @property
    def jws(self) -> str:
        """The receipt as it travels in a header."""
        return compact(self.signer, self.core, self.signature)

    def show(self, key: Key | None) -> dict[str, Any]:
        """The core as an object, with a signature over its own bytes if the key that signed it can still sign."""
        core = msgspec.json.decode(self.core)
        return core if key is None or key.seed is None else as_object(core, key.kid, key.sign(self.core))

    def is_signed_by(self, key: Key) -> bool:
        """Whether the stored signature is the key's, over the stored core."""
        return key.verifies(self.signature, signing_input(self.signer, self.core))

    def fits(self, sale: Sale) -> bool:
        """Whether it describes this sale, not another answer to the same call or a charge that was reversed since."""
        about = msgspec.json.decode(self.core)
        charged = 0 if sale.pending else sale.charged
        body = sale.body.sha256 if sale.body else None
        return bool(about["response_sha256"] == body and about["credits_charged"] == charged)


@dataclass(slots=True)
class ReceiptState:
    """What a group of operations needs, and what it added: the receipts of its calls, and the calls it booked.

    `closed` is the last hour that was appended to the log. It must not change before the transaction ends.
    """

    receipts: dict[str, StoredReceipt] = field(default_factory=dict)
    closed: int = NOT_YET
    new_receipts: list[StoredReceipt] = field(default_factory=list)
    new_calls: list[BookedCall] = field(default_factory=list)

    def add(self, receipt: StoredReceipt) -> None:
        """Add a new receipt."""
        self.receipts[receipt.id] = receipt
        self.new_receipts.append(receipt)

    def book(self, bucket: LogBucket, call: UnchargedCall) -> None:
        """Book an uncharged call in its bucket."""
        digest = None if call.receipt_sha256 is None else bytes.fromhex(call.receipt_sha256)
        at = int(call.at * 1000)
        booked = BookedCall(bucket.hour, bucket.key, call.reason, call.endpoint, call.credits, digest, at)
        self.new_calls.append(booked)

    def find_hour(self, at: float) -> int:
        """The hour in which a call at that time is booked: a later one when its own is in the log already."""
        return max(hour_at(at), self.closed + 1)


class ReceiptIssuer:
    """Signs receipts with the key in use, in the name of one service.

    `origin` is the name of its log, `buckets` names what is in it, `algorithm` is what receipts call their signature.
    """

    def __init__(
        self, ring: KeyRing, *, service: str, origin: str, buckets: BucketNamer, algorithm: Algorithm = "EdDSA"
    ) -> None:
        self._ring, self._service, self._origin, self._algorithm = ring, service, origin, algorithm
        self.buckets = buckets

    def sign(self, sale: Sale, now: float, bucket: LogBucket | None, id: str) -> StoredReceipt:
        """A new receipt, issued at `now` epoch seconds; of an uncharged call it names its bucket of the log."""
        key = self._ring.current()
        place = None if bucket is None else bucket.place(self._origin)
        core = encode(core_of(sale, service=self._service, now=now, log=place, id=id))
        signer = name_signer(key.kid, self._algorithm)
        return StoredReceipt(id, sale.owner, core, signer, key.sign(signing_input(signer, core)), int(now * 1000))


@dataclass(frozen=True, slots=True)
class IssueReceipt:
    """Sign and store the receipt of a sale. The same sale again returns the same receipt. `now` is in epoch seconds."""

    issuer: ReceiptIssuer
    sale: Sale
    now: float

    @property
    def needs(self) -> str:
        """The id under which the receipt may already be stored."""
        return receipt_id(self.sale.call_id)

    def on(self, state: ReceiptState) -> StoredReceipt:
        """The receipt. If a process died after signing one, the answer may be another one now, and so is the id."""
        before = state.receipts.get(self.needs)
        if before is not None and before.fits(self.sale):
            return before
        id = self.needs if before is None else f"rcpt_{secrets.token_hex(16)}"
        free = self._describe_uncharged()
        bucket = None if free is None else self.issuer.buckets.name(free, state.find_hour(self.now))
        receipt = self.issuer.sign(self.sale, self.now, bucket, id)
        if free is not None and bucket is not None:
            state.book(bucket, free._replace(receipt_sha256=hashlib.sha256(receipt.core).hexdigest()))
        state.add(receipt)
        return receipt

    def _describe_uncharged(self) -> UnchargedCall | None:
        """What the log is to say of the call; None if it was charged."""
        sale = self.sale
        if sale.reason is None:
            return None
        return UnchargedCall(self.now, sale.owner, sale.reason, sale.endpoint, sale.cost)


@dataclass(frozen=True, slots=True)
class RecordUncharged:
    """Book an uncharged call for which no receipt is signed now."""

    buckets: BucketNamer
    call: UnchargedCall

    def on(self, state: ReceiptState) -> None:
        """Book it."""
        state.book(self.buckets.name(self.call, state.find_hour(self.call.at)), self.call)
