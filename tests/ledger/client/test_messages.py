"""How a request between services is signed: over its time, its route and its body."""

import pytest

from toolserver.ledger.client.messages import COMMIT, VALIDATE, Signature, authorization, mac, signature

SECRET = "s" * 32


def test_a_header_is_read_back_as_it_was_written():
    found = signature(authorization("b-1", SECRET, COMMIT, 1_800_000_000, b"{}"))
    assert found == Signature("b-1", 1_800_000_000, mac(SECRET, COMMIT, 1_800_000_000, b"{}"))


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


def test_the_scheme_is_read_in_any_case_and_order():
    assert signature("svchmac sig=x, ts=1, keyId=a") == Signature("a", 1, "x")
