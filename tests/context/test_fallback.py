"""Fallbacks in order, hedged, overtaken and timed out."""

from dataclasses import replace

import anyio
import pytest

from tests.context.sources import NOW, A, Arranged, B, C, answer
from tests.tools.faulty.skipping import SkippingLoop
from toolserver.context.fallback import FallbackChain, FallbackReader, attempt, via
from toolserver.context.provenance import SourceNote
from toolserver.upstream.source import SourceChanged, SourceDown, SourceError, SourceExcluded, SourceUnusable


@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio", {"loop_factory": SkippingLoop}


def reader_of(reader, **more):
    return FallbackReader(reader, "data", lambda: NOW, 120.0, **more)


def chain_of(reader, *fallbacks, hedge_after_s=2.5, within_s=60.0):
    readings = [reader_of(reader) for _ in fallbacks]
    return FallbackChain(fallbacks, readings, hedge_after_s, anyio.current_time() + within_s)


def noted(notes):
    return {note.source.name.removeprefix("Test."): note.reason or note.status for note in notes}


async def test_the_first_that_answers_gives_the_value_and_no_other_is_asked():
    reader = Arranged(A=1, B=2)
    chain = chain_of(reader, via(A), via(B))
    result = await chain.run()
    assert (result.index, result.value, reader.asked) == (0, 1, ["A"])
    assert (chain.list_failures(), chain.find_missed(0)) == ([], None)


async def test_when_one_fails_the_next_is_asked_at_once_and_the_failure_is_listed():
    began = anyio.current_time()
    chain = chain_of(Arranged(C=3), via(A), via(B), via(C))
    result = await chain.run()
    assert (result.index, result.value, anyio.current_time() - began) == (2, 3, pytest.approx(0, abs=0.5))
    assert noted(chain.list_failures()) == {"A": "http_503: arranged", "B": "http_503: arranged"}
    assert chain.find_missed(2) == (A, "http_503")


async def test_a_slow_one_is_overtaken_by_the_next_which_starts_after_the_pause():
    reader = Arranged(A=1, B=2)
    reader.takes_s = {"A": 30}
    began = anyio.current_time()
    chain = chain_of(reader, via(A), via(B))
    result = await chain.run()
    assert (result.value, anyio.current_time() - began) == (2, pytest.approx(2.5, abs=0.5))
    assert noted(chain.list_failures()) == {"A": "timeout: overtaken"}
    assert chain.find_missed(1) == (A, "timeout")


async def test_a_slow_one_that_answers_before_its_successor_still_gives_the_value():
    reader = Arranged(A=1, B=2)
    reader.takes_s = {"A": 4, "B": 30}
    result = await chain_of(reader, via(A), via(B)).run()
    assert (result.index, reader.asked) == (0, ["A", "B"])


async def test_when_its_time_is_over_a_chain_has_no_result_and_those_that_hang_timed_out():
    reader = Arranged()
    reader.takes_s = {"B": 1000}
    chain = chain_of(reader, via(A), via(B), within_s=10)
    assert await chain.run() is None
    assert noted(chain.list_failures()) == {"A": "http_503: arranged", "B": "timeout: no answer in the available time"}


async def test_a_source_without_its_key_is_never_listed_and_one_barred_by_its_licence_is():
    chain = chain_of(Arranged(A=SourceUnusable("A"), B=SourceExcluded("no"), C=3), via(A), via(B), via(C))
    result = await chain.run()
    assert noted(chain.list_failures()) == {"B": "licence: no"}
    assert chain.find_missed(result.index) is None


@pytest.mark.parametrize(
    ("errors", "chosen"),
    [
        ({"A": SourceUnusable("a"), "B": SourceDown("b")}, "b"),
        ({"A": SourceDown("a"), "B": SourceDown("b")}, "a"),
        ({"A": SourceUnusable("a"), "B": SourceUnusable("b")}, "a"),
    ],
)
async def test_the_error_of_a_chain_is_the_first_of_a_usable_source(errors, chosen):
    chain = chain_of(Arranged(**errors), via(A), via(B))
    await chain.run()
    assert str(chain.choose_error()) == chosen


async def test_a_chain_without_fallbacks_has_no_usable_source():
    chain = chain_of(Arranged())
    assert await chain.run() is None
    assert isinstance(chain.choose_error(), SourceUnusable)


async def test_an_answer_that_does_not_contain_what_is_needed_counts_as_changed():
    with pytest.raises(SourceChanged, match="KeyError"):
        await attempt(via(A, None, lambda found: {}["x"]), reader_of(Arranged(A=1)))
    assert await attempt(via(A, None, lambda found: found + 1), reader_of(Arranged(A=1))) == 2

    def broken(found):
        raise AssertionError("ours")

    with pytest.raises(AssertionError):
        await attempt(via(A, then=broken), reader_of(Arranged(A=1)))


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (answer(1), "live"),
        (answer(1, age_s=30, latency_ms=None), "cached"),
        (answer(1, age_s=121, latency_ms=None, failure="http_503"), "stale"),
    ],
)
async def test_a_read_is_noted_with_its_age(found, status):
    reading = reader_of(Arranged(A=found))
    assert await reading.read(A) == 1
    (note,) = reading.notes
    assert (note.source, note.section, note.status, note.reason) == (A, "data", status, found.failure)
    assert note.fetched_at == found.fetched_at


@pytest.mark.parametrize(("value", "part"), [(7, "7 of many"), (0, None)])
async def test_a_note_says_what_part_of_the_upstreams_list_was_read(value, part):
    paged = replace(A, covers=lambda value: f"{value} of many" if value else None)
    reading = reader_of(Arranged(A=value))
    await reading.read(paged)
    assert [note.coverage.part for note in reading.notes] == [part]


async def test_a_reader_of_kept_answers_asks_nobody():
    reader = Arranged(A=1)
    reader.kept_answers = {"A": answer(5, age_s=3000, latency_ms=None)}
    reading = reader_of(reader, kept_only=True)
    assert (await reading.read(A), reading.notes[0].status, reader.asked) == (5, "stale", [])
    with pytest.raises(SourceDown) as caught:
        await reading.read(B)
    assert caught.value.word == "empty"


async def test_a_source_that_can_be_done_without_is_noted_and_not_blamed():
    reader = Arranged(A=1)
    reader.takes_s = {"C": 100}
    reading = reader_of(reader)
    await reading.read(A)
    assert await reading.attempt(B) is None
    assert await reading.attempt(C, within_s=3) is None
    assert noted(reading.notes) == {"A": "live", "B": "http_503: arranged", "C": "timeout: no answer within 3 s"}
    assert reading.asked is A


async def test_a_missing_key_is_no_failure_to_note():
    reading = reader_of(Arranged(A=SourceUnusable("A")))
    assert (await reading.attempt(A), reading.notes) == (None, [])


@pytest.mark.parametrize(("age_s", "is_given"), [(100, True), (121, False)])
async def test_a_kept_answer_is_read_with_its_note_unless_it_is_stale(age_s, is_given):
    reader = Arranged()
    reader.kept_answers = {"A": answer(5, age_s=age_s, latency_ms=None)}
    reading = reader_of(reader)
    found = await reading.read_kept(A)
    assert (found and (found[0], found[1].status)) == ((5, "cached") if is_given else None)
    assert (reading.notes, reader.asked, await reading.read_kept(B)) == ([], [], None)


async def test_a_fault_of_ours_is_not_taken_for_a_source_that_failed():
    async def broken(reading):
        raise RuntimeError("ours")

    with pytest.raises(ExceptionGroup) as caught:
        await chain_of(Arranged(B=2), broken, via(B)).run()
    assert not isinstance(caught.value.exceptions[0], SourceError)


async def test_answers_that_do_not_fit_together_are_the_failure_of_all_that_were_read():
    reading = reader_of(Arranged(A=1, B=2))

    async def judged(reading):
        await reading.read(A)
        await reading.read(B)
        raise SourceChanged("they do not fit together")

    with pytest.raises(SourceChanged) as caught:
        await attempt(judged, reading)
    assert set(reading.list_blamed(caught.value)) == {A, B}


async def test_a_source_that_fails_is_blamed_alone_whatever_was_read_before():
    reading = reader_of(Arranged(A=1))

    async def broken(reading):
        await reading.read(A)
        await reading.read(B)

    with pytest.raises(SourceDown) as caught:
        await attempt(broken, reading)
    assert reading.list_blamed(caught.value) == [B]
    assert reading.list_blamed(SourceUnusable("B")) == []


@pytest.mark.parametrize(
    ("found", "word"),
    [({}, "KeyError"), ([], "TypeError"), (0, "ZeroDivisionError"), ("x", "ValueError"), (None, "AttributeError")],
)
async def test_every_way_in_which_an_answer_lacks_what_is_needed_is_a_change_of_the_source(found, word):
    def needed(value):
        if value == 0:
            return 1 / value
        return value.real if value is None else value["x"] if isinstance(value, dict | list) else int(value)

    with pytest.raises(SourceChanged, match=word) as caught:
        await attempt(via(A, then=needed), reader_of(Arranged(A=answer(found))))
    assert caught.value.__cause__ is not None


async def test_the_query_and_the_age_that_is_promised_reach_the_source():
    asked = []

    class Desk:
        async def fresh(self, source, query, *, sla_s):
            asked.append((source, query, sla_s))
            return answer(1)

    assert await via(A, "q")(reader_of(Desk())) == 1
    assert asked == [(A, "q", 120.0)]


async def test_after_an_optional_source_has_answered_the_one_read_before_is_still_blamed():
    reading = reader_of(Arranged(A=1, B=2))
    assert await reading.attempt(B) == 2
    assert reading.asked is B
    await reading.read(A)
    await reading.attempt(B)
    assert reading.asked is A


async def test_when_its_first_source_is_optional_and_fails_nobody_is_blamed():
    reading = reader_of(Arranged())
    assert await reading.attempt(A) is None
    assert (reading.asked, reading.list_blamed(SourceDown("x"))) == (None, [])


async def test_without_a_limit_an_optional_source_is_waited_for():
    reader = Arranged(A=1)
    reader.takes_s = {"A": 1000}
    assert await reader_of(reader).attempt(A) == 1


async def test_rows_that_were_left_out_are_noted():
    reading = reader_of(Arranged(A=replace(answer(1), dropped=3, missing=("price",))))
    await reading.read(A)
    assert (reading.notes[0].coverage.dropped, reading.notes[0].coverage.missing) == (3, ("price",))


async def test_a_chain_starts_each_source_a_pause_after_the_one_before_it():
    reader, began = Arranged(C=3), anyio.current_time()
    reader.takes_s = {"A": 60, "B": 60}
    chain = chain_of(reader, via(A), via(B), via(C), hedge_after_s=4)
    result = await chain.run()
    assert (result.index, anyio.current_time() - began) == (2, pytest.approx(8, abs=0.01))
    assert noted(chain.list_failures()) == {"A": "timeout: overtaken", "B": "timeout: overtaken"}


async def test_only_those_before_the_one_that_answered_were_overtaken():
    reader = Arranged(A=1)
    reader.takes_s = {"A": 4, "B": 60}
    chain = chain_of(reader, via(A), via(B))
    assert (await chain.run()).index == 0
    assert chain.list_failures() == []


async def test_a_chain_gives_up_at_its_time_and_not_before():
    reader, began = Arranged(), anyio.current_time()
    reader.takes_s = {"A": 1000}
    chain = chain_of(reader, via(A), within_s=10)
    assert await chain.run() is None
    assert anyio.current_time() - began == pytest.approx(10, abs=0.01)
    assert chain.choose_error().word == "timeout"


async def test_a_failure_is_listed_in_its_section_as_one_without_a_time():
    chain = chain_of(Arranged(), via(A))
    await chain.run()
    assert chain.list_failures() == [SourceNote(A, "data", "error", reason="http_503: arranged")]


async def test_a_barred_source_is_passed_over_when_the_one_that_was_missed_is_named():
    chain = chain_of(Arranged(A=SourceExcluded("no"), C=3), via(A), via(B), via(C))
    await chain.run()
    assert chain.find_missed(2) == (B, "http_503")
    assert chain.find_missed(1) is None


async def test_of_answers_that_do_not_fit_together_an_optional_one_that_failed_is_not_to_blame():
    reading = reader_of(Arranged(A=1, C=3))

    async def judged(reading):
        await reading.read(A)
        await reading.attempt(B)
        await reading.read(C)
        raise SourceChanged("they do not fit together")

    with pytest.raises(SourceChanged) as caught:
        await attempt(judged, reading)
    assert reading.list_blamed(caught.value) == [C, A]
    assert reading.list_blamed(SourceDown("overtaken")) == [C]
