"""Issues receipts by pure rules, as values that a store applies in one transaction.

A receipt and, if the call was not charged, its booked call for the log are stored in the same
transaction. The receipt is signed within it too, because only there is it certain which
bucket of the log it can name.
"""

import hashlib
from dataclasses import dataclass, field

from toolserver.core.caller import new_call_id
from toolserver.money.receipts.keys import KeyRing
from toolserver.money.receipts.log import NOT_YET, BookedCall, BucketNamer, LogBucket, UnchargedCall, hour_at
from toolserver.money.receipts.packing import NewReceipt
from toolserver.money.receipts.sign import (
    Algorithm,
    Sale,
    list_own,
    list_shared,
    name_signer,
    receipt_id,
    signing_input,
)
from toolserver.money.receipts.stored_receipt import StoredReceipt
from toolserver.money.receipts.template import make_template


@dataclass(slots=True)
class ReceiptState:
    """The rows that a group of operations needs and adds: stored receipts, new receipts and newly booked calls.

    `closed` is the last hour (hours since 1970) in the log. It must not change before the transaction ends.
    """

    receipts: dict[str, StoredReceipt] = field(default_factory=dict)
    closed: int = NOT_YET
    new_receipts: list[NewReceipt] = field(default_factory=list)
    new_calls: list[BookedCall] = field(default_factory=list)

    def add(self, new: NewReceipt) -> None:
        """Add a new receipt."""
        self.receipts[new.receipt.id] = new.receipt
        self.new_receipts.append(new)

    def book(self, bucket: LogBucket, call: UnchargedCall) -> None:
        """Book an uncharged call in its bucket of the log."""
        digest = None if call.receipt_sha256 is None else bytes.fromhex(call.receipt_sha256)
        at = int(call.at * 1000)
        booked = BookedCall(bucket.hour, bucket.key, call.reason, call.endpoint, call.credits, digest, at)
        self.new_calls.append(booked)

    def find_hour(self, at: float) -> int:
        """Return the hour in which a call at `at` (epoch seconds) is booked: a later one if its own is in the log
        already.
        """
        return max(hour_at(at), self.closed + 1)


class ReceiptIssuer:
    """Signs receipts with the key in use, in the name of one service.

    `origin` is the name of its log, `buckets` names the buckets of the log, `algorithm` is named in receipts.
    """

    def __init__(
        self, ring: KeyRing, *, service: str, origin: str, buckets: BucketNamer, algorithm: Algorithm = "EdDSA"
    ) -> None:
        self._ring = ring
        self._service = service
        self._origin = origin
        self._algorithm = algorithm
        self.buckets = buckets

    def sign(self, sale: Sale, now: float, bucket: LogBucket | None, id: str) -> NewReceipt:
        """Return a new receipt, issued at `now` epoch seconds. For an uncharged call it names the bucket of the log."""
        key = self._ring.current()
        signer = name_signer(key.kid, self._algorithm)
        place, origin = (None, None) if bucket is None else (bucket.place(self._origin), self._origin)
        own = list_own(sale, now=now, log=place, id=id)
        template = make_template(signer, list_shared(sale, self._service), origin)
        core = template.write(own)
        receipt = StoredReceipt(id, sale.owner, core, signer, key.sign(signing_input(signer, core)), int(now * 1000))
        return NewReceipt(receipt, template.form, template.pack(receipt, own))


@dataclass(frozen=True, slots=True)
class IssueReceipt:
    """Signs and stores the receipt of a sale. The same sale again gets the same receipt. `now` is in epoch seconds."""

    issuer: ReceiptIssuer
    sale: Sale
    now: float

    @property
    def needs(self) -> str:
        """The id under which the receipt may already be stored."""
        return receipt_id(self.sale.call_id)

    def on(self, state: ReceiptState) -> StoredReceipt:
        """Return the stored receipt if it fits the sale, or a new one. After a crash the call may have another answer
        than the one in the stored receipt; then the new receipt gets an id of its own.
        """
        before = state.receipts.get(self.needs)
        if before is not None and before.fits(self.sale):
            return before
        id = self.needs if before is None else receipt_id(new_call_id())
        free = self._describe_uncharged()
        bucket = None if free is None else self.issuer.buckets.name(free, state.find_hour(self.now))
        new = self.issuer.sign(self.sale, self.now, bucket, id)
        if free is not None and bucket is not None:
            state.book(bucket, free._replace(receipt_sha256=hashlib.sha256(new.receipt.core).hexdigest()))
        state.add(new)
        return new.receipt

    def _describe_uncharged(self) -> UnchargedCall | None:
        """Return the call as the log lists it, or None if it was charged."""
        sale = self.sale
        if sale.reason is None:
            return None
        return UnchargedCall(self.now, sale.owner, sale.reason, sale.endpoint, sale.cost)


@dataclass(frozen=True, slots=True)
class RecordUncharged:
    """Books an uncharged call for which no receipt is signed now."""

    buckets: BucketNamer
    call: UnchargedCall

    def on(self, state: ReceiptState) -> None:
        """Book the call."""
        state.book(self.buckets.name(self.call, state.find_hour(self.call.at)), self.call)
