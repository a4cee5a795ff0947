import ipaddress
import socket
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolserver.core.visible_text import INVISIBLE
from toolserver.webhooks.egress import EgressGuard, TargetRefused

GUARD = EgressGuard()
LOCAL = EgressGuard(allow_loopback=True)

REFUSED_HOSTS = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "017700000001",
    "0",
    "0.0.0.0",
    "00.0.0.0",
    "127.0.0.1.",
    "127。0。0。1",
    "１２７.0.0.1",
    "①②⑦.0.0.1",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "a.localhost",
    "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
    "10.0.0.1",
    "100.64.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::1]",
    "[2002:7f00:1::]",
    "[2001::1]",
    "[2001:db8::1]",
    "[3fff::1]",
    "[5f00::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[fe80::1%25lo]",
    "[fec0::1]",
    "[ff02::1]",
    "intranet",
    "metadata.google.internal",
    "printer.local",
    "router.home.arpa",
    "db.corp",
]
REFUSED_URLS = [
    "",
    "hook",
    "//example.com/hook",
    "ftp://example.com",
    "file:///etc/passwd",
    "https://",
    "https:///hook",
    "https://user@example.com",
    "https://user:secret@example.com",
    "https://@example.com",
    "https://example.com:22",
    "https://example.com:80",
    "https://example.com:0",
    "https://example.com:99999",
    "http://example.com",
    "http://example.com:443",
    "https://exa mple.com",
    "https://example.com/a\nb",
    "https://example.com\\@127.0.0.1",
    "https://example.com\t",
    "https://example.com/" + "a" * 2000,
    "https://[::1",
    "https://1.2.3.4.5",
    "https://256.256.256.256",
]


@pytest.mark.parametrize("host", REFUSED_HOSTS)
def test_a_host_that_is_not_public_is_refused_in_every_spelling(host):
    for url in (f"https://{host}/hook", f"https://{host}:8443/hook", f"http://{host}/"):
        with pytest.raises(TargetRefused):
            GUARD.check_url(url)


@pytest.mark.parametrize("url", REFUSED_URLS)
def test_a_url_that_is_none_or_leads_elsewhere_is_refused(url):
    with pytest.raises(TargetRefused) as refused:
        GUARD.check_url(url)
    assert refused.value.reason


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/hook",
        "https://example.com:8443/hook?a=b",
        "https://münchen.example/",
        "https://1.1.1.1/hook",
        "https://[2606:4700:4700::1111]/hook",
        "HTTPS://EXAMPLE.COM/",
    ],
)
def test_a_public_https_url_is_taken(url):
    assert GUARD.check_url(url).scheme == "https"


def test_the_fragment_stays_behind():
    assert str(GUARD.check_url("https://example.com/a#b")) == "https://example.com/a"


def test_the_development_switch_adds_this_machine_and_nothing_else():
    for url in ("http://127.0.0.1:5000/", "http://localhost:5000/", "https://[::1]:5000/", "http://a.localhost:1/"):
        assert LOCAL.check_url(url)
    for url in ("http://10.0.0.1:5000/", "https://192.168.1.1/", "http://example.com/", "https://example.com:5000/"):
        with pytest.raises(TargetRefused):
            LOCAL.check_url(url)


ADDRESSES = [host.strip("[]").partition("%")[0] for host in REFUSED_HOSTS]


def is_address(text):
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


@pytest.mark.parametrize("address", [a for a in ADDRESSES if is_address(a)])
def test_a_socket_for_an_address_that_is_not_public_is_never_opened(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with pytest.raises(TargetRefused):
        GUARD.open_socket((family, socket.SOCK_STREAM, 0, "", (address, 443)))


def test_a_socket_is_opened_for_public_addresses_on_two_ports_only():
    for port in (443, 8443):
        GUARD.open_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("1.1.1.1", port))).close()
    with pytest.raises(TargetRefused):
        GUARD.open_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("1.1.1.1", 22)))
    with pytest.raises(TargetRefused):
        GUARD.open_socket((socket.AF_UNIX, socket.SOCK_STREAM, 0, "", ("/run/x", 443)))
    with pytest.raises(TargetRefused):
        GUARD.open_socket((socket.AF_INET6, socket.SOCK_STREAM, 0, "", ("2606:4700::1", 443, 0, 3)))


def test_one_address_that_is_not_public_refuses_a_name():
    GUARD.check_all(["1.1.1.1", "2606:4700:4700::1111"])
    with pytest.raises(TargetRefused):
        GUARD.check_all(["1.1.1.1", "10.0.0.1"])
    with pytest.raises(TargetRefused):
        GUARD.check_address("not an address")


@given(st.ip_addresses(v=4))
def test_no_number_spells_an_address_that_its_usual_form_would_not(address):
    for text in (str(int(address)), hex(int(address)), f"0{int(address):o}"):
        with pytest.raises(TargetRefused):
            GUARD.check_url(f"https://{text}/")


SCHEMES = (
    *("ms-msdt:", "search-ms:", "shell:", "ssh:", "chrome-extension:", "javascript:", "data:", "intent:", "file:"),
    *(
        "vbscript:",
        "blob:",
        "about:",
        "mailto:",
        "tel:",
        "smb:",
        "gopher:",
        "dict:",
        "ldap:",
        "ws:",
        "wss:",
        "http+unix:",
    ),
)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_nothing_but_https_is_delivered_to_in_whatever_form_it_is_written(scheme):
    for rest in ("x", "/x", "//x", "//example.com/hook", "///x", "?x", "", "https://example.com/"):
        for written in (scheme, scheme.upper(), scheme.title()):
            with pytest.raises(TargetRefused):
                GUARD.check_url(written + rest)


HIDDEN = [chr(point) for point in range(sys.maxunicode + 1) if INVISIBLE.match(chr(point))]


@pytest.mark.parametrize("place", ["https://exa{}mple.com/", "https://example.com/a{}b", "https://example.com/?a={}b"])
def test_no_character_that_nobody_sees_is_taken_at_any_place_of_a_url(place):
    assert len(HIDDEN) > 4000
    for hidden in HIDDEN:
        with pytest.raises(TargetRefused):
            GUARD.check_url(place.format(hidden))


def test_line_ends_and_tabs_are_refused_raw_and_stay_encoded_as_they_are_written():
    base = "https://example.com/hook?k=1"
    for added in ("\r", "\n", "\t", "\r\nX-A: b", "\0", "\x85", "\u2028"):
        for place in range(len(base) + 1):
            with pytest.raises(TargetRefused):
                GUARD.check_url(base[:place] + added + base[place:])
    kept = GUARD.check_url("https://example.com/a%0d%0Ab?c=%0D%0a%09")
    assert (kept.raw_path, kept.raw_query_string) == ("/a%0D%0Ab", "c=%0D%0a%09")


@pytest.mark.parametrize("port", ["４４３", "4٤3", "44③", "443\u0660", "+443", "4_43", "0x1bb"])
def test_a_port_has_the_digits_0_to_9_and_no_others(port):
    with pytest.raises(TargetRefused):
        GUARD.check_url(f"https://example.com:{port}/")


def test_a_name_of_a_foreign_script_is_one_as_it_is_sent_to_the_resolver():
    assert str(GUARD.check_url("https://münchen.example.org/ä")) == "https://xn--mnchen-3ya.example.org/%C3%A4"
