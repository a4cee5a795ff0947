"""For chains whose first source is asked slowly by our own choice: the second one must not jump in for that."""

from typing import TypeVar

import anyio

from toolserver.context import Leg, Reading

T = TypeVar("T")


def patiently(first: Leg[T], second: Leg[T], wait_s: float) -> tuple[Leg[T], Leg[T]]:
    """The two legs; when the second is started because the first is slow, it waits that much longer for it to end."""
    failed = anyio.Event()  # once the first has answered nobody needs the second: it waits until it is told to go

    async def one(reading: Reading) -> T:
        try:
            return await first(reading)
        except BaseException:
            failed.set()
            raise

    async def other(reading: Reading) -> T:
        with anyio.move_on_after(wait_s):
            await failed.wait()
        return await second(reading)

    return one, other
