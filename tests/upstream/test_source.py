"""What a source says to send, and how one that failed says why."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest

from tests.calls.parts import number_source
from toolserver.upstream import source as source_module
from toolserver.upstream.host_lane import RequestWithheld
from toolserver.upstream.source import (
    Gauge,
    Get,
    HostGroup,
    HostRefused,
    Licence,
    Proof,
    Source,
    SourceDown,
    SourceError,
    SourceUnproved,
    count_listed,
    is_empty,
)
from toolserver.upstream.source_health import CircuitOpen

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


@pytest.mark.parametrize(
    ("declared", "is_limited"),
    [
        ({}, False),
        ({"newest_max_s": 60}, True),
        ({"moves": lambda level: level}, True),
        ({"proof": Proof.by_stamp(60)}, True),
        ({"proof": Proof.by_newest(60)}, True),
        ({"proof": Proof.harmless("nobody reads what this says")}, False),
    ],
)
def test_an_answer_that_is_no_longer_written_is_found_out_by_its_time_or_by_its_stillness(declared, is_limited):
    assert replace(TIDE, **declared).has_age_limit is is_limited


def test_a_reason_for_having_no_age_limit_is_a_sentence_and_stands_beside_none():
    assert not replace(TIDE, ageless="a tide table carries no time").has_age_limit
    for declared in ({"ageless": "no time"}, {"ageless": "a tide table carries no time", "newest_max_s": 60}):
        with pytest.raises(TypeError, match="age limit"):
            replace(TIDE, **declared)


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


def test_a_probe_is_a_query_or_made_from_the_time():
    at = datetime(2027, 1, 15, tzinfo=UTC)
    assert replace(TIDE, probe="BTC").make_probe(at) == "BTC"
    assert replace(TIDE, probe=lambda now: now.year).make_probe(at) == 2027
    assert TIDE.make_probe(at) is None


def test_what_a_source_does_not_declare_is_the_cautious_choice():
    bare = Source("Harbour.bare", ONE, TIDE.parse, licence=TIDE.licence, hosts=TIDE.hosts, fresh_s=60)
    assert (bare.keep_s, bare.timeout_s, bare.max_bytes, bare.least) == (86_400, 8, 2_097_152, 1)
    declared = ("prefix", "conditional", "advances", "user_input", "few_choices", "untrusted")
    assert [getattr(bare, name) for name in declared] == [False] * 6
    assert (bare.ageless, bare.lists, bare.size_varies, bare.also) == ("", "", "", frozenset())
    for name in ("newest", "stamp", "newest_max_s", "proof", "moves", "covers", "gauge", "probe"):
        assert getattr(bare, name) is None


def test_what_a_group_of_hosts_does_not_declare_is_one_set_of_limits_half_of_it_reserved():
    group = HostGroup("harbour", 1, 0, 60, 60)
    assert (group.each_host, group.key, group.keyed_budget, group.keyed_gap_s) == (False, None, None, None)
    assert (group.reserve, group.refusing) == (0.5, frozenset())
    assert Gauge(dict, 0.5).absolute is False


@pytest.mark.parametrize("name", ["ageless", "size_varies"])
def test_a_reason_has_four_words_at_least(name):
    assert getattr(replace(TIDE, **{name: "it has four words"}), name) == "it has four words"
    with pytest.raises(TypeError, match="less than a sentence"):
        replace(TIDE, **{name: "it has three"})


NOW = datetime(2027, 1, 15, 8, tzinfo=UTC)
REASON = "nobody is misled by it"


class Listed(NamedTuple):
    rows: tuple[int, ...]
    stamp: datetime | None = None


@pytest.mark.parametrize("how", ["stamp", "newest"])
@pytest.mark.parametrize(("age_s", "proved"), [(0, True), (60, True), (61, False), (None, False)])
def test_a_time_proves_it_as_long_as_it_is_young(how, age_s, proved):
    proof = Proof(how, 60)
    time = None if age_s is None else NOW - timedelta(seconds=age_s)
    times = {"stamp": None, "newest": None} | {how: time}
    if proved:
        proof.check((), now=NOW, **times)
    else:
        with pytest.raises(SourceUnproved):
            proof.check((1, 2), now=NOW, **times)


def test_neither_time_stands_for_the_other():
    for proof, times in ((Proof.by_stamp(60), (None, NOW)), (Proof.by_newest(60), (NOW, None))):
        with pytest.raises(SourceUnproved):
            proof.check((1,), stamp=times[0], newest=times[1], now=NOW)


def test_an_empty_answer_of_one_provider_alone_is_not_believed():
    proof = Proof.by_second("there is always one of them")
    proof.check((1,), stamp=None, newest=None, now=NOW)
    with pytest.raises(SourceUnproved):
        proof.check((), stamp=NOW, newest=NOW, now=NOW)


def test_what_harms_nobody_needs_no_proof():
    Proof.harmless(REASON).check((), stamp=None, newest=None, now=NOW)


@pytest.mark.parametrize("how", ["second", "harmless"])
def test_a_proof_that_is_a_reason_gives_one(how):
    with pytest.raises(TypeError, match="reason"):
        Proof(how, reason="trust me")


@pytest.mark.parametrize("how", ["stamp", "newest"])
def test_a_proof_by_time_has_a_limit(how):
    with pytest.raises(TypeError, match="within"):
        Proof(how)


@pytest.mark.parametrize(
    ("value", "empty"),
    [((), True), ((1,), False), (Listed(()), True), (Listed((1,)), False), (None, True), (3.5, False), ({}, True)],
)
def test_lists_and_records_of_lists_may_be_empty(value, empty):
    assert is_empty(value) is empty


def test_a_source_that_may_be_empty_without_a_proof_cannot_be_made():
    with pytest.raises(TypeError, match="no proof of life"):
        number_source(least=0)
    assert number_source(least=0, proof=Proof.harmless(REASON)).least == 0


@pytest.mark.parametrize(
    ("value", "count"),
    [
        ((1, 2), 2),
        ([], 0),
        ({"a": 1}, 1),
        (Listed((1, 2, 3)), 3),
        (None, 0),
        ("text", None),
        (b"bytes", None),
        (7, None),
    ],
)
def test_of_a_list_or_a_record_of_one_the_items_are_counted(value, count):
    assert count_listed(value) == count


def test_what_proves_nothing_is_said():
    for proof, stamp, said in (
        (Proof.by_stamp(60), None, "no stamp proves it"),
        (Proof.by_stamp(60), NOW - timedelta(minutes=2), "its stamp is from 2027-01-15 07:58"),
        (Proof.by_second(REASON), None, "nothing in the answer proves it"),
    ):
        with pytest.raises(SourceUnproved) as unproved:
            proof.check((), stamp=stamp, newest=None, now=NOW)
        assert unproved.value.reason == f"unproved_empty: {said}"


@pytest.mark.parametrize("how", ["second", "harmless"])
def test_a_reason_of_four_words_is_a_sentence(how):
    assert Proof(how, reason="it has four words").reason == "it has four words"
    with pytest.raises(TypeError, match="in a sentence"):
        Proof(how, reason="it has three")


def test_a_reason_is_a_word_and_at_most_a_hundred_characters_of_detail():
    assert SourceDown().reason == "connect"
    assert SourceDown("refused", word="http_503").reason == "http_503: refused"
    assert SourceDown("x" * 500).reason == "connect: " + "x" * 100
    assert SourceError("odd").reason == "changed: odd"


def test_a_refusal_of_ours_says_nothing_about_the_upstream():
    assert [error.was_sent for error in (SourceDown(), RequestWithheld(), CircuitOpen())] == [True, False, False]


def test_it_says_when_the_upstream_is_to_be_asked_again():
    assert (SourceDown().retry_after_s, SourceDown(retry_after_s=5).retry_after_s) == (None, 5)


def test_a_host_was_asked_unless_it_refused_lately():
    assert [HostRefused("http 403").was_sent, HostRefused("lately", was_sent=False).was_sent] == [True, False]
    assert HostRefused("http 403").reason == "refused: http 403"


def test_of_errors_in_groups_the_first_is_found_and_what_is_none_of_a_source_is_raised():
    down = SourceDown("refused")
    assert SourceError.first_of(ExceptionGroup("a", [down, SourceError()])) is down
    assert SourceError.first_of(ExceptionGroup("a", [ExceptionGroup("b", [down]), KeyError()])) is down
    bug = ExceptionGroup("a", [KeyError("a bug"), down])
    with pytest.raises(ExceptionGroup) as raised:
        SourceError.first_of(bug)
    assert raised.value is bug


def test_each_kind_of_failure_has_its_word():
    kinds = [each for each in vars(source_module).values() if isinstance(each, type) and issubclass(each, SourceError)]
    assert {kind.__name__: kind.word for kind in kinds} == {
        "SourceError": "changed",
        "SourceDown": "connect",
        "NotConnected": "connect",
        "NoAddress": "connect",
        "SourceLimited": "rate_limited",
        "SourceRefused": "refused",
        "HostRefused": "refused",
        "SourceChanged": "changed",
        "SourceEmpty": "empty",
        "SourceUnproved": "unproved_empty",
        "SourceFrozen": "frozen",
        "SourceTooLarge": "too_large",
        "SourceImplausible": "implausible",
        "SourceExcluded": "licence",
        "SourceUnusable": "no_key",
    }
