"""`toolserver demo`: what it refuses, and what it gives the service that it runs on its own world."""

import re

import pytest

from toolserver.cli.demo import demo_command
from toolserver.cli.demo_settings import DEMO_CREDITS
from toolserver.settings import LedgerSettings, Settings, WebhookSettings, X402Settings


class ServedAtOnce(list):
    """Takes the place of `serve_until`: notes what it is called with and serves nothing."""

    async def __call__(self, settings, stop, notice, **named):
        self.append((settings, {"notice": notice, **named}))


@pytest.fixture
def until():
    return ServedAtOnce()


async def test_a_demo_runs_on_its_own_world_with_a_token_that_it_funds_first(until):
    minted = []

    class Service:
        class money:
            class own:
                @staticmethod
                async def mint(token, credits, *, cause):
                    minted.append((token, credits, cause))

    await demo_command(Settings(), {}, seed=1, ready_json=True, serve=until)
    ((settings, named),) = until
    facts = named["notice"].facts
    assert re.fullmatch(r"http://127\.0\.0\.1:[1-9]\d*", facts["world_url"])
    assert settings.upstream.via == facts["world_url"]
    assert settings.payments.enabled
    assert re.fullmatch("svc_live_[0-9a-f]{64}", facts["token"])
    await named["prepare"](Service)
    ((token, credits, cause),) = minted
    assert (token, credits) == (facts["token"], DEMO_CREDITS)
    assert facts["token"] not in cause
    assert "http://127.0.0.1:1/api/payment/buy-credits" in named["notice"].hint("http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("webhooks", "allowed"), [(WebhookSettings(), True), (WebhookSettings(allow_loopback=False), False)]
)
async def test_a_demo_delivers_webhooks_to_this_machine_unless_that_is_switched_off(until, webhooks, allowed):
    await demo_command(Settings(webhooks=webhooks), {}, seed=1, ready_json=True, serve=until)
    assert until[0][0].webhooks.allow_loopback is allowed


async def test_a_demo_with_a_directory_goes_on_there_and_serves_the_operators_shell(until, tmp_path):
    for _ in range(2):
        await demo_command(Settings(data_dir=tmp_path), {}, seed=1, ready_json=True, stays=True, serve=until)
        until[-1][1]["notice"].before("http://127.0.0.1:1")
    (first, _), (second, named) = until
    text = (tmp_path / "demo.env").read_text()
    variables = dict(line.removeprefix("export ").split("=", 1) for line in text.splitlines()[1:])
    assert first.data_dir == second.data_dir
    token = named["notice"].facts["token"]
    assert token == until[0][1]["notice"].facts["token"]
    assert not any(token in file.read_text(errors="replace") for file in tmp_path.iterdir() if file.is_file())
    assert variables["TOOLSERVER_UPSTREAM__VIA"] == second.upstream.via
    assert variables["TOOLSERVER_X402__FACILITATOR_URL"] == second.x402.facilitator_url
    assert (tmp_path / "demo.env").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("x402", "is_kept"),
    [
        ({"enabled": True, "facilitator_url": "https://facilitator.example/"}, True),
        ({"enabled": True, "facilitator_url": "http://127.0.0.1:1/u/x402.example"}, False),
        ({"enabled": False}, True),
        ({}, False),
    ],
    ids=["own", "earlier-world", "off", "not-said"],
)
async def test_a_demo_sells_by_x402_as_its_settings_say_or_through_its_world(until, x402, is_kept):
    given = X402Settings(**x402, **({"pay_to": f"0x{'11' * 20}"} if x402.get("enabled") else {}))
    await demo_command(Settings(x402=given), {}, seed=1, ready_json=True, serve=until)
    ((settings, _),) = until
    assert (settings.x402 == given) is is_kept
    assert is_kept or settings.x402.facilitator_url.startswith(settings.upstream.via)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (Settings(host="0.0.0.0"), "the demo is for development"),
        (
            Settings(ledger=LedgerSettings(url="https://a.example", key_id="k", secret="s" * 32)),
            "the demo has its own ledger",
        ),
    ],
)
async def test_a_demo_is_refused_in_public_and_on_a_ledger_of_others(until, settings, why):
    with pytest.raises(SystemExit, match=why):
        await demo_command(settings, {}, seed=1, ready_json=True, serve=until)
    assert until == []
