"""A receipt is what the standards say it is: other implementations read and verify it."""

import hashlib
import json

import joserfc.jwk
import joserfc.jws
import nacl.signing
import pytest
import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st
from joserfc.errors import SecurityWarning

from tests.money.ledger import programs
from tests.requirements import proves
from toolserver.core.models import iso_ms
from toolserver.money.receipts.keys import b64, make_key, thumbprint, unb64
from toolserver.money.receipts.sign import (
    SAFE,
    Body,
    Sale,
    as_object,
    compact,
    core_of,
    echo_request,
    encode,
    key_id,
    name_signer,
    request_text,
    signing_input,
)
from toolserver.money.receipts.verify import verdict

KEY = make_key()
OWNER = "0123456789abcdef" * 4
SALE = Sale(
    "call_" + "1" * 32,
    OWNER,
    "/api/pro/report",
    "GET /api/pro/report?history=30d",
    2,
    2,
    98,
    body=Body(hashlib.sha256(b"{}").hexdigest(), 2),
    captured_at=1_800_000_000.4,
    sla_s=300.0,
    nonce="n-1",
)


def signed(core):
    """A core as JWS and as object."""
    payload = encode(core)
    jws = compact(KEY.kid, payload, KEY.sign(signing_input(KEY.kid, payload)))
    return jws, as_object(core, KEY.kid, KEY.sign(payload))


def core(**changed):
    return core_of(SALE._replace(**changed), service="data.example", now=1_800_000_001.0625)


JWS, OBJECT = signed(core())


@proves("tokens.fingerprint", "receipt.jws")
def test_the_core_says_everything_about_the_call_and_nothing_but_the_fingerprint_of_the_token():
    assert core() == {
        "v": 1,
        "id": "rcpt_" + "1" * 32,
        "service": "data.example",
        "kind": "call",
        "call_id": "call_" + "1" * 32,
        "token_fp": "0123456789abcdef",
        "endpoint": "/api/pro/report",
        "method": "GET",
        "request_hash": hashlib.sha256(b"GET /api/pro/report?history=30d").hexdigest(),
        "status": 200,
        "response_sha256": hashlib.sha256(b"{}").hexdigest(),
        "response_bytes": 2,
        "cost": 2,
        "credits_charged": 2,
        "balance_after": 98,
        "settlement": "charged",
        "no_charge_reason": None,
        "captured_at": "2027-01-15T08:00:00Z",
        "freshness_sla_s": 300,
        "agent_nonce": "n-1",
        "log": None,
        "issued_at": "2027-01-15T08:00:01.062Z",
    }


def test_a_call_whose_settlement_is_unknown_is_never_said_to_be_charged():
    found = core(charged=2, pending=True, remaining=None)
    assert (found["settlement"], found["credits_charged"], found["balance_after"]) == ("pending", 0, None)


def test_a_released_call_says_why():
    found = core(charged=0, reason="stale_data")
    assert (found["kind"], found["settlement"], found["credits_charged"]) == ("no_charge", "released", 0)
    assert found["no_charge_reason"] == "stale_data"


@pytest.mark.parametrize(
    ("given", "kept"),
    [("abc", "abc"), ("x" * 64, "x" * 64), ("x" * 65, None), ("", None), (None, None), ("a\nb", None), ("ü", None)],
)
def test_a_nonce_is_echoed_when_it_is_short_and_printable(given, kept):
    assert echo_request(given) == kept


def test_milliseconds_are_cut_and_never_rounded_into_the_next_second():
    assert iso_ms(1_800_000_000.9999) == "2027-01-15T08:00:00.999Z"
    assert iso_ms(1_800_000_000.0) == "2027-01-15T08:00:00.000Z"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "GET /api/x"),
        ({"b": "2", "a": "1"}, "GET /api/x?a=1&b=2"),
        ({"a": "1&b=2"}, "GET /api/x?a=1%26b%3D2"),
        ({"a": "x y", "ü": "/"}, "GET /api/x?a=x%20y&%C3%BC=%2F"),
        ({"include": ["btc", "fear-greed"]}, "GET /api/x?include=btc%2Cfear-greed"),
        ({"n": 3, "yes": True, "no": None}, "GET /api/x?n=3&no=null&yes=true"),
        ({"o": {"b": 1, "a": [1]}}, "GET /api/x?o=%7B%22a%22%3A%5B1%5D%2C%22b%22%3A1%7D"),
        ({"bad": "\ud800"}, "GET /api/x?bad=%3F"),
    ],
)
def test_a_request_is_one_line_that_no_other_request_has(given, text):
    assert request_text("GET", "/api/x", given) == text


texts = st.text(st.characters(exclude_categories=["Cs"]))
names = st.text(st.characters(codec="ascii"), min_size=1)
values = st.none() | st.booleans() | st.integers(-SAFE, SAFE) | texts


@given(st.dictionaries(names, values | st.dictionaries(names, values)))
def test_our_json_is_rfc_8785(value):
    assert encode(value) == rfc8785.dumps(value)


@proves("receipt.jws")
@given(
    st.builds(
        SALE._replace,
        endpoint=texts,
        method=texts,
        cost=st.integers(0, SAFE),
        charged=st.integers(0, SAFE),
        remaining=st.none() | st.integers(0, SAFE),
        reason=st.none() | texts,
        status=st.integers(100, 599),
        body=st.none() | st.builds(Body, st.just("a" * 64), st.integers(0, SAFE)),
        captured_at=st.none() | st.floats(0, 4e9),
        sla_s=st.none() | st.floats(0, 1e9),
        nonce=st.none() | texts,
        pending=st.booleans(),
    ),
    texts,
    st.floats(0, 4e9),
)
def test_every_core_is_canonical_and_its_receipt_valid(sale, service, now):
    found = core_of(sale, service=service, now=now, log={"origin": service, "index": 3})
    assert encode(found) == rfc8785.dumps(found)
    for receipt in signed(found):
        answer = verdict(receipt, {KEY.kid: KEY}.get)
        assert (answer["valid"], answer["core"]) == (True, found)


@proves("receipt.keys")
def test_key_ids_are_rfc_7638_thumbprints():
    # RFC 8037, appendix A.3
    public = unb64("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")
    assert thumbprint(public) == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
    assert joserfc.jwk.OKPKey.import_key(KEY.jwk()).thumbprint() == KEY.kid


def test_signatures_are_those_of_rfc_8037():
    # appendix A.4 signs with the key of A.1
    seed = unb64("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A")
    signer = nacl.signing.SigningKey(seed)
    key = type(KEY)("x", bytes(signer.verify_key), seed)
    text = b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc"
    expected = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
    assert b64(key.sign(text)) == expected


def parts(jws):
    head, payload, signature = jws.split(".")
    return f"{head}.{payload}".encode(), unb64(signature), unb64(payload)


def test_pynacl_verifies_both_forms():
    message, signature, payload = parts(JWS)
    verifier = nacl.signing.VerifyKey(KEY.public)
    assert verifier.verify(message, signature) == message
    assert verifier.verify(payload, unb64(OBJECT["signature"])) == payload


def test_cryptography_verifies_both_forms():
    message, signature, payload = parts(JWS)
    public = Ed25519PublicKey.from_public_bytes(KEY.public)
    public.verify(signature, message)
    public.verify(unb64(OBJECT["signature"]), payload)


def test_joserfc_reads_the_receipt_with_the_published_key():
    published = joserfc.jwk.KeySet.import_key_set({"keys": [make_key().jwk(), KEY.jwk()]})
    with pytest.warns(SecurityWarning, match="RFC 9864"):  # the name is the contract's; the newer one is Ed25519
        read = joserfc.jws.deserialize_compact(JWS, published, algorithms=["EdDSA"])
    assert read.headers() == {"alg": "EdDSA", "kid": KEY.kid, "typ": "receipt+jws"}
    assert json.loads(read.payload) == core()


@proves("receipt.alg")
def test_the_newer_name_of_the_algorithm_is_read_by_others_without_a_warning():
    payload, signer = encode(core()), name_signer(KEY.kid, "Ed25519")
    jws = compact(signer, payload, KEY.sign(signing_input(signer, payload)))
    published = joserfc.jwk.KeySet.import_key_set({"keys": [KEY.jwk()]})

    assert joserfc.jws.deserialize_compact(jws, published, algorithms=["Ed25519"]).headers()["alg"] == "Ed25519"
    assert verdict(jws, {KEY.kid: KEY}.get)["valid"]
    swapped = compact(KEY.kid, payload, KEY.sign(signing_input(signer, payload)))
    assert not verdict(swapped, {KEY.kid: KEY}.get)["valid"], "the signature covers the name"
    assert key_id(signer) == key_id(KEY.kid) == KEY.kid


def test_openssl_verifies_both_forms(tmp_path):
    message, signature, payload = parts(JWS)
    assert programs.openssl_verifies(KEY.public, message, signature, tmp_path)
    assert programs.openssl_verifies(KEY.public, payload, unb64(OBJECT["signature"]), tmp_path)
    assert not programs.openssl_verifies(KEY.public, message + b"x", signature, tmp_path)


def test_node_verifies_the_receipt_and_writes_the_core_the_same():
    read = programs.node(KEY.jwk(), JWS)
    assert (read["good"], read["canonical"], read["core"]) == (True, True, core())


def test_the_object_can_be_verified_by_canonicalising_what_is_left_of_it():
    """What a checker does that knows RFC 8785 and no JWS."""
    rest = {name: value for name, value in OBJECT.items() if name not in ("signature", "key_id")}
    nacl.signing.VerifyKey(KEY.public).verify(rfc8785.dumps(rest), unb64(OBJECT["signature"]))
    assert OBJECT["key_id"] == KEY.kid
