"""Defines a receipt as it is stored: the signed core and whose receipt it is."""

from typing import Any, NamedTuple

import msgspec

from toolserver.money.receipts.keys import Key
from toolserver.money.receipts.sign import Sale, as_object, compact, signing_input


class StoredReceipt(NamedTuple):
    """A receipt as it is stored: `core`, the JWS signature over it, and the name of its signer. `owner` is the SHA-256
    (hex) of the token that paid, `at` is in epoch milliseconds.
    """

    id: str
    owner: str
    core: bytes
    signer: str
    signature: bytes
    at: int

    @property
    def jws(self) -> str:
        """The receipt as it is sent in a header."""
        return compact(self.signer, self.core, self.signature)

    def show(self, key: Key | None) -> dict[str, Any]:
        """Return the core as an object, with a signature over its own bytes if `key` still has its private half."""
        core = msgspec.json.decode(self.core)
        return core if key is None or key.seed is None else as_object(core, key.kid, key.sign(self.core))

    def is_signed_by(self, key: Key) -> bool:
        """Return True if the stored signature is the key's, over the stored core."""
        return key.verifies(self.signature, signing_input(self.signer, self.core))

    def fits(self, sale: Sale) -> bool:
        """Return True if it describes this sale, not another answer to the same call or a charge that was reversed
        later.
        """
        about = msgspec.json.decode(self.core)
        charged = 0 if sale.pending else sale.charged
        body = sale.find_body(self.id)
        digest = body.sha256 if body else None
        return bool(about["response_sha256"] == digest and about["credits_charged"] == charged)
