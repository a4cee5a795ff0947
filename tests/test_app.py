"""Test the composition root: given parts replace those that it would make, and everything is closed."""

from datetime import UTC, datetime

import anyio
import httpx
import pytest

from tests.calls.toy import FIRST, REGISTRY
from tests.internet import Internet
from toolserver import app as app_module
from toolserver.app import App, Service, ServiceParts
from toolserver.clock import ManualClock
from toolserver.core.caller import Caller
from toolserver.registry.site_facts import SiteFacts
from toolserver.serving.money import memory_money
from toolserver.settings import Settings, UpstreamSettings
from toolserver.world.remote_clock import FollowedClock

START = datetime(2027, 1, 15, 8, tzinfo=UTC)
CALLER = Caller("192.0.2.1", limited=False)


def parts(**more):
    return ServiceParts(
        **({"registry": REGISTRY, "clock": ManualClock(START), "in_memory": True, "background": False} | more)
    )


async def test_upstreams_are_asked_through_the_given_transport_at_the_given_time():
    internet = Internet()
    internet.serves(FIRST, {"value": 3})
    async with Service.build(Settings(), parts(transport=internet.transport)) as service:
        outcome = await service.pipeline.call(REGISTRY["number"], {}, CALLER)

    assert b'"updated_at":"2027-01-15T08:00:00Z"' in outcome.rendered.payload
    assert internet.asked


async def test_a_service_in_memory_writes_nothing_to_its_data_directory(tmp_path):
    async with Service.build(Settings(data_dir=tmp_path), parts()) as service:
        assert service.money.evidence is None
    assert list(tmp_path.iterdir()) == []


async def test_a_service_on_disk_keeps_its_ledger_and_its_usage_counts(tmp_path):
    internet = Internet()
    internet.serves(FIRST, {"value": 3})
    settings = Settings(data_dir=tmp_path)
    given = parts(in_memory=False, transport=internet.transport)
    async with Service.build(settings, given) as service:
        await service.pipeline.call(REGISTRY["number"], {}, Caller("192.0.2.1", agent="curl/8", limited=False))
        before = service.info.usage.rows()
    async with Service.build(settings, given) as service:
        assert service.info.usage.rows() == before != []

    assert {"ledger.sqlite3", "answers.sqlite3"} <= {path.name for path in tmp_path.iterdir()}


async def test_given_money_is_used_and_left_open():
    money = memory_money(ManualClock(START))
    async with Service.build(Settings(), parts(money=money)) as service:
        assert service.pipeline.ledger is money.ledger
        assert service.money is money


async def test_the_time_of_a_simulated_world_is_known_before_anything_is_opened(monkeypatch):
    """Whoever looked at the machine's clock first would take the world's for one that was set back, or leapt."""
    seen = []

    async def follow(clock, via, *, task_status):
        await anyio.sleep(0.01)
        clock.set(START.timestamp())
        task_status.started()

    def see_money(clock):
        seen.append(clock.now().date())
        return memory_money(clock)

    monkeypatch.setattr(app_module, "follow", follow)
    monkeypatch.setattr(app_module, "memory_money", see_money)
    settings = Settings(upstream=UpstreamSettings(via="http://world.example"))
    async with Service.build(settings, parts(clock=FollowedClock())):
        pass
    assert seen == [START.date()]


async def test_given_facts_take_the_place_of_those_in_the_settings():
    facts = SiteFacts("https://data.example", "data.example", contact="ops@data.example")
    settings = Settings(upstream=UpstreamSettings(via="http://world.example"))
    async with Service.build(settings, parts(facts=facts)) as service:
        assert service.facts is facts
        transport = httpx.ASGITransport(service.web_app())
        async with httpx.AsyncClient(transport=transport, base_url=facts.base_url) as client:
            meta = (await client.get("/api/meta")).json()

    assert (meta["simulated"], meta["contact"]) == (False, "ops@data.example")


@pytest.mark.parametrize(
    ("settings", "given", "base_url"),
    [
        (Settings(), {}, "http://127.0.0.1:8080"),
        (Settings(base_url="https://set.example/"), {}, "https://set.example"),
        (Settings(base_url="https://set.example"), {"base_url": "http://127.0.0.1:5"}, "http://127.0.0.1:5"),
    ],
    ids=["default", "settings", "parts"],
)
async def test_the_public_address_is_the_bound_one_else_the_setting_else_the_local_one(settings, given, base_url):
    async with Service.build(settings, parts(**given)) as service:
        assert service.facts.base_url == base_url


async def test_readiness_is_about_the_ledger_and_about_stopping(tmp_path):
    stopping: list[bool] = []
    given = ServiceParts(registry=REGISTRY, background=False, is_stopping=lambda: bool(stopping))
    async with Service.build(Settings(data_dir=tmp_path / "data"), given) as service:
        good = {"running": True, "disk_space": True, "ledger_file": True, "ledger_write": True}
        assert await service.readiness.check() == good
        assert await service.readiness.describe() == ({"ready": True, "checks": good, "degraded": []}, True)
        assert await service.readiness.describe_ledger() == ({"ledger": True, "checks": good}, True)
        stopping.append(True)
        assert await service.readiness.check() == good | {"running": False}
        assert not (await service.readiness.describe())[1]


class Lifespan:
    """The server's side of the lifespan protocol. What the application said is in `sent`."""

    def __init__(self) -> None:
        self.sent: list[dict[str, str]] = []
        self._events = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

    async def receive(self) -> dict[str, str]:
        return next(self._events)

    async def send(self, event: dict[str, str]) -> None:
        self.sent.append(event)


async def test_the_application_starts_and_stops_with_the_server():
    lifespan, seen = Lifespan(), []

    async def on_ready(service: Service) -> None:
        seen.append(service.facts.base_url)

    await App(Settings(), parts(base_url="http://127.0.0.1:5"), on_ready=on_ready)(
        {"type": "lifespan"}, lifespan.receive, lifespan.send
    )

    assert seen == ["http://127.0.0.1:5"]
    assert [event["type"] for event in lifespan.sent] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


async def test_a_service_that_cannot_start_says_why(tmp_path):
    (tmp_path / "simulated-world").touch()
    lifespan = Lifespan()
    app = App(Settings(data_dir=tmp_path), parts(in_memory=False))
    await app({"type": "lifespan"}, lifespan.receive, lifespan.send)

    assert [event["type"] for event in lifespan.sent] == ["lifespan.startup.failed"]
    assert app.failure is not None
    assert app.failure.endswith("holds simulated credits: give the real service its own data directory")


async def test_a_websocket_is_closed_at_once():
    sent = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(event):
        sent.append(event)

    with anyio.fail_after(1):
        await App(Settings())({"type": "websocket"}, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1000}]
