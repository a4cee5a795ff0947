"""Issues receipts by pure rules, as values that a store applies in one transaction, and packs them for the database.

A receipt and, if the call was not charged, its booked call for the log are stored in the same
transaction. The receipt is signed within it too, because only there is it certain which
bucket of the log it can name.

What many calls have in common is written and stored once, and of each call only what is its
own. A stored receipt has to come back byte by byte, because its signature covers the bytes. So
its core is split by names. What the calls of a tool at one price have in common is a *form*,
which is stored once under a number that is computed from its text. The rest are *facts* of one
call: hashes as bytes, times as numbers, and nothing that follows from the other columns (the
id, the owner, and the time of issue). A core with other members than ours is stored whole.
`sign.core_of` says what a core consists of; a template writes the same bytes as canonical JSON
of that, at a third of the time.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from toolserver.core.caller import new_call_id, pack_call_name, unpack_call_name
from toolserver.core.models import iso, iso_of_ms
from toolserver.money.receipts.keys import KeyRing
from toolserver.money.receipts.log import (
    NOT_YET,
    BookedCall,
    BucketNamer,
    LogBucket,
    UnchargedCall,
    hour_at,
    read_hour,
    show_hour,
)
from toolserver.money.receipts.sign import (
    SHARED,
    Algorithm,
    Core,
    OwnMembers,
    Sale,
    StoredReceipt,
    encode,
    list_own,
    list_shared,
    name_signer,
    receipt_id,
    signing_input,
)

_PREFIX = "rcpt_"
_HASH = re.compile("[0-9a-f]{64}")
_SECOND = "%Y-%m-%dT%H:%M:%SZ"
_MEMBERS = frozenset((*SHARED, *OwnMembers._fields))
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(list[Any]).decode
_decode = msgspec.json.Decoder().decode
_write_json = msgspec.json.Encoder(order="sorted").encode


class ReceiptForm(NamedTuple):
    """What many receipts have in common: their signer, members of their cores, and the name of their log."""

    signer: str
    shared: tuple[Any, ...] | None
    origin: str | None

    @property
    def terms(self) -> str:
        """The form as it is stored: a JSON array."""
        return encode(self).decode()


class PackedReceipt(NamedTuple):
    """A receipt as it is stored, in the order of the columns. `form` is the number of its form."""

    at: int
    form: int
    id: bytes
    owner: bytes
    facts: bytes
    signature: bytes


def pack_id(id: str) -> bytes:
    """Return the id of a receipt as it is stored: the name of its call."""
    return pack_call_name(id.removeprefix(_PREFIX))


def unpack_id(packed: bytes) -> str:
    """Return the id that was packed."""
    return _PREFIX + unpack_call_name(packed)


@lru_cache(maxsize=1024)
def number_form(form: ReceiptForm) -> int:
    """Return the number of a form, which follows from its terms: instances that meet a new form agree on it."""
    return int.from_bytes(hashlib.sha256(form.terms.encode()).digest()[:8]) >> 1


class NewReceipt(NamedTuple):
    """A receipt that is to be stored, with the form and the row of which it consists."""

    receipt: StoredReceipt
    form: ReceiptForm
    row: PackedReceipt


def pack_receipt(receipt: StoredReceipt) -> NewReceipt:
    """Return a receipt with its form and its row."""
    form, facts = _split(receipt)
    return NewReceipt(receipt, form, write_row(receipt, number_form(form), facts))


def write_row(receipt: StoredReceipt, form: int, facts: bytes) -> PackedReceipt:
    """Return the row of a receipt from the number of its form and its packed facts."""
    return PackedReceipt(receipt.at, form, pack_id(receipt.id), bytes.fromhex(receipt.owner), facts, receipt.signature)


def unpack_receipt(terms: str, row: PackedReceipt) -> StoredReceipt:
    """Return the receipt of a row, with every byte that was signed. `terms` are those of its form."""
    form, id, owner = _read_form(terms), unpack_id(bytes(row.id)), bytes(row.owner).hex()
    facts = bytes(row.facts)
    core = facts if form.shared is None else encode(_join(form, id, owner, row.at, _unpack(facts)))
    return StoredReceipt(id, owner, core, form.signer, bytes(row.signature), row.at)


@lru_cache(maxsize=1024)
def _read_form(terms: str) -> ReceiptForm:
    signer, shared, origin = _decode(terms)
    return ReceiptForm(signer, None if shared is None else tuple(shared), origin)


def _split(receipt: StoredReceipt) -> tuple[ReceiptForm, bytes]:
    """Return the form and the packed facts of a core, or the whole core as its facts if it would not come back."""
    core = _decode(receipt.core)
    if core.keys() == _MEMBERS:
        log = core["log"] or {}
        form = ReceiptForm(receipt.signer, tuple([core[name] for name in SHARED]), log.get("origin"))
        facts = pack_facts(OwnMembers(*[core[name] for name in OwnMembers._fields]))
        if encode(_join(form, receipt.id, receipt.owner, receipt.at, _unpack(facts))) == receipt.core:
            return form, facts
    return ReceiptForm(receipt.signer, None, None), receipt.core


def pack_facts(own: OwnMembers) -> bytes:
    """Return what is stored of the members of the call's own: what does not follow from the columns of the row."""
    return _pack(
        (
            own.balance_after,
            _pack_second(own.captured_at),
            _pack_hash(own.request_hash),
            _pack_hash(own.response_sha256),
            own.response_bytes,
            own.agent_nonce,
            _pack_bucket(own.log),
            None if receipt_id(own.call_id) == own.id else own.call_id,
        )
    )


def _join(form: ReceiptForm, id: str, owner: str, at: int, facts: Sequence[Any]) -> Core:
    """Return the core that was split."""
    balance, captured, request, response, size, nonce, bucket, call_id = facts
    return {
        **dict(zip(SHARED, form.shared or (), strict=True)),
        "id": id,
        "call_id": "call_" + id.removeprefix(_PREFIX) if call_id is None else call_id,
        "token_fp": owner[:16],
        "issued_at": iso_of_ms(at),
        "balance_after": balance,
        "captured_at": _show_second(captured) if isinstance(captured, int) else captured,
        "request_hash": request.hex() if isinstance(request, bytes) else request,
        "response_sha256": response.hex() if isinstance(response, bytes) else response,
        "response_bytes": size,
        "agent_nonce": nonce,
        "log": None if bucket is None else _show_bucket(form.origin, *bucket),
    }


@lru_cache(maxsize=256)
def _pack_hash(digits: str | None) -> bytes | str | None:
    return bytes.fromhex(digits) if digits is not None and _HASH.fullmatch(digits) else digits


@lru_cache(maxsize=256)
def _pack_second(text: str | None) -> int | str | None:
    """Return a time in epoch seconds. Cached, because many calls share one answer."""
    try:
        return None if text is None else int(datetime.strptime(text, _SECOND).replace(tzinfo=UTC).timestamp())
    except ValueError:
        return text


@lru_cache(maxsize=256)
def _show_second(at: int) -> str:
    return iso(datetime.fromtimestamp(at, UTC))


def _pack_bucket(place: Any) -> tuple[int | None, bytes, bytes] | None:
    """Return the bucket that a place in the log names, or None if it names none: a leaf, as receipts of old do."""
    if place is None or "hour" not in place:
        return None
    return read_hour(place["hour"]), bytes.fromhex(place["key"]), bytes.fromhex(place["salt"])


def _show_bucket(origin: str | None, hour: int, key: bytes, salt: bytes) -> Core:
    return {"origin": origin, "hour": show_hour(hour), "key": key.hex(), "salt": salt.hex()}


class ReceiptTemplate(NamedTuple):
    """The form of receipts, its number, and the bytes of their cores with `%b` for each of `OwnMembers`, in order."""

    form: ReceiptForm
    number: int
    text: bytes

    def write(self, own: OwnMembers) -> bytes:
        """Return the core of a call, in canonical JSON."""
        return self.text % tuple(map(_write_json, own))

    def pack(self, receipt: StoredReceipt, own: OwnMembers) -> PackedReceipt:
        """Return the row of a receipt whose core was written from these members."""
        return write_row(receipt, self.number, pack_facts(own))


@lru_cache(maxsize=1024)
def make_template(signer: str, shared: tuple[Any, ...], origin: str | None) -> ReceiptTemplate:
    """Return the template of the receipts of a signer with these values of `SHARED`. `origin`
    is the name of the log in which they name a bucket, or None if they name none.
    """
    values = dict.fromkeys(OwnMembers._fields, b"%b")
    values |= {name: encode(value).replace(b"%", b"%%") for name, value in zip(SHARED, shared, strict=True)}
    members = [b"%b:%b" % (encode(name), values[name]) for name in sorted(values)]
    form = ReceiptForm(signer, shared, origin)
    return ReceiptTemplate(form, number_form(form), b"{%b}" % b",".join(members))


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
        """Return the hour in which a call at `at` (epoch seconds) is booked: a later one if
        its own is in the log already.
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
        """Return the stored receipt if it fits the sale, or a new one. After a crash the call
        may have another answer than the one in the stored receipt; then the new receipt gets
        an id of its own.
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
