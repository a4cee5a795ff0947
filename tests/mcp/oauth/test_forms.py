"""Parameters: each once, of bounded size, with one way for a client to name itself."""

import base64

import pytest

from toolserver.mcp.oauth.forms import (
    MOST_FORM,
    BadParameters,
    OAuthParameters,
    add_basic_credentials,
    cookies_of,
    header_of,
    read_form,
    read_parameters,
)

FORM = [(b"content-type", b"application/x-www-form-urlencoded; charset=utf-8")]


async def form(body, headers=FORM):
    async def receive():
        return {"type": "http.request", "body": body}

    return await read_form({"headers": headers}, receive)


def basic(text):
    return {b"authorization": b"Basic " + base64.b64encode(text.encode())}


def test_empty_parameters_count_as_left_out_and_resources_may_repeat():
    found = read_parameters(b"a=1&b=&resource=x&resource=y&c=%C3%A4+b")
    assert found == {"a": "1", "c": "ä b", "resource": "y"}
    assert found.resources == ("x", "y")


@pytest.mark.parametrize("query", [b"a=1&a=1", b"a=%ff", b"\xff=1", b"&".join(b"a%d=1" % n for n in range(60))])
def test_what_cannot_be_read_is_refused_without_its_values(query):
    with pytest.raises(BadParameters) as bad:
        read_parameters(query)
    assert "=1" not in str(bad.value)


def test_forty_parameters_are_read_and_no_more():
    pairs = [b"a%d=1" % n for n in range(41)]
    assert len(read_parameters(b"&".join(pairs[:40]))) == 40
    with pytest.raises(BadParameters, match="too many"):
        read_parameters(b"&".join(pairs))
    assert read_parameters(b"").resources == ()


async def test_a_form_has_its_type_and_a_bound():
    assert await form(b"a=1") == {"a": "1"}
    assert await form(b"a=1", [(b"content-type", b" Application/X-WWW-Form-URLencoded ")]) == {"a": "1"}
    assert await form(b"a=" + b"x" * (MOST_FORM - 2)) == {"a": "x" * (MOST_FORM - 2)}
    assert MOST_FORM == 16_384
    with pytest.raises(BadParameters, match="Content-Type"):
        await form(b"a=1", [])
    with pytest.raises(BadParameters, match="Content-Type"):
        await form(b"a=1", [(b"content-type", b"application/json")])
    with pytest.raises(BadParameters, match="bytes"):
        await form(b"a" * (MOST_FORM + 1))


def test_a_client_in_the_header_becomes_one_in_the_form():
    found = OAuthParameters()
    add_basic_credentials(found, basic("my%20id:s%3Acret"))
    assert found == {"client_id": "my id", "client_secret": "s:cret"}
    public = OAuthParameters(client_id="x")
    add_basic_credentials(public, basic("x:"))
    assert public == {"client_id": "x"}
    for headers in ({}, {b"authorization": b"Bearer x"}):
        add_basic_credentials(public, headers)
    assert public == {"client_id": "x"}
    again = OAuthParameters(client_id="x")
    add_basic_credentials(again, {b"authorization": b"bASIC  " + base64.b64encode(b"x:y:z") + b" "})
    assert again == {"client_id": "x", "client_secret": "y:z"}


@pytest.mark.parametrize(
    ("given", "headers"),
    [
        ({"client_id": "other"}, basic("x:y")),
        ({"client_secret": "z"}, basic("x:y")),
        ({}, basic("no colon")),
        ({}, {b"authorization": b"Basic !!!"}),
        ({}, {b"authorization": b"Basic e!Dp5"}),
        ({}, {b"authorization": b"Basic /w=="}),
    ],
)
def test_a_client_names_itself_once(given, headers):
    with pytest.raises(BadParameters):
        add_basic_credentials(OAuthParameters(given), headers)


def test_headers_and_cookies():
    scope = {"headers": [(b"cookie", b"a=1; b = 2;c"), (b"origin", b"https://x")]}
    assert cookies_of(scope) == {"a": "1", "b": "2"}
    assert header_of(scope, b"origin") == "https://x"
    assert header_of(scope, b"referer") == ""
