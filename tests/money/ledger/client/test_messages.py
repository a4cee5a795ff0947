"""How a request between services is signed: over its time, its route and its body."""

import hashlib
import hmac

import msgspec
import pytest

from toolserver.money.ledger.client.messages import (
    ALLOWANCES,
    CANARY,
    COMMIT,
    MOST_BYTES,
    SILENT,
    SKEW_S,
    VALIDATE,
    AllowancesRefused,
    AskAllowances,
    Commit,
    CommitRefused,
    Committed,
    Signature,
    ToldAllowances,
    Validate,
    Validated,
    authorization,
    mac,
    signature,
)

SECRET = "s" * 32


def test_a_header_is_read_back_as_it_was_written():
    found = signature(authorization("b-1", SECRET, COMMIT, 1_800_000_000, b"{}"))
    assert found == Signature("b-1", 1_800_000_000, mac(SECRET, COMMIT, 1_800_000_000, b"{}"))


def test_routes_and_limits_are_those_that_services_agreed_on():
    assert (VALIDATE, COMMIT) == ("/api/internal/validate", "/api/internal/commit")
    assert (ALLOWANCES, MOST_BYTES, SKEW_S) == ("/api/internal/allowances", 65_536, 60)
    assert (CANARY, SILENT) == ("acct_canary", "unspecified")


def test_a_reservation_ends_after_five_minutes_unless_another_time_is_asked_for():
    assert Validate(cost=2).ttl_s == 300.0


def test_a_signature_is_an_hmac_over_method_route_time_and_hash_of_the_body():
    text = f"POST\n/api/internal/commit\n5\n{hashlib.sha256(b'{}').hexdigest()}"
    expected = hmac.new(SECRET.encode(), text.encode(), "sha256").hexdigest()
    assert authorization("b-1", SECRET, COMMIT, 5, b"{}") == f"SvcHMAC keyId=b-1,ts=5,sig={expected}"


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (Validate(cost=2, token="t"), b'{"cost":2,"token":"t"}'),
        (Commit(call_id="c1"), b'{"call_id":"c1"}'),
        (Validated(ok=True), b'{"ok":true}'),
        (AskAllowances(action="list", token="t"), b'{"action":"list","token":"t"}'),
        (ToldAllowances(ok=True, allowances=[]), b'{"ok":true,"allowances":[]}'),
        (AllowancesRefused(ok=False, reason="r", detail="d"), b'{"ok":false,"reason":"r","detail":"d"}'),
        (CommitRefused(ok=False, reason="r"), b'{"ok":false,"reason":"r"}'),
        (
            Committed(ok=True, state="posted", credits_charged=2, balance_after=8),
            b'{"ok":true,"state":"posted","credits_charged":2,"balance_after":8,"no_charge_reason":null,"replayed":false}',
        ),
    ],
)
def test_a_request_leaves_out_what_is_not_given_and_the_reply_to_a_commit_says_everything(message, text):
    assert msgspec.json.encode(message) == text


@pytest.mark.parametrize(
    "other",
    [
        ("t" * 32, COMMIT, 5, b"{}"),
        (SECRET, VALIDATE, 5, b"{}"),
        (SECRET, COMMIT, 6, b"{}"),
        (SECRET, COMMIT, 5, b"{ }"),
    ],
)
def test_secret_route_time_and_body_are_all_signed(other):
    assert mac(*other) != mac(SECRET, COMMIT, 5, b"{}")


@pytest.mark.parametrize(
    "header",
    [
        "",
        "SvcHMAC",
        "Bearer keyId=a,ts=1,sig=x",
        "SvcHMAC keyId=a,ts=1",
        "SvcHMAC keyId=a,ts=now,sig=x",
        "SvcHMAC keyId=a,ts=-1,sig=x",
        "SvcHMAC keyId=a,ts=1234567890123,sig=x",
        "SvcHMAC keyId=a,ts=1,sig=x,more=y",
    ],
)
def test_a_header_of_another_form_has_no_signature(header):
    assert signature(header) is None


def test_a_time_has_up_to_twelve_digits():
    assert signature("SvcHMAC keyId=a,ts=123456789012,sig=x") == Signature("a", 123_456_789_012, "x")
    assert signature("SvcHMAC keyId=a,ts=,sig=x") is None


def test_the_scheme_is_read_in_any_case_and_order():
    assert signature("svchmac sig=x, ts=1, keyId=a") == Signature("a", 1, "x")
