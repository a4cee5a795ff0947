"""The parts of a service as the settings make them."""

from dataclasses import replace
from datetime import timedelta

import anyio
import httpx
import pytest

from tests.arranged import arrange_service
from tests.calls.parts import RICH, START, Number, funded_money, number_source
from tests.calls.toy import REGISTRY
from tests.requirements import proves
from tests.served import all_tools
from toolserver.app import (
    Service,
    ServiceParts,
    open_answers,
    open_fetcher,
    open_shared_memory,
    restore_history,
    unlist_unavailable,
)
from toolserver.clock import ManualClock
from toolserver.core.caller import Caller
from toolserver.core.metrics import Metrics, Usage
from toolserver.core.models import DataPoint
from toolserver.errors import RateLimited
from toolserver.money.purchases.demo import XPUB
from toolserver.registry.site_facts import SiteFacts
from toolserver.serving.background_tasks import open_tasks
from toolserver.serving.money import StoredSales, memory_money
from toolserver.settings import LedgerSettings, LimitSettings, ProbeSettings, Settings, SourceSettings
from toolserver.upstream.member_watch import LEAST_SEEN, MemberWatch
from toolserver.upstream.outlier_guard import EVERY_S, LEAST, SERIES, SizeGuard
from toolserver.upstream.source import Licence, SourceExcluded
from toolserver.upstream.source_health import SourceHistory

FACTS = SiteFacts("https://data.example", "data.example", contact="ops@data.example")


async def test_what_waits_to_be_written_is_written_before_the_store_is_closed(tmp_path):
    clock = ManualClock(START)
    usage = Usage(clock.now)
    async with open_answers(tmp_path, clock) as store:
        store.save_usage([(int(clock.time() // 3600), "curl", 3)])
        store.save_point("prices", "BTC", DataPoint(START, 7.0), 3600)
        SourceHistory(clock, store).count("A", "good", "ok")
        for number in range(LEAST):
            at = START - timedelta(seconds=EVERY_S * (LEAST - number))
            SizeGuard(store.save_point).check(number_source(), "fires", [7] * 50, at)
        rows = [Number(3.0, START)] * LEAST_SEEN
        MemberWatch(store.save_members).learn(number_source(), "fires", rows, START)
    async with open_answers(tmp_path, clock) as store:
        history, sources = await restore_history(store, usage, clock)
        sources.history.count("A", "failed", "timeout")
        sources.members.learn(number_source(), "fires", [Number(3.0), Number(4.0)], START)
    assert history.last("prices", "BTC") == DataPoint(START, 7.0)
    assert history.keys(SERIES) == []
    assert sources.sizes.usual("fires") == 50
    assert sources.members.list_gone() == [("Test.number", "Number.at", START.timestamp())]
    assert [(row.good, row.failed) for row in sources.history.quarters("A")] == [(1, 1)]
    assert usage.rows() == [(int(clock.time() // 3600), "curl", 3)]


def fetcher(handler, settings=None, facts=FACTS):
    transport = httpx.MockTransport(handler)
    return open_fetcher(settings or Settings(), facts, clock=ManualClock(START), metrics=Metrics(), transport=transport)


@pytest.mark.parametrize(("contact", "named"), [("ops@data.example", "; ops@data.example"), (None, "")])
async def test_upstreams_read_who_asks_and_how_to_reach_us(contact, named):
    agents = []

    def answer(request):
        agents.append(request.headers["user-agent"])
        return httpx.Response(200, json={"value": 3})

    async with fetcher(answer, facts=SiteFacts("https://data.example", "data.example", contact=contact)) as made:
        await made.fetch(number_source(), None)
    assert agents[0].startswith("toolserver/")
    assert agents[0].endswith(f" (+https://data.example{named})")


async def test_sources_that_the_licence_policy_excludes_are_not_requested():
    settings = Settings(sources=SourceSettings(licence_policy="no_forbidden"))
    barred = replace(number_source(), licence=Licence("no", "Test"))

    async with fetcher(lambda request: pytest.fail("requested"), settings) as made:
        with pytest.raises(SourceExcluded):
            await made.fetch(barred, None)


async def test_tasks_end_with_the_block():
    ended = anyio.Event()

    async def run():
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    with anyio.fail_after(5):
        async with open_tasks() as tasks:
            tasks.start_soon(run)
            await anyio.wait_all_tasks_blocked()
    assert ended.is_set()


async def test_tools_see_the_probe_targets_and_the_money_of_this_service(tmp_path):
    probes = ProbeSettings(targets={"Here": "127.0.0.1"})
    settings = Settings(data_dir=tmp_path, probes=probes, onchain={"blocks": 7})
    async with arrange_service(
        REGISTRY, ManualClock(START), money=funded_money(ManualClock(START)), whole=settings
    ) as service:
        info, money = service.info, service.money
        assert (info.probe_targets, info.blocks, info.data_dir) == ({"Here": "127.0.0.1"}, 7, tmp_path)
        assert (info.payments, info.statements, info.evidence) == (money.payments, money.statements, None)
        assert info.usage is service.pipeline.usage
        assert await info.allowances.list_all(RICH) == []


async def limited(limits, calls, pause_s=0):
    """How many calls of one client pass before a limit refuses one; with the name of that limit."""
    clock = ManualClock(START)
    given = ServiceParts(
        registry=REGISTRY,
        clock=clock,
        in_memory=True,
        background=False,
        transport=httpx.MockTransport(lambda request: httpx.Response(200, json={"value": 3})),
    )
    async with Service.build(Settings(limits=limits), given) as service:
        for passed in range(calls):
            try:
                await service.pipeline.call(REGISTRY["number"], {}, Caller("192.0.2.1"))
            except RateLimited as refused:
                return passed, refused.extra["limit"]
            clock.advance(pause_s)
    return calls, None


@proves("limits.settings")
async def test_the_limits_of_the_settings_are_those_of_the_pipeline():
    assert await limited(LimitSettings(spacing_s=30), 2) == (1, "spacing")
    assert await limited(LimitSettings(daily=1, spacing_s=30), 2, pause_s=30) == (1, "daily")
    assert await limited(LimitSettings(enabled=False, daily=1), 3) == (3, None)


@proves("allowance.unsupported")
@pytest.mark.parametrize("keeps", [True, False])
async def test_tools_of_allowances_are_listed_where_the_followed_ledger_has_some(keeps):
    class Followed:
        async def keeps_allowances(self):
            return keeps

    registry = all_tools()
    money = replace(memory_money(ManualClock(START)), own=None, followed=Followed())
    listed = await unlist_unavailable(registry, Settings(), money)

    assert ("allowance_list" in {operation.name for operation in listed.chosen(toolset="all")}) is keeps
    assert listed.get("allowance_list") is not None
    assert "token_update" not in {operation.name for operation in listed.listed}


@pytest.mark.parametrize(
    ("public_url", "x402", "sells", "listed"),
    [
        (None, None, False, False),
        ("https://owner.example", None, False, True),
        (None, object(), False, True),
        (None, None, True, True),
    ],
)
async def test_top_ups_are_listed_where_this_service_or_the_owner_of_its_ledger_sells(public_url, x402, sells, listed):
    payments = {"enabled": sells, "xpub": XPUB, "rpc_urls": ["http://127.0.0.1:1/"]}
    settings = Settings(ledger=LedgerSettings(public_url=public_url), payments=payments)
    money = replace(memory_money(ManualClock(START)), stored=StoredSales(x402=x402))
    hidden = all_tools().unlist(["allowance_list"])
    names = {operation.name for operation in (await unlist_unavailable(hidden, settings, money)).listed}

    assert ("payment_topup" in names) is listed
    assert "allowance_list" not in names


async def test_instances_that_share_a_redis_count_limits_together(redis_server):
    settings = {
        "limits": LimitSettings(daily=3),
        "redis_url": redis_server.url,
        "scaling": {"redis_prefix": "assembly:"},
    }
    clock = ManualClock(START)
    async with arrange_service(REGISTRY, clock, **settings) as one, arrange_service(REGISTRY, clock, **settings) as two:
        for number in range(3):
            await [one, two][number % 2].pipeline.limits.count("192.0.2.1", f"endpoint {number}")
        for service in (one, two):
            with pytest.raises(RateLimited):
                await service.pipeline.limits.count("192.0.2.1", "endpoint 3")
        assert b"toolserver_redis_up 1.0" in one.metrics.text()
        assert (await one.readiness.describe())[0]["degraded"] == []


async def test_a_share_is_one_of_as_many_as_there_are_instances(redis_server):
    settings = {"scaling": {"instances": 3}, "redis_url": redis_server.url}
    async with open_shared_memory(Settings(**settings), Metrics()) as memory:
        assert memory.instances == 3
    async with open_shared_memory(Settings(), Metrics()) as memory:
        assert memory is None
