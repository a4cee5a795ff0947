"""What a verifier says: yes to what was signed, no to everything else, and never an error."""

import base64
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.money.receipts.test_sign import JWS, KEY, OBJECT, SALE, core, signed
from tests.requirements import proves
from toolserver.money.receipts.keys import b64, make_key, unb64
from toolserver.money.receipts.sign import SAFE, compact, encode, signing_input
from toolserver.money.receipts.verify import CHECKS, IssuerRecord, Unreadable, parse_receipt, verdict

KEYS = {KEY.kid: KEY}
ISSUED_AT = 1_800_000_001


def said(receipt, keys=KEYS, **more):
    """The verdict, with its checks as a set of those that passed and one of those that failed."""
    found = verdict(receipt, keys.get, **more)
    assert list(found["checks"]) == list(CHECKS)
    assert ("error" in found) == (not found["valid"])
    return found


def failed(found):
    return [name for name, passed in found["checks"].items() if passed is False]


@pytest.mark.parametrize("receipt", [JWS, OBJECT, f"  {JWS}\n", dict(reversed(OBJECT.items()))])
def test_a_genuine_receipt_is_valid_in_either_form_and_any_order(receipt):
    found = said(receipt)
    assert found["valid"]
    assert (found["core"], found["key_id"]) == (core(), KEY.kid)
    assert found["checks"] == {
        "format": True,
        "key_known": True,
        "signature": True,
        "key_time": True,
        "body": None,
        "in_log": None,
    }


@proves("receipt.tamper-evident")
@given(st.integers(0, len(JWS) - 1), st.characters(codec="ascii"))
def test_no_character_of_a_receipt_can_be_changed(at, letter):
    changed = JWS[:at] + letter + JWS[at + 1 :]
    assert said(changed)["valid"] is (changed.strip() == JWS)


@given(st.integers(0, 8 * 64 - 1))
def test_no_bit_of_a_signature_can_be_changed(bit):
    head, payload, signature = JWS.split(".")
    raw = bytearray(unb64(signature))
    raw[bit // 8] ^= 1 << bit % 8
    assert failed(said(f"{head}.{payload}.{b64(bytes(raw))}")) == ["signature"]


@proves("receipt.tamper-evident")
@pytest.mark.parametrize("name", list(core()))
def test_no_member_of_the_core_can_be_changed_or_left_out(name):
    other = {**core(), "log": {"origin": "x", "index": 1}, "settlement": "released", "kind": "webhook", "v": 1}
    value = other[name] if other[name] != core()[name] else _another(core()[name])
    for receipt in ({**OBJECT, name: value}, {k: v for k, v in OBJECT.items() if k != name}):
        found = said(receipt)
        assert not found["valid"]
        assert found["core"] is None  # nothing of it can be believed
    payload = encode({**core(), name: value})
    head, _, signature = JWS.split(".")
    assert not said(f"{head}.{b64(payload)}.{signature}")["valid"]


def _another(value):
    if isinstance(value, int):
        return value + 1
    return "x" if value is None else value[:-1] + ("0" if value[-1] != "0" else "1")


def test_a_member_cannot_be_added():
    assert failed(said({**OBJECT, "extra": "x"})) == ["signature"]


def test_a_signed_core_may_have_members_we_do_not_know_yet():
    for receipt in signed({**core(), "later": "a field of the future"}):
        assert said(receipt)["valid"]


def test_the_two_signatures_cannot_stand_for_each_other():
    head, payload, signature = JWS.split(".")
    assert failed(said({**OBJECT, "signature": signature})) == ["signature"]
    assert failed(said(f"{head}.{payload}.{OBJECT['signature']}")) == ["signature"]


def test_another_key_is_not_known_and_another_signer_is_found_out():
    stranger = make_key()
    payload = encode(core())
    own = compact(stranger.kid, payload, stranger.sign(signing_input(stranger.kid, payload)))
    posing = compact(KEY.kid, payload, stranger.sign(signing_input(KEY.kid, payload)))
    assert failed(said(own)) == ["key_known"]
    assert failed(said(posing)) == ["signature"]


def header(**head):
    return b64(json.dumps(head, separators=(",", ":")).encode())


@pytest.mark.parametrize(
    "head",
    [
        {"alg": "none", "typ": "receipt+jws", "kid": KEY.kid},
        {"alg": "HS256", "typ": "receipt+jws", "kid": KEY.kid},
        {"alg": "EdDSA", "typ": "JWT", "kid": KEY.kid},
        {"alg": "EdDSA", "typ": "receipt+jws"},
        {"alg": "EdDSA", "typ": "receipt+jws", "kid": 1},
        {"alg": "EdDSA", "typ": "receipt+jws", "kid": KEY.kid, "jku": "https://evil.example/keys"},
        {"alg": "EdDSA", "typ": "receipt+jws", "kid": KEY.kid, "jwk": KEY.jwk()},
        {"alg": "EdDSA", "typ": "receipt+jws", "kid": KEY.kid, "b64": False, "crit": ["b64"]},
    ],
)
def test_a_header_that_says_anything_else_is_not_of_a_receipt(head):
    """Even properly signed: a key or an address in a receipt is never looked at."""
    payload = b64(encode(core()))
    signature = b64(KEY.sign(f"{header(**head)}.{payload}".encode()))
    assert failed(said(f"{header(**head)}.{payload}.{signature}")) == ["format"]


def test_a_payload_that_is_not_canonical_is_refused_though_signed():
    for text in (json.dumps(core()), encode(core()).decode().replace('"v":1', '"v":1,"v":1')):
        payload = text.encode()
        receipt = compact(KEY.kid, payload, KEY.sign(signing_input(KEY.kid, payload)))
        assert failed(said(receipt)) == ["format"]


WRONG = [
    "",
    "a",
    "a.b",
    "a.b.c",
    "..",
    "a.b.c.d",
    JWS + ".",
    JWS.replace(".", "=."),
    JWS.swapcase(),
    base64.b64encode(JWS.encode()).decode(),
    "\0" * 100,
    "ü.ü.ü",
    "\ud800.\ud800.\ud800",
    f"{header(alg='EdDSA')}..",
    "W10.W10.W10",
    "e30.e30.e30",
    "MQ.MQ.MQ",
    b64(b'{"a":' * 5000) + ".e30.e30",
    {},
    {"signature": "x", "key_id": "y"},
    {**OBJECT, "signature": None},
    {**OBJECT, "signature": "!"},
    {**OBJECT, "key_id": ["x"]},
    {**OBJECT, "cost": 2.0},
    {**OBJECT, "cost": "2"},
    {**OBJECT, "cost": True},
    {**OBJECT, "cost": 2**60},
    {**OBJECT, "cost": -1},
    {**OBJECT, "v": 2},
    {**OBJECT, "v": True},
    {**OBJECT, "log": []},
    {**OBJECT, "log": {"origin": {"a": {}}, "index": 1}},
    {**OBJECT, "log": {"origin": "x", "index": -1}},
    {**OBJECT, "log": {"origin": "x"}},
    {**OBJECT, "log": {"origin": "x", "hour": "2027-01-15T08:00:00Z"}},
    {**OBJECT, "log": {"origin": "x", "hour": "2027-01-15T08:30:00Z", "key": "0" * 64}},
    {**OBJECT, "log": {"origin": "x", "hour": "2027-01-15T08:00:00Z", "key": "0"}},
    {**OBJECT, "log": {"origin": "x", "key": "0" * 64}},
    {**OBJECT, "extra": {"a": 1}},
    {**OBJECT, "extra": [1]},
    {**OBJECT, "extra": float("nan")},
    {**OBJECT, "endpoint": "\ud800"},
    {**OBJECT, "issued_at": "yesterday"},
    {**OBJECT, "issued_at": "2027-99-99T08:00:00.000Z"},
    {**OBJECT, "issued_at": "٢٠٢٧-01-15T08:00:00.000Z"},
    {**OBJECT, "request_hash": "A" * 64},
    {**OBJECT, "token_fp": "0123456789abcdef\n"},
]


@pytest.mark.parametrize("receipt", WRONG, ids=range(len(WRONG)))
def test_what_is_no_receipt_is_said_to_be_none(receipt):
    found = said(receipt)
    assert failed(found) == ["format"]
    assert found["error"].startswith("This is not a receipt: ")
    assert (found["key_id"], found["core"]) == (None, None)


@given(st.text() | st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.floats() | st.text()))
def test_nothing_at_all_makes_the_verifier_fail(receipt):
    assert not said(receipt)["valid"]


@given(st.dictionaries(st.sampled_from([*core(), "signature", "key_id"]), st.none() | st.integers() | st.text()))
def test_nothing_put_into_a_receipt_makes_the_verifier_fail(changes):
    assert said({**OBJECT, **changes})["valid"] == ({**OBJECT, **changes} == OBJECT)


def test_the_body_is_compared_when_its_hash_is_given():
    own = SALE.body.sha256
    assert said(JWS, body_sha256=own)["checks"]["body"] is True
    assert said(JWS, body_sha256=own.upper())["valid"]
    other = said(JWS, body_sha256="0" * 64)
    assert (failed(other), other["core"]) == (["body"], core())


def test_a_receipt_without_a_body_matches_no_body():
    receipt, _ = signed(core(body=None))
    assert failed(said(receipt, body_sha256="0" * 64)) == ["body"]


@pytest.mark.parametrize(
    ("times", "valid"),
    [
        ({"nbf": ISSUED_AT}, True),
        ({"nbf": ISSUED_AT + 1}, False),
        ({"exp": ISSUED_AT + 1}, True),
        ({"exp": ISSUED_AT}, False),
        ({"nbf": ISSUED_AT - 9, "exp": ISSUED_AT + 9}, True),
    ],
)
def test_a_key_vouches_only_for_its_own_time(times, valid):
    found = said(JWS, {KEY.kid: replace(KEY, **times)})
    assert found["valid"] is valid
    assert valid or failed(found) == ["key_time"]


@pytest.mark.parametrize(
    ("known", "revoked_at", "valid"),
    [
        (IssuerRecord(), ISSUED_AT + 100, False),  # nobody saw it before the key was stolen
        (IssuerRecord(None, ISSUED_AT + 1), ISSUED_AT + 100, True),
        (IssuerRecord(True, ISSUED_AT + 1), ISSUED_AT + 100, True),
        (IssuerRecord(None, ISSUED_AT + 200), ISSUED_AT + 100, False),  # recorded too late
        (IssuerRecord(None, ISSUED_AT - 50), ISSUED_AT - 10, False),  # dated after the revocation
    ],
)
def test_of_a_revoked_key_only_what_was_recorded_before_counts(known, revoked_at, valid):
    keys = {KEY.kid: replace(KEY, revoked_at=revoked_at)}
    found = said(JWS, keys, recall=lambda parsed: known)
    assert found["valid"] is valid
    assert valid or "revoked" in found["error"]


def test_a_log_that_has_something_else_in_its_place_is_a_failure():
    found = said(JWS, recall=lambda parsed: IssuerRecord(False, ISSUED_AT))
    assert failed(found) == ["in_log"]


@pytest.mark.parametrize(("number", "valid"), [(SAFE, True), (-SAFE, True), (SAFE + 1, False), (-SAFE - 1, False)])
def test_a_receipt_may_hold_every_safe_integer_and_no_other(number, valid):
    assert SAFE == 2**53 - 1
    try:
        receipt = signed({**core(), "later": number})[1]
    except ValueError:
        receipt = {**OBJECT, "later": number}
    assert (failed(said(receipt)) == []) is valid
    assert valid or failed(said(receipt)) == ["format"]


@pytest.mark.parametrize(
    ("receipt", "error"),
    [
        ("a.b", "a JWS must have three parts"),
        (b64(b'{"a":' * 5000) + ".e30.e30", "nested too deeply"),
        (b64(b"[" * 501 + b"]" * 501) + ".e30.e30", "nested too deeply"),
        (
            b64(b"[" * 500 + b"]" * 500) + ".e30.e30",
            "the header must have the members alg, kid and typ, and no others",
        ),
        (
            b64(b"[" + b",".join([b"[]"] * 501 + [b'"' + b'[\\"' * 501 + b'"']) + b"]") + ".e30.e30",
            "the header must have the members alg, kid and typ, and no others",
        ),
        (f"{JWS.split('.')[0]}.{b64(b'[' * 501)}.e30", "nested too deeply"),
        (f"{header(alg='EdDSA')}.e30.e30", "the header must have the members alg, kid and typ, and no others"),
        ({}, "signature and key_id must be strings"),
        ({**OBJECT, "signature": "!"}, "not base64url"),
        (
            {**OBJECT, "extra": [1]},
            "a receipt may hold only strings, safe integers, booleans, null, and the object `log`",
        ),
        ({**OBJECT, "log": {"origin": "x"}}, "`log` names neither a bucket nor a leaf"),
        ({**OBJECT, "cost": "2"}, "Expected `int`, got `str` - at `$.cost`"),
    ],
)
def test_what_is_wrong_with_the_form_is_said_in_one_line(receipt, error):
    assert said(receipt)["error"] == f"This is not a receipt: {error}."


def test_a_long_reason_is_cut_to_160_characters():
    for long in ({**OBJECT, "kind": "x" * 300}, {**OBJECT, "issued_at": "2027-01-15T08:00:00.000Z" + "9" * 300}):
        with pytest.raises(Unreadable) as caught:
            parse_receipt(long)
        assert len(str(caught.value)) <= 160
    with pytest.raises(Unreadable) as caught:
        parse_receipt({**OBJECT, "kind": "x" * 300})
    assert len(str(caught.value)) == 160


@pytest.mark.parametrize(
    ("place", "good"),
    [
        ({"index": 0}, True),
        ({"hour": "2027-01-15T08:00:00Z", "key": "0" * 64}, True),
        ({"hour": "2027-01-15T08:00:00Z", "key": "0" * 64, "salt": "00", "more": 1}, True),
        ({"index": 0, "hour": "never"}, True),
        ({"key": "0" * 64}, False),
    ],
)
def test_a_receipt_names_a_leaf_or_a_bucket(place, good):
    receipt = signed({**core(), "log": {"origin": "o", **place}})[1]
    assert said(receipt)["valid"] is good


def test_each_failure_is_explained():
    stranger = said(JWS, {})
    assert (stranger["error"], stranger["key_id"]) == ("This verifier does not trust the key.", KEY.kid)
    posing = said({**OBJECT, "cost": 3})
    assert posing["error"] == "The signature is not one by this key over these bytes."
    early = said(JWS, {KEY.kid: replace(KEY, nbf=ISSUED_AT + 1)})
    assert early["error"] == "The key was not in use when the receipt says it was issued."
    assert said(JWS, body_sha256="0" * 64)["error"] == "The receipt is for a different body."
    other = said(JWS, recall=lambda parsed: IssuerRecord(False))
    assert other["error"] == "The log has a different entry at the place that the receipt names."


def test_a_receipt_on_record_counts_only_if_both_its_dates_are_before_the_revocation():
    def valid(recorded_at, revoked_at):
        keys = {KEY.kid: replace(KEY, revoked_at=revoked_at)}
        return said(JWS, keys, recall=lambda parsed: IssuerRecord(None, recorded_at))["valid"]

    assert [valid(ISSUED_AT, ISSUED_AT + late) for late in (0, 1)] == [False, True]
    assert [valid(ISSUED_AT + 5, ISSUED_AT + late) for late in (5, 6)] == [False, True]
