"""Verifies receipts. Nothing is fetched: the keys come from a list that the verifier has."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from toolserver.money.receipts.keys import Key, unb64
from toolserver.money.receipts.log import read_hour
from toolserver.money.receipts.sign import ALGORITHMS, SAFE, TYPE, Core, encode

CHECKS = ("format", "key_known", "signature", "key_time", "body", "in_log")

DEEPEST = 500  # levels of JSON: 500 times more than a receipt has, and fewer than any Python gives up at
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)  # a string of JSON, which may lack its end

_Hash = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
_Count = Annotated[int, msgspec.Meta(ge=0)]


class _Place(msgspec.Struct, frozen=True):
    """The place of a call in the log: a bucket, or a leaf in receipts from before there were buckets."""

    origin: str
    index: _Count | msgspec.UnsetType = msgspec.UNSET
    hour: str | msgspec.UnsetType = msgspec.UNSET
    key: _Hash | msgspec.UnsetType = msgspec.UNSET

    @property
    def is_named(self) -> bool:
        if self.index is not msgspec.UNSET:
            return True
        return self.key is not msgspec.UNSET and isinstance(self.hour, str) and read_hour(self.hour) is not None


class _Core(msgspec.Struct, frozen=True):
    """The fields that a core must have. It may have more, because fields are added but never changed."""

    v: Literal[1]
    id: Annotated[str, msgspec.Meta(pattern=r"\Arcpt_[0-9a-f]{32}\Z")]
    service: str
    kind: Literal["call", "webhook", "purchase", "no_charge"]
    call_id: str
    token_fp: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{16}\Z")]
    endpoint: str
    method: str
    request_hash: _Hash
    status: int
    response_sha256: _Hash | None
    response_bytes: _Count
    cost: _Count
    credits_charged: _Count
    balance_after: int | None
    settlement: Literal["charged", "released", "pending"]
    no_charge_reason: str | None
    captured_at: str | None
    freshness_sla_s: _Count | None
    agent_nonce: str | None
    log: _Place | None
    issued_at: Annotated[str, msgspec.Meta(pattern=r"\A[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}\.[0-9]{3}Z\Z")]


class Unreadable(ValueError):
    """The text or object does not have the form of a receipt."""


class Parsed(NamedTuple):
    """A parsed receipt: `signed` is the bytes that `signature` covers, `payload` those of the core."""

    core: Core
    payload: bytes
    kid: str
    signed: bytes
    signature: bytes

    @property
    def issued_at(self) -> float:
        return datetime.fromisoformat(self.core["issued_at"]).timestamp()


@dataclass(frozen=True, slots=True)
class IssuerRecord:
    """The issuer's own knowledge of a receipt: whether the log has it, and when it was recorded (epoch seconds)."""

    in_log: bool | None = None
    recorded_at: float | None = None


NO_RECORD = IssuerRecord()


def parse_receipt(receipt: str | Mapping[str, Any]) -> Parsed:
    """Parse a receipt in either form, JWS or object, without a check of its signature. Raises Unreadable."""
    try:
        return _from_jws(receipt) if isinstance(receipt, str) else _from_object(receipt)
    except Unreadable:
        raise
    except (ValueError, TypeError, RecursionError) as error:
        raise Unreadable(_said(error)) from None


def _from_jws(text: str) -> Parsed:
    parts = text.strip().split(".")
    if len(parts) != 3:
        raise Unreadable("a JWS must have three parts")
    kid = _kid(_decode(unb64(parts[0])))
    payload, signature = unb64(parts[1]), unb64(parts[2])
    core = _checked(_decode(payload))
    if encode(core) != payload:
        raise Unreadable("the payload is not in canonical form")
    return Parsed(core, payload, kid, f"{parts[0]}.{parts[1]}".encode(), signature)


def _decode(text: bytes) -> Any:
    """Decode JSON of limited depth: how deep the decoder itself goes depends on the version of Python."""
    steps = (1 if bracket in b"[{" else -1 for bracket in re.findall(rb"[][{}]", _TEXT.sub(b"", text)))
    if max(accumulate(steps), default=0) > DEEPEST:
        raise Unreadable("nested too deeply")
    return msgspec.json.decode(text)


def _kid(head: Any) -> str:
    """Return the key's id from a header. It must have our members and no others: neither a key nor a key's URL."""
    if not isinstance(head, dict) or head.keys() != {"alg", "kid", "typ"}:
        raise Unreadable("the header must have the members alg, kid and typ, and no others")
    if head["alg"] not in ALGORITHMS or head["typ"] != TYPE or not isinstance(head["kid"], str):
        raise Unreadable(f"the header is not that of a receipt: alg {' or '.join(ALGORITHMS)}, typ {TYPE}")
    return head["kid"]


def _from_object(members: Mapping[str, Any]) -> Parsed:
    core = {name: value for name, value in members.items() if name not in ("signature", "key_id")}
    kid, signature = members.get("key_id"), members.get("signature")
    if not isinstance(kid, str) or not isinstance(signature, str):
        raise Unreadable("signature and key_id must be strings")
    payload = encode(_checked(core))
    return Parsed(core, payload, kid, payload, unb64(signature))


def _checked(core: Any) -> Core:
    if not isinstance(core, dict) or not all(_plain(name, value) for name, value in core.items()):
        raise Unreadable("a receipt may hold only strings, safe integers, booleans, null, and the object `log`")
    read = msgspec.convert(core, _Core)
    datetime.fromisoformat(read.issued_at)
    if read.log is not None and not read.log.is_named:
        raise Unreadable("`log` names neither a bucket nor a leaf")
    return core


def _plain(name: str, value: Any) -> bool:
    if name == "log" and isinstance(value, dict):
        return all(_plain("", inner) for inner in value.values())
    return value is None or isinstance(value, str | bool) or (type(value) is int and abs(value) <= SAFE)


def verdict(
    document: str | Mapping[str, Any],
    find: Callable[[str], Key | None],
    *,
    body_sha256: str | None = None,
    recall: Callable[[Parsed], IssuerRecord] = lambda parsed: NO_RECORD,
) -> dict[str, Any]:
    """Return `{valid, checks, key_id, core, error?}`. A check is null if it was not requested or could not be made.

    The core is included only if the signature is valid; otherwise nothing in it could be
    believed.
    """
    checks: dict[str, bool | None] = dict.fromkeys(CHECKS)
    try:
        receipt = parse_receipt(document)
    except Unreadable as error:
        return _show_verdict(checks | {"format": False}, None, None, f"This is not a receipt: {error}.")
    checks["format"] = True
    key = find(receipt.kid)
    checks["key_known"] = key is not None
    if key is None:
        return _show_verdict(checks, receipt.kid, None, "This verifier does not trust the key.")
    checks["signature"] = key.verifies(receipt.signature, receipt.signed)
    if not checks["signature"]:
        return _show_verdict(checks, receipt.kid, None, "The signature is not one by this key over these bytes.")
    record = recall(receipt)
    checks["key_time"] = _timely(key, receipt.issued_at, record)
    checks["in_log"] = record.in_log
    if body_sha256 is not None:
        checks["body"] = receipt.core["response_sha256"] == body_sha256.lower()
    return _show_verdict(checks, receipt.kid, receipt.core, _complaint(checks, key))


def _timely(key: Key, issued_at: float, record: IssuerRecord) -> bool:
    """Return True if the key could sign at that time. A revoked key counts only for receipts
    that were issued and recorded before its revocation.
    """
    if not key.covers(issued_at):
        return False
    if key.revoked_at is None:
        return True
    return record.recorded_at is not None and max(issued_at, record.recorded_at) < key.revoked_at


def _complaint(checks: Mapping[str, bool | None], key: Key) -> str | None:
    if checks["key_time"] is False:
        if key.revoked_at is not None:
            return "The key was revoked, and there is no record of the receipt from before that."
        return "The key was not in use when the receipt says it was issued."
    if checks["body"] is False:
        return "The receipt is for a different body."
    if checks["in_log"] is False:
        return "The log has a different entry at the place that the receipt names."
    return None


def _show_verdict(
    checks: dict[str, bool | None], key_id: str | None, core: Core | None, error: str | None
) -> dict[str, Any]:
    answer = {"valid": error is None, "checks": checks, "key_id": key_id, "core": core}
    return answer if error is None else {**answer, "error": error}


def _said(error: Exception) -> str:
    """Return the reason in one line of at most 160 characters: our own, or the decoder's."""
    if isinstance(error, msgspec.MsgspecError):
        return re.sub(r"\s+", " ", str(error))[:160]
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)[:160]
