"""Readers that a tool reads sources through."""

from contextlib import suppress

import pytest

from tests.calls.parts import START
from toolserver.upstream.source import (
    CallReader,
    KeptReader,
    NoStore,
    SourceAnswer,
    SourceDown,
    StoredBody,
)


class Recorder:
    """A reader whose answer is how it was asked."""

    def __init__(self, latency_ms=None, failure=None):
        self.latency_ms, self.failure, self.fan_outs = latency_ms, failure, []

    async def fresh(self, source, query, **how):
        if self.failure is not None:
            raise self.failure
        self.fan_outs.append(how.pop("fan_out"))
        return SourceAnswer(how, START, None, None, self.latency_ms)

    async def kept(self, source, query):
        return "kept"


async def test_a_call_says_in_each_read_whether_its_arguments_were_chosen_and_whether_it_can_wait():
    reader = CallReader(Recorder(), is_chosen=True, is_patient=False)
    answer = await reader.fresh(None, None, sla_s=5)
    assert answer.value == {"sla_s": 5, "is_chosen": True, "is_patient": False}
    assert await reader.kept(None, None) == "kept"


@pytest.mark.parametrize("of_call", [False, True])
@pytest.mark.parametrize("of_read", [False, True])
async def test_what_a_call_or_a_read_chose_is_chosen_and_only_two_that_can_wait_do(of_call, of_read):
    reader = CallReader(Recorder(), is_chosen=of_call, is_patient=of_call)
    answer = await reader.fresh(None, None, sla_s=5, is_chosen=of_read, is_patient=of_read)
    assert answer.value == {"sla_s": 5, "is_chosen": of_call or of_read, "is_patient": of_call and of_read}


async def test_all_reads_of_a_call_are_one_fan_out_and_those_of_another_call_are_not_in_it():
    recorder = Recorder()
    first, second = (CallReader(recorder, is_chosen=False, is_patient=True) for _ in range(2))
    for reader in (first, first, second):
        await reader.fresh(None, None, sla_s=5)
    one, same, other = recorder.fan_outs
    assert one is same
    assert one is not other


async def test_a_read_chooses_nothing_and_can_wait_unless_it_says_otherwise():
    reader = CallReader(Recorder(), is_chosen=False, is_patient=True)
    answer = await reader.fresh(None, None, sla_s=5)
    assert answer.value == {"sla_s": 5, "is_chosen": False, "is_patient": True}


@pytest.mark.parametrize(
    ("recorder", "has_asked"),
    [(Recorder(), False), (Recorder(latency_ms=0), True), (Recorder(failure=SourceDown("refused")), True)],
    ids=["cached", "asked", "failed"],
)
async def test_a_call_knows_whether_an_upstream_was_asked_for_it(recorder, has_asked):
    reader = CallReader(recorder, is_chosen=False, is_patient=True)
    assert reader.has_asked is False
    with suppress(SourceDown):
        await reader.fresh(None, None, sla_s=5)
    assert reader.has_asked is has_asked


async def test_when_the_time_of_a_call_has_run_out_only_what_is_kept_is_read():
    reader = KeptReader(Recorder(), "not composed within 4 s")
    with pytest.raises(SourceDown) as failure:
        await reader.fresh(None, None, sla_s=5)
    assert failure.value.reason == "timeout: not composed within 4 s"
    assert await reader.kept(None, None) == "kept"


def test_an_answer_is_whole_and_from_the_cache_unless_it_says_otherwise():
    answer = SourceAnswer(1, START, None, None)
    assert (answer.latency_ms, answer.failure, answer.dropped) == (None, None, 0)


async def test_a_store_that_keeps_nothing_finds_nothing():
    store = NoStore()
    store.save("a", "k", StoredBody(b"{}", START), keep_s=60)
    store.renew("a", "k", START)
    assert await store.load("a", "k") is None
