"""What proves that a source is alive."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest

from tests.calls.parts import number_source
from toolserver.upstream.proof import Proof, count_listed, is_empty
from toolserver.upstream.source_errors import SourceUnproved

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
