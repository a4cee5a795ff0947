"""Defines the messages between services that share a ledger: the requests, their replies, and the signature."""

import hashlib
import hmac
import re
from typing import Any, Literal, NamedTuple

import msgspec

from toolserver.money.ledger.allowance import Allowance, AllowanceChange, AllowanceTerms
from toolserver.money.ledger.state import State

VALIDATE = "/api/internal/validate"
COMMIT = "/api/internal/commit"
ALLOWANCES = "/api/internal/allowances"
MOST_BYTES = 65_536
SKEW_S = 60
SCHEME = "SvcHMAC"
REPLY_SIGNATURE = "x-ledger-signature"
CANARY = "acct_canary"  # an account that does not exist: a request about it shows whether the owner answers
SILENT = "unspecified"  # the reason of a release without one

_PART = re.compile(r"(\w+)=([^\s,]+)")


class Validate(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A request to reserve credits; with cost 0, for the balance only. Old callers send only `token` and `cost`."""

    cost: int
    call_id: str | None = None
    token: str | None = None
    account_ref: str | None = None
    service: str | None = None
    endpoint: str = ""
    ttl_s: float = 300.0


class Commit(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A request to charge a reservation or release it. With any `no_charge_reason`, nothing is charged."""

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
    """The reply to Validate. `payer` is the SHA-256 (hex) of the token whose credits are
    spent. `cap` names the cap of an `allowance` that would be crossed, and `detail` says how.
    `state` is that of the reservation, which may already have ended if the request is a
    repeated one.
    """

    ok: bool
    sufficient: bool | None = None
    reservation_id: str | None = None
    credits_remaining: int | None = None
    expires_at: str | None = None
    account_ref: str | None = None
    token_fp: str | None = None
    payer: str | None = None
    allowance: str | None = None
    issued_at: str | None = None
    state: State | None = None
    replayed: bool | None = None
    reason: str | None = None
    cap: str | None = None
    detail: str | None = None


class AskAllowances(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A request to create, list, change or revoke allowances. `hash` is the SHA-256 (hex) of a
    new allowance's token.
    """

    action: Literal["create", "list", "change", "revoke"]
    token: str | None = None
    account_ref: str | None = None
    id: str | None = None
    hash: str | None = None
    terms: AllowanceTerms | None = None
    change: AllowanceChange | None = None


class ToldAllowances(msgspec.Struct, kw_only=True):
    """The reply to AskAllowances: all allowances, or the one that was created, changed or revoked."""

    ok: bool
    allowances: list[Allowance]


class AllowancesRefused(msgspec.Struct, kw_only=True):
    """The reply to an AskAllowances that was refused: an error code, and the reason."""

    ok: bool
    reason: str
    detail: str


class Committed(msgspec.Struct, kw_only=True):
    """The reply to a Commit that was carried out."""

    ok: bool
    state: State
    credits_charged: int
    balance_after: int
    no_charge_reason: str | None = None
    replayed: bool = False


class CommitRefused(msgspec.Struct, kw_only=True):
    """The reply to a Commit without a matching reservation."""

    ok: bool
    reason: str


class Signature(NamedTuple):
    """The parts of an Authorization header."""

    key_id: str
    at: int
    mac: str
    nonce: str | None = None


def mac(secret: str, path: str, at: int, body: bytes, nonce: str | None = None) -> str:
    """Return the HMAC-SHA256 (hex) over route, time (epoch seconds), nonce if there is one, and body."""
    lines = ["POST", path, str(at), *([] if nonce is None else [nonce]), hashlib.sha256(body).hexdigest()]
    return hmac.new(secret.encode(), "\n".join(lines).encode(), hashlib.sha256).hexdigest()


def reply_mac(secret: str, request_mac: str, status: int, body: bytes) -> str:
    """Return the HMAC-SHA256 (hex) of a reply: over the signature of its request, status and body."""
    text = f"REPLY\n{request_mac}\n{status}\n{hashlib.sha256(body).hexdigest()}"
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()


def authorization(key_id: str, secret: str, path: str, at: int, body: bytes, nonce: str | None = None) -> str:
    """Return the Authorization header of a request."""
    unique = "" if nonce is None else f",nonce={nonce}"
    return f"{SCHEME} keyId={key_id},ts={at}{unique},sig={mac(secret, path, at, body, nonce)}"


def signature(header: str) -> Signature | None:
    """Return the parts of an Authorization header, or None if it has another form."""
    scheme, _, rest = header.partition(" ")
    parts = dict(_PART.findall(rest))
    nonce = parts.pop("nonce", None)
    if scheme.lower() != SCHEME.lower() or parts.keys() != {"keyId", "ts", "sig"}:
        return None
    if not re.fullmatch("[0-9]{1,12}", parts["ts"]) or not (nonce is None or re.fullmatch("[0-9a-f]{32}", nonce)):
        return None
    return Signature(parts["keyId"], int(parts["ts"]), parts["sig"], nonce)
