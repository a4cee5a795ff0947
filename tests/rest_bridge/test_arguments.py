"""What a query string or a body may say before anything is checked against a tool's schema."""

import pytest

from rest_bridge.arguments import MOST_PARAMETERS, from_body, from_query
from toolserver.errors import InvalidArguments, InvalidJson, UnsupportedMediaType


def test_a_query_becomes_text_by_name_and_an_empty_value_stays():
    assert from_query(b"symbol=BTC&note=&q=a%20b%2Cc") == {"symbol": "BTC", "note": "", "q": "a b,c"}
    assert from_query(b"") == {}


def test_a_parameter_given_twice_is_refused_by_name():
    with pytest.raises(InvalidArguments) as refused:
        from_query(b"symbol=BTC&range=1d&symbol=ETH")

    assert [error["loc"] for error in refused.value.extra["errors"]] == ["symbol"]


@pytest.mark.parametrize("query", [b"q=%ff", b"q=\xff", b"&".join(b"p%d=1" % n for n in range(MOST_PARAMETERS + 1))])
def test_a_query_that_is_not_utf_8_or_far_too_long_is_refused(query):
    with pytest.raises(InvalidArguments):
        from_query(query)


@pytest.mark.parametrize("kind", [None, b"application/json", b"Application/JSON; charset=utf-8", b"application/x+json"])
def test_a_json_object_is_read_under_any_json_type(kind):
    assert from_body(b'{"a": [1]}', kind) == {"a": [1]}


def test_an_empty_body_is_an_empty_object_whatever_its_type():
    assert from_body(b" \n", b"text/plain") == {}


def test_another_media_type_is_refused():
    with pytest.raises(UnsupportedMediaType):
        from_body(b"a=1", b"application/x-www-form-urlencoded")


@pytest.mark.parametrize("body", [b"{", b"[1]", b'"text"', b"null", b"\xff", b"[" * 100_000])
def test_what_is_no_json_object_is_refused(body):
    with pytest.raises(InvalidJson):
        from_body(body, b"application/json")
