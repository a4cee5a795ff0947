"""A subscriber who answers every challenge, refuses every body after reading it, and never pays.

It has a token and allowances, and changes targets and hosts; every slot it cancels what it has and subscribes again.
"""

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.calls.parts import RICH
from tests.webhooks.receivers import Receiver, status
from tests.webhooks.room import Room
from toolserver.core.caller import token_hash
from toolserver.errors import ToolserverError
from toolserver.money.ledger.allowance import AllowanceTerms

HOSTS = ("127.0.0.1", "a.localhost", "b.localhost", "c.localhost.", "D.localhost")
REFUSALS = (status(500), status(410), status(403), status(302, "Location: http://127.0.0.1:1/"))


@dataclass
class Thief:
    """What it got. `bodies` are the bodies with data, by the id of their delivery."""

    room: Room
    receiver: Receiver
    token: str = RICH
    hosts: Sequence[str] = HOSTS
    bodies: dict[str, bytes] = field(default_factory=dict)
    challenges: int = 0
    subscribed: int = 0

    async def answer(self, writer) -> None:
        """Accept what has no data, and refuse everything else in one of several ways."""
        request = self.receiver.requests[-1]
        if json.loads(request.body)["data"] is None:
            self.challenges += 1
            await status(204)(writer)
            return
        self.bodies[request.headers["webhook-id"]] = request.body
        await REFUSALS[len(self.bodies) % len(REFUSALS)](writer)

    async def steal(self, slots: int) -> None:
        """Subscribe anew in every slot, by another token and to another target and host each time."""
        tokens = [self.token, *[await self.allow(number) for number in range(4)]]
        for slot in range(slots):
            for place in range(5):
                host, path = self.hosts[self.subscribed % len(self.hosts)], f"/{slot}/{place}"
                token = tokens[(slot + place) % len(tokens)]
                with contextlib.suppress(ToolserverError):
                    await self.room.subscribe(self.receiver.url(host=host, path=path), token=token)
                    self.subscribed += 1
            await self.room.pass_slots()
            await self.room.pass_time(7)
            for subscription in await self.room.hooks.subscriptions.list_kept(self.token):
                await self.room.hooks.subscriptions.cancel(self.token, subscription.id)

    async def allow(self, number: int) -> str:
        child = f"svc_live_{self.token[-8:]}{number:056x}"
        await self.room.shop.ledger.create_allowance(
            self.token, token_hash(child).hex(), AllowanceTerms(f"n{number}", 50)
        )
        return child
