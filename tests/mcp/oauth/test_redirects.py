"""Redirect addresses: exact, but for the port of a program on the person's own machine."""

import pytest

from toolserver.core.visible_text import INVISIBLE
from toolserver.mcp.oauth.clients import clean_name
from toolserver.mcp.oauth.redirects import (
    MOST_URI,
    MOST_URIS,
    RedirectRefused,
    check_redirect_uri,
    describe_redirect,
    is_registered,
)

HOST = "https://host.example/back?of=one"
LOOPBACK = "http://127.0.0.1:3000/callback"


@pytest.mark.parametrize(
    "uri",
    [
        HOST,
        LOOPBACK,
        "http://localhost/",
        "http://[::1]:9/x",
        "cursor://anysphere.cursor-mcp/oauth/callback",
        "com.example.app:/back",
        "https://host.example:8443/",
        "vscode://publisher.app/back",
        "https://h/".ljust(1000, "a"),
        f"https://{'h' * 253}/",
        "claude://oauth/callback",
        "vscode-insiders://publisher.app/back",
        "windsurf://codeium.windsurf/oauth",
        "zed:/oauth",
        "http://localhost",
        "http://[::1]:65535/x?y",
        f"{'a' * 25}.{'b' * 25}:/x",
    ],
)
def test_addresses_that_may_be_registered(uri):
    check_redirect_uri(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "http://host.example/back",
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "https://host.example/#part",
        "https://me@host.example/",
        "https://",
        "//host.example/",
        "/back",
        "",
        "x",
        "https://host.example/ä",
        "https://host.example/\n",
        "https://host.example/ a",
        "https://host.example\\@x/",
        "https://host.example:99999/",
        "https://[::1/",
        "http://127.0.0.1.evil.example/",
        "app:",
        "https://h/".ljust(1001, "a"),
        f"https://{'h' * 254}/",
        "a:/x",
        f"{'a' * 52}:/x",
        "https://host.example;img-src/",
        "https://*/",
        "vbscript:x",
        "blob:https://host.example/1",
        "a b:/x",
        "app:/x",
        "search-ms:query=x",
        "ms-msdt:/id",
        "steam://run/1",
        "zoommtg://x",
        "Cursor://x",
        "cursor:",
        ".app:/x",
        "com..app:/x",
        "com.app.:/x",
        "https://host.example:/",
        "https://host.example:٣/",
        "https://host.example:443:443/",
        "https://host.example/<x>",
        'https://host.example/"x',
        "https://host.example/\tx",
        "https://host.example/\r\nx: y",
        "http://local\thost/",
        "http://localhost#",
        "http://localhost:/",
        "http://localhost%00/",
        "cursor://x\n/y",
    ],
)
def test_addresses_that_nobody_may_be_sent_to(uri):
    with pytest.raises(RedirectRefused):
        check_redirect_uri(uri)


SCHEMES = (
    *("ms-msdt:", "search-ms:", "shell:", "ssh:", "chrome-extension:", "javascript:", "data:", "intent:", "file:"),
    *("vbscript:", "blob:", "about:", "view-source:", "ms-word:", "mailto:", "tel:", "sms:", "smb:", "ftp:", "ws:"),
)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_schemes_that_open_what_a_stranger_writes_are_refused_in_every_form(scheme):
    for rest in ("x", "/x", "//x", "//host.example/back", "///x", "?x", ""):
        for written in (scheme, scheme.upper(), scheme.title()):
            with pytest.raises(RedirectRefused):
                check_redirect_uri(written + rest)


@pytest.mark.parametrize("base", [HOST, LOOPBACK, "cursor://host/back", "com.example.app:/back"])
def test_line_ends_tabs_user_names_and_foreign_letters_are_refused_at_every_place(base):
    """Also encoded controls: a program may decode them before it reads the rest."""
    controls = [*map(chr, (*range(0x21), 0x7F)), *(f"%{n:02x}" for n in (*range(0x20), 0x7F)), "%0D%0a", "%1F"]
    for added in (*controls, "\\", "\u0430", "\u3002", "\uff0f", "#"):
        for place in range(0, len(base) + 1, 3):
            with pytest.raises(RedirectRefused):
                check_redirect_uri(base[:place] + added + base[place:])
    scheme, _, rest = base.partition("://")
    if rest:
        with pytest.raises(RedirectRefused):
            check_redirect_uri(f"{scheme}://me:word@{rest}")


def test_no_character_that_nobody_sees_is_taken_in_an_address_or_shown_in_a_name():
    hidden = [chr(n) for n in range(0x110000) if INVISIBLE.fullmatch(chr(n))]
    assert len(hidden) > 4_000
    for character in hidden:
        with pytest.raises(RedirectRefused):
            check_redirect_uri(f"https://host.example/{character}")
    assert clean_name("My " + "".join(hidden) + "app") == "My app"


def test_a_name_of_other_letters_is_shown_as_it_is_looked_up():
    assert describe_redirect("https://xn--pple-43d.example/back").shown == "xn--pple-43d.example"


@pytest.mark.parametrize(
    "uri",
    [
        HOST + "&x",
        "https://host.example/back",
        "https://HOST.example/back?of=one",
        "https://host.example:443/back?of=one",
        "http://host.example/back?of=one",
        "https://host.example.evil.example/back?of=one",
        "",
    ],
)
def test_a_registered_address_is_compared_letter_by_letter(uri):
    assert is_registered(HOST, [LOOPBACK, HOST])
    assert not is_registered(uri, [LOOPBACK, HOST])


def test_on_loopback_any_port_will_do_and_nothing_else_may_differ():
    registered = [LOOPBACK]
    assert is_registered("http://127.0.0.1:51234/callback", registered)
    assert is_registered("http://127.0.0.1/callback", registered)
    assert not is_registered("http://localhost:3000/callback", registered)
    assert not is_registered("http://127.0.0.1:3000/callback/", registered)
    assert not is_registered("http://127.0.0.1:3000/callback?x=1", registered)
    assert not is_registered("https://127.0.0.1:3000/callback", registered)
    assert not is_registered("http://a@127.0.0.1:3000/callback", registered)
    assert not is_registered("http://127.0.0.1:3000/callback", ["http://evil.example:3000/callback"])
    assert not is_registered("http://127.0.0.1:x/callback", registered)


@pytest.mark.parametrize("more", ["#", "?", "\t", "\r", "\n", "\r\nx: y", ":", "/", "\x00", " ", "é"])
def test_what_a_parser_would_drop_makes_another_address(more):
    for address in ("http://localhost", "http://localhost:3000/callback"):
        assert is_registered(address, [address])
        assert not is_registered(address + more, [address])
        assert not is_registered(more + address, [address])
    assert not is_registered(f"http://localhost{more}:3000/callback", ["http://localhost:3000/callback"])


def test_an_address_that_no_browser_may_be_sent_to_is_not_registered_even_if_a_table_says_so():
    assert not is_registered("search-ms:query=x", ["search-ms:query=x"])


@pytest.mark.parametrize(
    ("uri", "shown", "local", "source", "own_scheme"),
    [
        (HOST, "host.example", False, "https://host.example", False),
        ("https://Host.example:8443/", "host.example:8443", False, "https://host.example:8443", False),
        (LOOPBACK, "a program on this device (127.0.0.1:3000)", True, "http://127.0.0.1:3000", False),
        ("cursor://x/y", "an app on this device (cursor:)", True, "cursor:", True),
        ("com.example.app:/back", "an app on this device (com.example.app:)", True, "com.example.app:", True),
    ],
)
def test_a_person_sees_where_an_address_leads(uri, shown, local, source, own_scheme):
    assert describe_redirect(uri) == (shown, local, source, own_scheme)


def test_a_registration_has_room_for_so_many_addresses_of_such_a_length():
    assert (MOST_URI, MOST_URIS) == (1000, 20)
