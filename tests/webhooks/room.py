"""Webhooks on a shop with a real ledger file, real receipts and real sockets on loopback; only the clock is manual."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.calls.parts import RICH, START
from tests.calls.shop import Shop, shop
from tests.calls.toy import FIRST, SECOND
from toolserver.clock import ManualClock
from toolserver.context.service_info import ServiceInfo
from toolserver.serving.money import MoneyParts
from toolserver.serving.webhooks import WebhookService, open_webhooks
from toolserver.settings import LimitSettings, Settings, WebhookSettings
from toolserver.webhooks.delivery import DeliveryNetwork
from toolserver.webhooks.event_subscriptions import EventRequest
from toolserver.webhooks.records import SubscriptionRequest, WebhookFire, WebhookSubscription
from toolserver.webhooks.signing import verify_service

SLOT_S = 300
EVENT_SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef01234567").decode()
NETWORK = DeliveryNetwork()


def everywhere_here(host):
    """The addresses of any name: this machine's."""
    return ["127.0.0.1"]


LOCAL = DeliveryNetwork(lookup=everywhere_here)


@dataclass
class Room:
    """What a test touches."""

    shop: Shop
    hooks: WebhookService
    verifications: int = 0

    @property
    def clock(self) -> ManualClock:
        return self.shop.clock

    async def subscribe(self, url: str, token: str = RICH, **terms) -> WebhookSubscription:
        created = await self.hooks.subscriptions.subscribe(token, SubscriptionRequest("report", url, **terms))
        return created.subscription

    async def subscribe_event(
        self, url: str, name="number.crossed", *, token: str = RICH, secret=EVENT_SECRET, ttl_ms=None, **arguments
    ):
        """Subscribe as a client of MCP Events does, or renew the subscription."""
        request = EventRequest(name, arguments, url, secret, ttl_ms)
        return await self.hooks.events.subscribe(token, request, self.count_verification)

    async def count_verification(self) -> None:
        self.verifications += 1

    async def subscription(self, id: str) -> WebhookSubscription:
        return await self.hooks.store.subscription(id)

    async def fires(self, id: str) -> list[WebhookFire]:
        """A subscription's fires, the first one first."""
        return list(reversed(await self.hooks.store.fires(id, 100)))

    async def pass_slots(self, number: int = 1) -> int:
        """Let slots go by, each with everything that is due in it; how many fires were worked on."""
        done = 0
        for _ in range(number):
            self.clock.advance(SLOT_S)
            done += await self.hooks.queue.work_due()
        return done

    async def pass_time(self, seconds: float) -> int:
        self.clock.advance(seconds)
        return await self.hooks.queue.work_due()

    async def spent(self, token: str = RICH) -> int:
        """Credits that were charged, of the hundred that the token began with."""
        return 100 - await self.shop.ledger.balance(token) - await self.held(token)

    async def held(self, token: str = RICH) -> int:
        return (await self.shop.ledger.standing(token)).held

    def values(self, one, two=2) -> None:
        """What the sources of the report say from now on."""
        self.shop.internet.serves(FIRST, {"value": one})
        self.shop.internet.serves(SECOND, {"value": two})


@asynccontextmanager
async def open_room(
    folder,
    *,
    clock: ManualClock | None = None,
    network: DeliveryNetwork = NETWORK,
    allow_loopback: bool = True,
    limited: bool = True,
    wrap=lambda money: money,
    whole: Settings | None = None,
) -> AsyncIterator[Room]:
    """A room; opened again in the same folder it has kept everything. `wrap` may replace parts of the money.

    With the settings `whole` everything goes through real connections, as they say.
    """
    async with shop(folder, clock=clock or ManualClock(START), network=whole) as sells:
        money = MoneyParts(own=sells.ledger, evidence=sells.evidence, idempotency=None, payments=None, statements=None)
        settings = whole or Settings(
            data_dir=folder,
            webhooks=WebhookSettings(allow_loopback=allow_loopback),
            limits=LimitSettings(enabled=limited),
        )
        async with open_webhooks(
            settings,
            sells.registry,
            sells.pipeline,
            wrap(money),
            ServiceInfo(sells.clock, folder),
            network=network,
            examples=lambda: {"premium_report": {"one": 0.0, "two": 0.0, "notes": {}}},
        ) as hooks:
            yield Room(sells, hooks)


def opened(request, secret, now):
    """The body of a delivery whose signature is good."""
    headers = request.headers
    assert verify_service(secret, headers["x-service-signature"], headers["x-service-timestamp"], request.body, now=now)
    return json.loads(request.body)
