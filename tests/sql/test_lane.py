"""A thread and its queue: groups are what waited meanwhile, and the thread ends with its `finish`."""

import asyncio
import threading

from toolserver.sql.errors import StorageClosed
from toolserver.sql.group_commit import GROUP, Lane


async def test_what_waits_is_served_as_one_group_on_the_thread_of_the_lane():
    groups, threads = [], set()

    def serve(group):
        groups.append([asked.argument for asked in group])
        threads.add(threading.current_thread().name)
        return [asked.argument * 2 for asked in group]

    lane = Lane("doubling", serve, lambda: threads.add("finished"))
    lane.start(asyncio.get_running_loop())
    answers = [lane.ask(None, number) for number in range(GROUP + 2)]
    assert await asyncio.gather(*answers) == [number * 2 for number in range(GROUP + 2)]
    await lane.close()

    assert [len(group) for group in groups] == [GROUP, 2]
    assert threads == {"doubling", "finished"}
    assert isinstance(lane.ask(None, 1).exception(), StorageClosed)
