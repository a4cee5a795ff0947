"""Writes the cores of new receipts from templates: what a form has in common is serialised once, not for each call.

`sign.core_of` says what a core consists of; a template writes the same bytes as canonical JSON of that, at a third of
the time.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from toolserver.money.receipts.packing import PackedReceipt, ReceiptForm, number_form, pack_facts, write_row
from toolserver.money.receipts.sign import SHARED, OwnMembers, encode
from toolserver.money.receipts.stored_receipt import StoredReceipt

_encode = msgspec.json.Encoder(order="sorted").encode


class ReceiptTemplate(NamedTuple):
    """The form of receipts, its number, and the bytes of their cores with `%b` for each of `OwnMembers`, in order."""

    form: ReceiptForm
    number: int
    text: bytes

    def write(self, own: OwnMembers) -> bytes:
        """Return the core of a call, in canonical JSON."""
        return self.text % tuple(map(_encode, own))

    def pack(self, receipt: StoredReceipt, own: OwnMembers) -> PackedReceipt:
        """Return the row of a receipt whose core was written from these members."""
        return write_row(receipt, self.number, pack_facts(own))


@lru_cache(maxsize=1024)
def make_template(signer: str, shared: tuple[Any, ...], origin: str | None) -> ReceiptTemplate:
    """Return the template of the receipts of a signer with these values of `SHARED`. `origin` is the name of the log
    in which they name a bucket, or None if they name none.
    """
    values = dict.fromkeys(OwnMembers._fields, b"%b")
    values |= {name: encode(value).replace(b"%", b"%%") for name, value in zip(SHARED, shared, strict=True)}
    members = [b"%b:%b" % (encode(name), values[name]) for name in sorted(values)]
    form = ReceiptForm(signer, shared, origin)
    return ReceiptTemplate(form, number_form(form), b"{%b}" % b",".join(members))
