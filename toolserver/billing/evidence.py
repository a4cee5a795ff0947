"""Everything that can be shown afterwards: receipts signed, stored, found and verified, and the log of uncharged calls.

A receipt and its leaf in the log are written in one transaction, within which the receipt is signed: only there is it
certain which place in the log it can name. Nobody is given a receipt that is not on the disk.
"""

import hashlib
import hmac
import logging
import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from toolserver.access import token_hash
from toolserver.billing import keys, nocharge
from toolserver.billing.keys import Key, KeyFileBroken, KeyRing
from toolserver.billing.ledger import NoCharge
from toolserver.billing.nocharge import Event, NoChargeLog
from toolserver.billing.receipts import Sale, Signed, core_of, encode, receipt_id, signing_input
from toolserver.billing.stored import Stored, found, one, store
from toolserver.billing.verify import Known, Parsed, Unreadable, parsed, verdict
from toolserver.clock import Clock
from toolserver.storage.durable import Durable

log = logging.getLogger(__name__)

LOG_PATH = "/api/payment/no-charge-log"
TRUSTED = "keys/trusted"  # below the data directory: key sets of sister services, one file each


class Draft(NamedTuple):
    """A receipt to be written."""

    sale: Sale
    now: float


class Evidence:
    """The receipts and the log of one service. `file` is the ledger's, so that both are kept together."""

    def __init__(self, file: Durable, data_dir: Path, *, clock: Clock, base_url: str, service: str) -> None:
        self._file, self._clock, self._service, self._folder = file, clock, service, data_dir
        self._ring = KeyRing(data_dir / keys.RECEIPT_KEYS, clock)
        url = urlsplit(base_url)
        origin = f"{url.netloc}{url.path.rstrip('/')}{LOG_PATH}"
        self.log = NoChargeLog(file, KeyRing(data_dir / keys.LOG_KEYS, clock), origin=origin, clock=clock)
        self._trusted = trusted(data_dir / TRUSTED)

    async def sign(self, sale: Sale) -> tuple[str, str]:
        """The receipt of a settled call, stored. The same call again gives the same receipt."""
        stored = await self._file.together(self.write, Draft(sale, self._clock.time()))
        return Signed(stored.id, stored.jws)

    async def unheard(self, reason: NoCharge, owner: str, endpoint: str, credits: int) -> None:
        """A call was not charged and nobody takes a receipt. Once a minute for each caller and endpoint."""
        if self.log.first_this_minute(reason, owner, endpoint):
            await self.log.record(Event(self._clock.time(), reason, endpoint, credits))

    def write(self, db: sqlite3.Connection, drafts: Sequence[Draft]) -> list[Stored | Exception]:
        """Sign and store receipts and what the log gets of them, within the writer's transaction.

        Signing lets go of the interpreter: done by the event loop, it would wait for it again after every call.
        """
        known = found(db, [receipt_id(draft.sale.call_id) for draft in drafts])
        size, key = nocharge.size_of(db), self._ring.current()
        told: list[Stored | Exception] = []
        new: list[Stored] = []
        events: list[Event] = []
        for draft in drafts:
            before = known.get(receipt_id(draft.sale.call_id))
            if before is not None and before.fits(draft.sale):
                told.append(before)
                continue
            receipt = self._signed(draft, key, size + len(events), again=before is not None)
            if draft.sale.reason is not None:
                events.append(_event(draft, receipt))
            known[receipt.id] = receipt
            new.append(receipt)
            told.append(receipt)
        store(db, new)
        if events:
            nocharge.append(db, events, size)
        return told

    def _signed(self, draft: Draft, key: Key, seq: int, *, again: bool) -> Stored:
        """A new receipt. If a process died after signing one, the answer is another one now, and so is the id."""
        sale = draft.sale
        id = f"rcpt_{secrets.token_hex(16)}" if again else receipt_id(sale.call_id)
        place = None if sale.reason is None else {"origin": self.log.origin, "index": seq}
        core = encode(core_of(sale, service=self._service, now=draft.now, log=place, id=id))
        return Stored(id, sale.owner, core, key.kid, key.sign(signing_input(key.kid, core)), int(draft.now * 1000))

    async def receipt(self, id: str, token: str) -> dict[str, Any] | None:
        """A receipt for the bearer that paid, with the proof that the log has it if it should; None for anyone else."""
        stored = await self._file.read(lambda db: one(db, id))
        if stored is None or not hmac.compare_digest(stored.owner, token_hash(token).hex()):
            return None
        core = stored.shown(self._ring.find(stored.key))
        told = {"receipt": core, "jws": stored.jws}
        place = core["log"]
        return told if place is None else {**told, "log_proof": await self._log_proof(place["index"])}

    async def _log_proof(self, index: int) -> dict[str, Any] | None:
        """How to see that the signed log has a leaf; None until the log is signed anew, a minute at most."""
        signed = await self.log.checkpoint()
        path = await self.log.inclusion(index, signed.size)
        leaf = await self.log.place(index)
        if path is None or leaf is None:
            return None
        return {"leaf": leaf, "size": signed.size, "path": [step.hex() for step in path], "checkpoint": signed.note}

    async def verify(self, given: str | Mapping[str, Any], body_sha256: str | None = None) -> dict[str, Any]:
        """The verdict on a receipt of this service or of one it trusts."""
        try:
            known = await self._known(parsed(given))
        except Unreadable:
            known = Known()
        return verdict(given, self._find, body_sha256=body_sha256, known=lambda _: known)

    async def verify_stored(self, id: str) -> dict[str, Any] | None:
        """The same for one of our own by its id. What it says is for its owner alone."""
        stored = await self._file.read(lambda db: one(db, id))
        return None if stored is None else {**await self.verify(stored.jws), "core": None}

    async def no_charge(self, day: date) -> dict[str, Any]:
        """What was not charged on a day."""
        return await self.log.day(day)

    async def no_charge_days(self) -> list[tuple[str, int]]:
        """The days on which anything was not charged, and how many calls."""
        return await self.log.days()

    def key_set(self) -> dict[str, Any]:
        """The public keys of receipts, and the log's own."""
        return {"keys": self._ring.published(), "log": {"origin": self.log.origin, "verifier": self.log.verifier}}

    def key_in_use(self) -> dict[str, Any]:
        """The one that signs now."""
        return self._ring.current().jwk()

    def _find(self, kid: str) -> Key | None:
        return self._ring.find(kid) or self._trusted.get(kid)

    async def _known(self, receipt: Parsed) -> Known:
        """What our own books say of a receipt that one of our own keys signed."""
        if self._ring.find(receipt.kid) is None:
            return Known()
        stored = await self._file.read(lambda db: one(db, receipt.core["id"]))
        at = stored.at / 1000 if stored is not None and stored.core == receipt.payload else None
        if (place := receipt.core["log"]) is None:
            return Known(None, at)
        leaf = await self.log.place(place["index"])
        return Known(leaf is not None and leaf["receipt_sha256"] == hashlib.sha256(receipt.payload).hexdigest(), at)


def _event(draft: Draft, receipt: Stored) -> Event:
    digest = hashlib.sha256(receipt.core).hexdigest()
    return Event(draft.now, str(draft.sale.reason), draft.sale.endpoint, draft.sale.cost, digest)


def trusted(folder: Path) -> dict[str, Key]:
    """Keys of sister services, put there by the operator. Raises KeyFileBroken."""
    found: dict[str, Key] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            found |= {key.kid: key for key in keys.read(path)}
        except OSError as error:
            raise KeyFileBroken(f"{path} cannot be read: {error.strerror}") from None
    return found
