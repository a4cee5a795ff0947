"""The contract of a journal of calls. Each engine runs it in its own test file, which has `journal` and `clock`."""


async def test_a_call_is_noted_step_by_step_until_it_is_to_be_released(journal):
    steps = ("reserving", "committing", "committed")
    assert [await journal.note("c1", step) for step in steps] == [None, "reserving", "committing"]
    await journal.release("c1", "5xx")
    assert [await journal.note("c1", "reserving") for _ in range(2)] == ["releasing", "releasing"]
    await journal.release("c1", "cancelled", wait_s=9)
    assert await journal.due() == [("c1", "5xx", 0)]
    await journal.done("c1")
    assert await journal.waiting() == (0, None)
    assert await journal.note("c1", "reserving") is None


async def test_releases_are_due_after_their_wait_the_longest_waiting_first(journal, clock):
    for call_id, wait_s in (("c1", 5), ("c2", 2.5), ("c3", 0), ("c4", 7)):
        await journal.release(call_id, "5xx", wait_s=wait_s)
    assert [(await journal.waiting()), [each.call_id for each in await journal.due()]] == [(4, 0.0), ["c3"]]
    await journal.done("c3")
    assert await journal.waiting() == (3, 2.5)
    clock.advance(5)
    assert [each.call_id for each in await journal.due()] == ["c2", "c1"]
    assert [each.call_id for each in await journal.due(1)] == ["c2"]
    clock.advance(1)
    assert await journal.waiting() == (3, 0.0)
