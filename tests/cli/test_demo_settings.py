"""The settings of a demo, and the token that it funds."""

from datetime import UTC, datetime

import pytest

from tests.requirements import proves
from toolserver.cli.demo_settings import DEMO_CREDITS, fund_with, make_demo_settings
from toolserver.clock import ManualClock
from toolserver.serving.money import memory_money
from toolserver.settings import LimitSettings, Settings, WebhookSettings

WORLD = "http://127.0.0.1:4242"
TOKEN = "svc_live_" + "0" * 64


@proves("operating.loopback")
@pytest.mark.parametrize(
    ("given", "allowed"), [(WebhookSettings(), True), (WebhookSettings(allow_loopback=False), False)]
)
def test_a_demo_sells_on_its_world_and_delivers_to_this_machine_unless_that_is_switched_off(given, allowed):
    made = make_demo_settings(Settings(webhooks=given), WORLD)
    assert made.upstream.via == WORLD
    assert made.payments.enabled
    assert made.payments.rpc_urls[0].get_secret_value().startswith(WORLD)
    assert made.webhooks.allow_loopback is allowed
    assert "licence_policy" in made.sources.model_fields_set


@proves("operating.demo-spacing")
@pytest.mark.parametrize(
    ("limits", "spaced", "spacing_s"),
    [
        (LimitSettings(), False, 0),
        (LimitSettings(), True, 30),
        (LimitSettings(spacing_s=5), False, 5),
        (LimitSettings(daily=7), False, 0),
    ],
)
def test_a_demo_spaces_calls_only_when_it_is_asked_to(limits, spaced, spacing_s):
    made = make_demo_settings(Settings(limits=limits), WORLD, spaced=spaced)
    assert (made.limits.spacing_s, made.limits.daily) == (spacing_s, limits.daily)
    assert made.limits.enabled


async def test_a_token_is_funded_once_however_many_workers_do_it():
    ledger = memory_money(ManualClock(datetime(2026, 8, 30, tzinfo=UTC))).ledger

    class Service:
        class money:
            own = ledger

    for _ in range(2):
        await fund_with(TOKEN)(Service)
    assert await ledger.balance(TOKEN) == DEMO_CREDITS
