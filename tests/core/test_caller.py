"""Who is calling: the address that limits count by, and the token of a header."""

import ipaddress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolserver.core.caller import (
    CLIENTS,
    LONGEST_KEPT,
    Addresses,
    Caller,
    bearer,
    mask_secrets,
    token_hash,
    well_formed,
    wider_network,
)

TOKEN = "svc_live_" + "0123456789abcdef" * 4
PROXY = "10.0.0.1"


def client(forwarded, peer=PROXY, trusted=("10.0.0.0/8",)):
    return Addresses(trusted).client(peer, forwarded)


@pytest.mark.parametrize(
    ("forwarded", "address"),
    [
        ("198.51.100.7", "198.51.100.7"),
        ("198.51.100.7:5678", "198.51.100.7"),
        ("[2001:db8:1:2:3::4]:80", "2001:db8:1:2::/64"),
        ("[2001:db8:1:2:3::4]", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("[::1]:80", "::/64"),
        ("::ffff:198.51.100.7", "198.51.100.7"),
        ("203.0.113.9, 198.51.100.7:1", "198.51.100.7"),
        ("198.51.100.7:1, 10.0.0.9:2", "198.51.100.7"),
        ("nonsense", "unknown"),
        ("", "unknown"),
    ],
)
def test_the_nearest_address_that_is_no_trusted_proxy_counts_with_or_without_a_port(forwarded, address):
    assert client(forwarded) == address


@pytest.mark.parametrize("trusted", ["10.0.0.0/8", "10.0.0.1/32", "::ffff:10.0.0.0/104", "::ffff:10.0.0.1/128"])
@pytest.mark.parametrize("peer", ["10.0.0.1", "::ffff:10.0.0.1"])
def test_a_trusted_proxy_is_known_by_either_way_to_write_its_address(peer, trusted):
    """A socket for both protocols names IPv4 peers as IPv6: all clients of the proxy would be one."""
    assert client("198.51.100.7", peer=peer, trusted=[trusted]) == "198.51.100.7"
    assert client(f"198.51.100.7, {peer}", peer=peer, trusted=[trusted]) == "198.51.100.7"
    assert client("198.51.100.7", peer="::ffff:11.0.0.1", trusted=[trusted]) == "11.0.0.1"


def test_two_clients_behind_a_proxy_that_adds_ports_are_two():
    assert client("198.51.100.7:1") != client("198.51.100.8:1")


def test_the_port_of_a_client_makes_no_new_client_of_it():
    addresses = Addresses(["10.0.0.0/8"])
    assert addresses.client(PROXY, "198.51.100.7:1") == addresses.client(PROXY, "198.51.100.7:2")


def test_a_header_from_anyone_else_is_ignored():
    assert client("198.51.100.7", peer="192.0.2.1") == "192.0.2.1"
    assert client("198.51.100.7", trusted=()) == PROXY
    assert client(None) == PROXY


def test_a_token_has_64_lower_case_hex_digits_and_is_stored_as_32_bytes():
    assert well_formed("svc_live_" + "a1" * 32)
    assert not well_formed("svc_live_" + "A1" * 32)
    assert not well_formed("svc_live_" + "a1" * 31)
    assert len(token_hash("svc_live_" + "a1" * 32)) == 32


@pytest.mark.parametrize(
    ("peer", "name"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("", "unknown"),
        ("unix", "unknown"),
    ],
)
def test_limits_count_by_ipv4_address_or_ipv6_network(peer, name):
    assert Addresses([]).client(peer) == name


def test_a_header_from_anybody_but_a_trusted_proxy_does_not_count():
    assert client("198.51.100.9", peer="203.0.113.5") == "203.0.113.5"
    assert client("198.51.100.9", trusted=()) == PROXY


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Basic abc", "Basic abc"),
        ("Bearer ", None),
        ("Bearer", None),
        ("bearer svc_live_YOUR_TOKEN", None),
        ("Bearer ${env:TOOLSERVER_TOKEN}", None),
        ("Bearer ${input:token}", None),
        ("Bearer $TOOLSERVER_TOKEN", None),
        ("Bearer %TOOLSERVER_TOKEN%", None),
        ("Bearer {token}", None),
        ("Bearer <your token>", None),
        ("Bearer null", None),
        ("bearer undefined", None),
        ("Bearer None", None),
        ("Bearer nil", None),
        ("Bearer nullable", "nullable"),
        ("svc_live_YOUR_TOKEN", None),
        ("", None),
        (None, None),
    ],
)
def test_a_bearer_token_is_what_follows_the_scheme_in_any_spelling(header, token):
    assert bearer(header) == token


@pytest.mark.parametrize(
    ("token", "is_well_formed"),
    [(TOKEN, True), (TOKEN + "0", False), (TOKEN[:-1], False), (TOKEN.upper(), False), (TOKEN + "\n", False)],
)
def test_a_token_is_the_prefix_and_64_hex_digits(token, is_well_formed):
    assert well_formed(token) is is_well_formed


def test_a_token_is_kept_as_its_sha256_and_never_shown():
    assert token_hash("abc").hex() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    shown = repr(Caller("192.0.2.1", token=TOKEN, idempotency_key="idem-7", payment="paid-7"))
    assert not any(secret in shown for secret in (TOKEN, "idem-7", "paid-7"))


@pytest.mark.parametrize(
    ("client", "wider"),
    [
        ("2001:db8:1:2::/64", "2001:db8:1::/48"),
        ("192.0.2.1", None),
        ("token 0123", None),
        ("unknown", None),
    ],
)
def test_the_wider_network_of_a_client_is_its_48(client, wider):
    assert wider_network(client) == wider


def test_a_secret_in_a_text_is_masked_at_the_same_length():
    told = f"svc_live_{'a1' * 32}: unknown argument, nor svc_buy_{'0' * 32}; svc_live_<64 hex>"
    masked = mask_secrets(told)
    assert masked == f"svc_live_{'x' * 64}: unknown argument, nor svc_buy_{'x' * 32}; svc_live_<64 hex>"
    assert mask_secrets("plain") == "plain"


@given(st.ip_addresses())
def test_every_address_is_named_as_the_standard_library_writes_it(address):
    mapped = address.ipv4_mapped if address.version == 6 else None
    network = None if mapped or address.version == 4 else ipaddress.ip_network((address, 64), strict=False)

    assert Addresses(()).client(str(address)) == str(mapped or network or address)


@given(st.ip_addresses(), st.ip_addresses(), st.integers(0, 32))
@example(ipaddress.ip_address("::ffff:0:0"), ipaddress.ip_address("0.0.0.0"), 0)
@example(ipaddress.ip_address("::ffff:0:0"), ipaddress.ip_address("::"), 0)
def test_a_network_holds_the_addresses_that_the_standard_library_says_it_holds(address, base, bits):
    network = ipaddress.ip_network((base, bits), strict=False)
    mapped = address.ipv4_mapped if address.version == 6 else None  # a socket of both families writes IPv4 so

    assert Addresses([str(network)]).is_trusted(str(address)) is ((mapped or address) in network)


@pytest.mark.parametrize("address", ["", "nonsense", "1.2.3", "1.2.3.4.5", "::g", "1.2.3.4\x00", "é", "[::1]"])
def test_what_is_no_address_is_trusted_by_nobody_and_named_unknown(address):
    addresses = Addresses(["0.0.0.0/0", "::/0"])

    assert not addresses.is_trusted(address)
    assert addresses.client(address) == "unknown"


def test_those_last_seen_are_kept_and_long_headers_are_not():
    addresses = Addresses(["10.0.0.0/8"])
    for number in range(CLIENTS + 100):
        addresses.client(PROXY, f"192.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert addresses.find_forwarded.cache_info().currsize == CLIENTS
    padded = "203.0.113.1, " * (LONGEST_KEPT // 10) + "198.51.100.7"
    before = addresses.find_forwarded.cache_info()

    assert addresses.client(PROXY, padded) == "198.51.100.7"
    assert addresses.find_forwarded.cache_info() == before
