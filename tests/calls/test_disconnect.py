"""Work for a client that disconnects is cancelled, and all other work is left alone."""

import anyio
import pytest

from toolserver.calls.response import Disconnected, run_unless_disconnected


async def connected():
    await anyio.sleep_forever()


async def test_the_result_is_returned_while_the_client_stays():
    async def work():
        return "done"

    assert await run_unless_disconnected(connected, work) == "done"


async def test_a_disconnect_cancels_the_work():
    events = iter([{"type": "http.request"}, {"type": "http.disconnect"}])
    cancelled = []

    async def receive():
        return next(events)

    async def work():
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            cancelled.append(True)
            raise

    with anyio.fail_after(5), pytest.raises(Disconnected):
        await run_unless_disconnected(receive, work)
    assert cancelled == [True]


async def test_more_of_the_body_is_no_disconnect():
    sent, waited = anyio.Event(), []

    async def receive():
        if not waited:
            waited.append(True)
            return {"type": "http.request"}
        sent.set()
        await anyio.sleep_forever()

    async def work():
        await sent.wait()
        return "done"

    with anyio.fail_after(5):
        assert await run_unless_disconnected(receive, work) == "done"


async def test_an_exception_of_the_work_is_raised_as_it_is():
    async def work():
        raise LookupError("inside")

    with pytest.raises(LookupError, match="inside"):
        await run_unless_disconnected(connected, work)


async def test_without_a_connection_the_work_is_done_as_it_is():
    async def work():
        return "done"

    assert await run_unless_disconnected(None, work) == "done"


async def test_a_result_of_none_is_a_result():
    async def work():
        return None

    assert await run_unless_disconnected(connected, work) is None
