"""No secret of a request or an answer is in what is kept of it, in whatever way it is written."""

import base64
import json
from urllib.parse import quote, quote_plus

import pytest

from toolserver.core.recorded_exchange import REMOVED, RecordedExchange
from toolserver.upstream.secret_removal import SecretRemover

KEY = 'k3y/with "all" +signs=é'
NODE = "https://user:pa55word-x@node.example/v3/0123456789abcdef?token=t0ken-in-query"
REMOVER = SecretRemover({"A": KEY, "ETH_RPC_URL": NODE, "SWITCH": "yes"})


def exchange(**parts):
    return RecordedExchange(**({"source": "A", "method": "GET", "url": "https://a.example/"} | parts))


@pytest.mark.parametrize(
    "written",
    [
        KEY,
        quote(KEY),
        quote(KEY, safe=""),
        quote_plus(KEY),
        json.dumps(KEY)[1:-1],
        json.dumps(KEY)[1:-1].replace("/", "\\/"),
        json.dumps(KEY, ensure_ascii=False)[1:-1],
    ],
)
def test_a_key_is_removed_from_the_address_headers_bodies_and_errors(written):
    clean = REMOVER.clean(
        exchange(
            url=f"https://a.example/x?key={written}&b=1",
            sent_headers={"X-Key": f"Token {written}"},
            sent_json={"registrationkey": KEY, "n": [1]},
            headers=[("x-echo", written)],
            body=f"unknown key {written}!".encode(),
            failure=f"ConnectError: {written}",
        )
    )
    assert clean.sent_json == {"registrationkey": REMOVED, "n": [1]}
    assert clean.url == f"https://a.example/x?key={REMOVED}&b=1"
    assert (clean.sent_headers, clean.headers) == ({"X-Key": f"Token {REMOVED}"}, [("x-echo", REMOVED)])
    assert (clean.body, clean.failure) == (f"unknown key {REMOVED}!".encode(), f"ConnectError: {REMOVED}")


@pytest.mark.parametrize("pair", [KEY, f"{KEY}:", f":{KEY}"])
def test_basic_authentication_holds_no_key(pair):
    encoded = base64.b64encode(pair.encode()).rstrip(b"=")
    assert REMOVER.clean(exchange(body=b"Basic " + encoded)).body == f"Basic {REMOVED}".encode()
    assert REMOVER.is_in(encoded)


def test_headers_that_are_secret_as_a_whole_are_removed():
    clean = REMOVER.clean(
        exchange(
            sent_headers={"Authorization": "Bearer other"}, headers=[("Set-Cookie", "session=abc"), ("date", "now")]
        )
    )
    assert clean.sent_headers == {"Authorization": REMOVED}
    assert clean.headers == [("Set-Cookie", REMOVED), ("date", "now")]


def test_of_the_address_of_your_own_node_the_host_stays():
    clean = REMOVER.clean(exchange(url=NODE))
    assert clean.url == f"https://user:{REMOVED}@node.example/v3/{REMOVED}?token={REMOVED}"


def test_switches_and_words_of_addresses_are_no_secrets():
    remover = SecretRemover({"SWITCH": "yes", "ETH_RPC_URL": "https://node.example/ethereum/mainnet"})
    plain = exchange(url="https://node.example/ethereum/mainnet?yes=yes", body=b"ethereum mainnet yes")
    assert remover.clean(plain) == plain


def test_a_key_that_begins_with_another_is_removed_as_a_whole():
    remover = SecretRemover({"A": "12345678", "B": "1234567890"})
    assert remover.clean_text("a 1234567890 b 12345678") == f"a {REMOVED} b {REMOVED}"


@pytest.mark.parametrize(
    ("part", "is_secret"),
    [("a" * 19, False), ("a" * 20, True), ("a" * 6 + "1", False), ("a" * 7 + "1", True), ("a" * 8, False)],
)
def test_a_part_of_an_address_is_a_secret_if_it_is_long_or_has_a_digit(part, is_secret):
    remover = SecretRemover({"ETH_RPC_URL": f"wss://node.example/{part}"})
    assert remover.clean_text(f"at {part}") == (f"at {REMOVED}" if is_secret else f"at {part}")
    assert remover.is_in(f"at {part}".encode()) is is_secret


@pytest.mark.parametrize(("value", "is_secret"), [("a" * 7, False), ("a" * 8, True)])
def test_a_value_of_eight_characters_is_a_secret_whatever_it_looks_like(value, is_secret):
    assert SecretRemover({"A": value}).is_in(value.encode()) is is_secret
