"""Cookies that scripts do not read, and requests that a page of another site sent."""

import pytest

from toolserver.core.cookies import Cookie, header_of, is_foreign

SITE = "https://data.example/path"


def scope(*headers):
    return {"headers": list(headers)}


def test_a_header_is_text_and_empty_if_it_is_absent():
    sent = scope((b"origin", b"https://x"))
    assert (header_of(sent, b"origin"), header_of(sent, b"referer")) == ("https://x", "")


def test_over_https_another_host_of_the_domain_cannot_set_it():
    plain, secure = Cookie("a", "Lax", is_secure=False), Cookie("a", "Strict", is_secure=True)
    assert plain.write("1") == (b"set-cookie", b"a=1; Path=/; HttpOnly; SameSite=Lax")
    assert secure.write("", max_age_s=0)[1] == b"__Host-a=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict; Secure"


def test_its_value_is_found_among_others_by_its_whole_name():
    sent = scope((b"cookie", b"b=1; __Host-a = 2;c"))
    assert Cookie("a", "Lax", is_secure=True).read(sent) == "2"
    assert Cookie("a", "Lax", is_secure=False).read(sent) == Cookie("c", "Lax", is_secure=False).read(sent) == ""


@pytest.mark.parametrize(
    ("headers", "foreign"),
    [
        ([], False),
        ([(b"origin", b"null")], False),
        ([(b"origin", b"HTTPS://data.example")], False),
        ([(b"origin", b"https://data.example.evil")], True),
        ([(b"origin", b"http://data.example")], True),
        ([(b"sec-fetch-site", b"same-origin")], False),
        ([(b"sec-fetch-site", b"same-site")], True),
        ([(b"sec-fetch-site", b"cross-site")], True),
    ],
)
def test_a_request_of_another_site_is_told_by_its_origin_or_by_what_the_browser_says(headers, foreign):
    assert is_foreign(scope(*headers), SITE) is foreign
