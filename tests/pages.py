"""Cache the answers of the simulated upstreams in a process: hundreds of tests request the same pages.

A test that changes the code of a simulated upstream uses its own `MadePages`.
"""

from collections import OrderedDict
from collections.abc import Hashable

from toolserver.world.answers import NOT_SEEN_BY_PROVIDERS
from toolserver.world.model import Ask, Handler, Reply, World

MOST_BYTES = 64 << 20


class MadePages:
    """Replies of worlds in which nothing was edited: there a reply is a function of the instant and the request."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes, self._bytes = most_bytes, 0
        self._kept: OrderedDict[Hashable, Reply] = OrderedDict()

    def answer(self, handler: Handler, world: World, ask: Ask) -> Reply:
        """A provider's reply."""
        if world.edits.pins or world.edits.events:
            return handler(world, ask)
        headers = tuple(sorted((k, v) for k, v in ask.headers.items() if k not in NOT_SEEN_BY_PROVIDERS))
        key = (handler, world.seed, world.now, ask.method, ask.host, ask.path, ask.query, ask.body, headers)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        made = self._kept[key] = handler(world, ask)
        self._bytes += len(made.body)
        while self._bytes > self._most_bytes and len(self._kept) > 1:
            self._bytes -= len(self._kept.popitem(last=False)[1].body)
        return made


PAGES = MadePages()
