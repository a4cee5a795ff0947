"""What a source says to send."""

from dataclasses import replace

import pytest

from toolserver.upstream.proof import Proof
from toolserver.upstream.source import Get, HostGroup, Licence, Source

ONE, OTHER = Get("https://one.example/a"), Get("https://other.example/a")
TIDE = Source(
    "Harbour.tide",
    ONE,
    lambda body, query: body,
    licence=Licence("yes", "Harbour"),
    hosts=HostGroup("harbour", 1, 0, 60, 60),
    fresh_s=60,
    keep_s=60,
    timeout_s=1,
)


def test_a_source_that_may_be_empty_says_what_proves_that_it_lives():
    with pytest.raises(TypeError, match="proof of life"):
        replace(TIDE, least=0)
    assert replace(TIDE, least=0, proof=Proof.by_newest(60)).least == 0


@pytest.mark.parametrize("request_", [ONE, (ONE, OTHER)])
def test_a_constant_request_is_the_plan_whatever_is_asked_and_whatever_keys_there_are(request_):
    source = replace(TIDE, request=request_)

    assert source.plan(None, {}) == source.plan("x", {"KEY": "y"}) == request_


def test_a_function_makes_the_plan_from_the_query_and_the_keys():
    source = replace(TIDE, request=lambda query, keys: Get(query, headers=keys))

    assert source.plan("https://x.example", {"a": "b"}) == Get("https://x.example", headers={"a": "b"})
    assert replace(TIDE, request=lambda query, keys: None).plan(None, {}) is None


def test_sources_of_one_name_with_other_constant_requests_do_not_share_answers():
    assert TIDE.request_name != replace(TIDE, request=OTHER).request_name
    assert TIDE.request_name == replace(TIDE, fresh_s=1).request_name


def test_sources_are_compared_by_identity_and_shown_by_name():
    assert replace(TIDE) != TIDE
    assert (repr(TIDE), len({TIDE, replace(TIDE)})) == ("Source('Harbour.tide')", 2)


def test_the_query_itself_is_the_cache_key_unless_a_source_says_otherwise():
    assert TIDE.key("q") == "q"
    assert replace(TIDE, key=lambda query: query[0]).key(("a", "b")) == "a"
