"""What is noted when an answer was sent is noted then: not before, and not when it was not sent."""

import asyncio

import pytest

from toolserver.calls.response import sending, when_sent


def test_a_note_waits_until_the_answer_was_sent():
    noted = []
    with sending():
        when_sent(lambda: noted.append("sent"), lambda: noted.append("lost"))
        assert noted == []
    assert noted == ["sent"]


@pytest.mark.parametrize("failure", [ConnectionError, asyncio.CancelledError])
def test_an_answer_that_could_not_be_sent_is_noted_as_lost_and_never_as_sent(failure):
    noted = []

    def fail():
        with sending():
            when_sent(lambda: noted.append("sent"), lambda: noted.append("lost"))
            when_sent(lambda: noted.append("sent"))
            raise failure

    with pytest.raises(failure):
        fail()
    assert noted == ["lost"]


def test_where_nobody_says_when_it_is_noted_at_once():
    noted = []
    when_sent(lambda: noted.append("sent"))
    assert noted == ["sent"]


async def test_each_of_several_answers_has_its_own_notes_also_from_tasks_of_its_own():
    noted, go = [], asyncio.Event()

    async def answer(name, wait):
        with sending():
            await asyncio.create_task(work(name))
            await wait
        return list(noted)

    async def work(name):
        when_sent(lambda: noted.append(name))

    slow = asyncio.create_task(answer("slow", go.wait()))
    assert await answer("quick", asyncio.sleep(0)) == ["quick"]
    go.set()
    assert await slow == ["quick", "slow"]
