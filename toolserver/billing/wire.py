"""What services that share a ledger say to each other: two requests, their replies, and how a request is signed."""

import hashlib
import hmac
import re
from typing import Any, NamedTuple

import msgspec

from toolserver.billing.books import State

VALIDATE = "/api/internal/validate"
COMMIT = "/api/internal/commit"
MOST_BYTES = 65_536
SKEW_S = 60
SCHEME = "SvcHMAC"
CANARY = "acct_canary"  # an account that nobody has: asking for it shows that somebody answers
SILENT = "unspecified"  # why something was released, when whoever released it did not say

_PART = re.compile(r"(\w+)=([^\s,]+)")


class Validate(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Set credits aside; with cost 0, only ask what there is. Old callers send `token` and `cost` alone."""

    cost: int
    call_id: str | None = None
    token: str | None = None
    account_ref: str | None = None
    service: str | None = None
    endpoint: str = ""
    ttl_s: float = 300.0


class Commit(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Charge what was set aside, or release it. `no_charge_reason` is anything: whatever it is, nothing is charged."""

    call_id: str | None = None
    reservation_id: str | None = None
    token: str | None = None
    account_ref: str | None = None
    cost: int | None = None
    service: str | None = None
    endpoint: str = ""
    outcome: str | None = None
    no_charge_reason: Any = None
    receipt_id: str | None = None
    response_sha256: str | None = None


class Validated(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The reply to Validate. `state` is that of the reservation, which may have ended when it is asked for again."""

    ok: bool
    sufficient: bool | None = None
    reservation_id: str | None = None
    credits_remaining: int | None = None
    expires_at: str | None = None
    account_ref: str | None = None
    token_fp: str | None = None
    issued_at: str | None = None
    state: State | None = None
    replayed: bool | None = None
    reason: str | None = None


class Committed(msgspec.Struct, kw_only=True):
    """The reply to Commit, when it was done."""

    ok: bool
    state: State
    credits_charged: int
    balance_after: int
    no_charge_reason: str | None = None
    replayed: bool = False


class Refused(msgspec.Struct, kw_only=True):
    """The reply to Commit, when there is nothing to be done."""

    ok: bool
    reason: str


class Signature(NamedTuple):
    """The parts of an Authorization header."""

    key_id: str
    at: int
    mac: str


def mac(secret: str, path: str, at: int, body: bytes) -> str:
    """HMAC-SHA256 over what is asked, when, and of which route; hex."""
    text = f"POST\n{path}\n{at}\n{hashlib.sha256(body).hexdigest()}"
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()


def authorization(key_id: str, secret: str, path: str, at: int, body: bytes) -> str:
    """The header that signs a request."""
    return f"{SCHEME} keyId={key_id},ts={at},sig={mac(secret, path, at, body)}"


def signature(header: str) -> Signature | None:
    """The parts of such a header; None when it is none."""
    scheme, _, rest = header.partition(" ")
    parts = dict(_PART.findall(rest))
    if scheme.lower() != SCHEME.lower() or parts.keys() != {"keyId", "ts", "sig"}:
        return None
    if not re.fullmatch("[0-9]{1,12}", parts["ts"]):
        return None
    return Signature(parts["keyId"], int(parts["ts"]), parts["sig"])
