"""Signs, stores, finds and verifies the receipts of one service, together with its log of uncharged calls.

A receipt is on disk before anybody gets it.
"""

import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from toolserver.clock import Clock
from toolserver.core.caller import token_hash
from toolserver.core.models import iso_ms
from toolserver.money.ledger.protocol import NoCharge, StatementPage, StatementQuery, Who
from toolserver.money.ledger.state import FOREIGN
from toolserver.money.ledger.statements import (
    AccountPayment,
    LedgerEntry,
    StatementLine,
    StatementLines,
    StatementRange,
)
from toolserver.money.receipts import keys
from toolserver.money.receipts.issue import IssueReceipt, ReceiptIssuer
from toolserver.money.receipts.keys import Key, KeyFileBroken, KeyRing, find_key_file
from toolserver.money.receipts.log import UnchargedCall, read_hour
from toolserver.money.receipts.sign import Algorithm, Sale, SignedReceipt, key_id, receipt_id
from toolserver.money.receipts.sql_store import SqlReceiptStore
from toolserver.money.receipts.transparency_log import TransparencyLog, name_log
from toolserver.money.receipts.verify import IssuerRecord, Parsed, Unreadable, parse_receipt, verdict
from toolserver.sql.errors import RowsRewritten
from toolserver.sql.high_water import HighWater

LOG_PATH = "/api/payment/no-charge-log"
TRUSTED = "keys/trusted"  # below the data directory: key sets of sister services, one file each


@dataclass(frozen=True, slots=True)
class Issuer:
    """Who signs: the public URL of the service, its host name on receipts, and the algorithm of its signatures."""

    base_url: str
    host: str
    algorithm: Algorithm = "EdDSA"


class ReceiptService:
    """The receipts and the log of one service. Its keys are below `data_dir`, or in `keys_dir` if that is given."""

    def __init__(
        self,
        store: SqlReceiptStore,
        data_dir: Path,
        *,
        clock: Clock,
        issuer: Issuer,
        find_account: Callable[[str], Awaitable[str | None]] | None = None,
        keys_dir: Path | None = None,
        marks: HighWater | None = None,
    ) -> None:
        """Read the keys and the marks. `find_account` returns the SHA-256 (hex) of the token that names the account
        which a given token opens. `marks` are by default those of the data directory.

        Raises KeyFileBroken, MarksBroken, StorageFailed.
        """
        self._store, self._clock, self._find_account = store, clock, find_account
        self._ring = KeyRing(find_key_file(data_dir, keys.RECEIPT_KEYS, keys_dir), clock)
        url = urlsplit(issuer.base_url)
        log_keys = KeyRing(find_key_file(data_dir, keys.LOG_KEYS, keys_dir), clock)
        marks = marks or HighWater(data_dir)
        self.rings: dict[str, KeyRing] = {"receipts": self._ring, "log": log_keys}
        origin = name_log(f"{url.netloc}{url.path.rstrip('/')}{LOG_PATH}", marks)
        self.log = TransparencyLog(store, log_keys, origin=origin, clock=clock, marks=marks)
        self.issuer = ReceiptIssuer(
            self._ring, service=issuer.host, origin=origin, buckets=self.log.buckets, algorithm=issuer.algorithm
        )
        self._trusted = read_trusted_keys(data_dir / TRUSTED)

    async def sign(self, sale: Sale) -> tuple[str, str]:
        """Return the receipt of a settled call, which is stored first. The same call again returns the same receipt."""
        stored = await self._store.issue(IssueReceipt(self.issuer, sale, self._clock.time()))
        return SignedReceipt(stored.id, stored.jws)

    async def unheard(self, reason: NoCharge, owner: str, endpoint: str, credits: int) -> None:
        """Record an uncharged call whose caller is gone, at most once a minute for each reason, caller and endpoint."""
        if self.log.first_this_minute(reason, owner, endpoint):
            await self.record_released(reason, owner, endpoint, credits)

    async def record_released(self, reason: NoCharge, owner: str, endpoint: str, credits: int) -> None:
        """Record a webhook that was not charged. Each one is recorded: its slots limit how many an owner has."""
        await self.log.record(UnchargedCall(self._clock.time(), owner, reason, endpoint, credits))

    async def list_known(self, ids: Sequence[str]) -> set[str]:
        """Return those of the ids under which a receipt is stored."""
        return await self._store.list_known(ids)

    async def receipt(self, id: str, token: str) -> dict[str, Any] | None:
        """Return a receipt to the bearer of the token that paid or of the one that replaced it, and None to anyone
        else.

        If the receipt names a place in the log, `log_proof` proves that the log has it. While
        there is no proof, `log_proof` is null and `log_due` says when there will be one.
        Raises RowsRewritten if the stored receipt is not the one that was signed.
        """
        stored = await self._store.receipt(id)
        if stored is None or not await self._is_owner(stored.owner, token):
            return None
        key = self._ring.find(key_id(stored.signer))
        if key is None or not stored.is_signed_by(key):
            raise RowsRewritten(f"the stored receipt {id} is not the one that was signed, so it is not signed again")
        core = stored.show(key if key.signs(self._clock.time()) else None)
        shown = {"receipt": core, "jws": stored.jws}
        return shown if core["log"] is None else {**shown, **await self._log_proof(core["log"], stored.core)}

    async def _is_owner(self, owner: str, token: str) -> bool:
        if hmac.compare_digest(owner, token_hash(token).hex()):
            return True
        account = None if self._find_account is None else await self._find_account(token)
        return account is not None and hmac.compare_digest(owner, account)

    async def _log_proof(self, place: Mapping[str, Any], core: bytes) -> dict[str, Any]:
        if "index" in place:
            return {"log_proof": await self.log.prove_leaf(place["index"])}
        hour = _hour_of(place)
        proof = await self.log.prove_bucket(hour, bytes.fromhex(place["key"]), hashlib.sha256(core).digest())
        if proof is not None:
            return {"log_proof": proof}
        seconds = await self.log.due_in(hour)
        return {"log_proof": None, "log_due": None if seconds is None else iso_ms(self._clock.time() + seconds)}

    async def verify(self, document: str | Mapping[str, Any], body_sha256: str | None = None) -> dict[str, Any]:
        """Return the verdict on a receipt of this service or of one it trusts."""
        try:
            record = await self._recall(parse_receipt(document))
        except Unreadable:
            record = IssuerRecord()
        return verdict(document, self._find, body_sha256=body_sha256, recall=lambda _: record)

    async def verify_stored(self, id: str) -> dict[str, Any] | None:
        """Return the verdict on one of our receipts by its id, without the content, which only its owner may see."""
        stored = await self._store.receipt(id)
        return None if stored is None else {**await self.verify(stored.jws), "core": None}

    async def find_month(self, id: str) -> str | None:
        """Return the month (such as 2027-01) whose archive has a receipt that was removed; None if none has it."""
        return await self._store.find_month(id)

    async def no_charge(self, day: date) -> dict[str, Any]:
        """Return the public account of the uncharged calls of a day."""
        return await self.log.day(day)

    async def no_charge_days(self) -> list[tuple[str, int]]:
        """Return the days with uncharged calls, the newest first, and the number of calls on each."""
        return await self.log.days()

    def key_set(self) -> dict[str, Any]:
        """Return the public keys of receipts, and the log's name and key."""
        return {"keys": self._ring.published(), "log": {"origin": self.log.origin, "verifier": self.log.verifier}}

    def key_in_use(self) -> dict[str, Any]:
        """Return the public key that signs now."""
        return self._ring.current().jwk()

    def _find(self, kid: str) -> Key | None:
        return self._ring.find(kid) or self._trusted.get(kid)

    async def _recall(self, receipt: Parsed) -> IssuerRecord:
        """Return what our store knows about a receipt, if one of our own keys signed it."""
        if self._ring.find(receipt.kid) is None:
            return IssuerRecord()
        stored = await self._store.receipt(receipt.core["id"])
        at = stored.at / 1000 if stored is not None and stored.core == receipt.payload else None
        if (place := receipt.core["log"]) is None:
            return IssuerRecord(None, at)
        return IssuerRecord(await self._is_in_log(place, receipt.payload), at)

    async def _is_in_log(self, place: Mapping[str, Any], core: bytes) -> bool | None:
        digest = hashlib.sha256(core)
        if "index" not in place:
            return await self.log.has_receipt(_hour_of(place), bytes.fromhex(place["key"]), digest.digest())
        leaf = await self.log.leaf(place["index"])
        return leaf is not None and leaf.get("receipt_sha256") == digest.hexdigest()


def _hour_of(place: Mapping[str, Any]) -> int:
    hour = read_hour(place["hour"])
    assert hour is not None, "a receipt that was verified names an hour"
    return hour


def read_trusted_keys(folder: Path) -> dict[str, Key]:
    """Return the keys of sister services that the operator put into a folder. Raises KeyFileBroken."""
    trusted: dict[str, Key] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            trusted |= {key.kid: key for key in keys.read_keys(path)}
        except OSError as error:
            raise KeyFileBroken(f"{path} cannot be read: {error.strerror}") from None
    return trusted


_TRANSACTION = re.compile(r"(?:(?:held|released):)?eip155:\d+:(0x[0-9a-f]{64})")


class StatementLedger(Protocol):
    """A ledger that returns pages of an account's movements."""

    async def statement(self, who: Who, query: StatementQuery) -> StatementPage:
        """Return a page of the movements of a token's account. Raises invalid_token."""
        ...


ListPayments = Callable[[str, StatementQuery], Awaitable[list[AccountPayment]]]
"""Returns the latest payments of an account on the chain, given by its token's SHA-256 (hex), the latest first."""


class AccountStatements:
    """Returns statements of a ledger. For this service's own calls they name only receipts stored in `receipts`, and
    they have what `list_payments` returns.
    """

    def __init__(
        self, ledger: StatementLedger, receipts: ReceiptService | None, list_payments: ListPayments | None = None
    ) -> None:
        self._ledger, self._receipts, self._list_payments = ledger, receipts, list_payments

    async def read(self, token: str, wanted: StatementRange) -> StatementLines:
        """Return a page of a token's statement, also for a revoked token. Raises invalid_token."""
        query = _query_of(wanted)
        page = await self._ledger.statement(token, query)
        receipt_ids = await self._find_receipts(page.entries)
        lines = [_show_line(entry, receipt_ids) for entry in page.entries]
        cursor = None if page.next_before is None else f"{page.next_before:016x}"
        if self._list_payments is None or wanted.cursor is not None:
            return StatementLines(page.credits, lines, cursor)
        payments = await self._list_payments(token_hash(token).hex(), query)
        return StatementLines(page.credits, lines, cursor, payments)

    async def _find_receipts(self, entries: list[LedgerEntry]) -> set[str]:
        """Return the ids of the receipts that exist. Those of a sister service's calls are stored there, so they are
        assumed to exist.
        """
        ids = {entry.call_id: _receipt_of(entry.call_id) for entry in entries if entry.call_id is not None}
        own = [id for call_id, id in ids.items() if FOREIGN not in call_id]
        foreign = {id for call_id, id in ids.items() if FOREIGN in call_id}
        return foreign | (await self._receipts.list_known(own) if self._receipts else set())


def _query_of(wanted: StatementRange) -> StatementQuery:
    bounds = {
        "since": None if wanted.since is None else int(wanted.since.timestamp() * 1000),
        "until": None if wanted.until is None else int(wanted.until.timestamp() * 1000),
        "before": None if wanted.cursor is None else int(wanted.cursor, 16),
    }
    return StatementQuery(**{name: value for name, value in bounds.items() if value is not None}, limit=wanted.limit)


def _show_line(entry: LedgerEntry, receipt_ids: set[str]) -> StatementLine:
    receipt = None if entry.call_id is None else _receipt_of(entry.call_id)
    transaction = _TRANSACTION.match(entry.cause or "")
    return StatementLine(
        datetime.fromtimestamp(entry.at / 1000, UTC),
        entry.kind,
        entry.credits,
        None if entry.call_id is None else entry.call_id.rpartition(FOREIGN)[2],
        entry.endpoint,
        entry.state,
        entry.reason,
        receipt if receipt in receipt_ids else None,
        None if transaction is None else transaction[1],
        entry.allowance,
    )


def _receipt_of(call_id: str) -> str:
    return receipt_id(call_id.rpartition(FOREIGN)[2])
