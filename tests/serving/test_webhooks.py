import subprocess
import sys
from dataclasses import replace

import pytest

from tests.calls.parts import RICH
from tests.calls.shop import shop
from tests.requirements import proves
from tests.webhooks.receivers import certificates, receiving
from tests.webhooks.room import LOCAL, open_room
from toolserver.clock import SystemClock
from toolserver.context.service_info import ServiceInfo
from toolserver.core.caller import token_hash
from toolserver.money.ledger.protocol import AccountRef
from toolserver.registry.registry import Registry
from toolserver.serving.money import MoneyParts, memory_money
from toolserver.serving.webhooks import account_lookup, open_webhooks
from toolserver.settings import Settings, WebhookSettings
from toolserver.webhooks.signing import KEY_FILE
from toolserver.webhooks.store import WebhookStore


def money_of(sells):
    return MoneyParts(own=sells.ledger, idempotency=None, payments=None, statements=None)


async def opened(folder, sells, money, **settings):
    info = ServiceInfo(SystemClock(), folder)
    configured = Settings(data_dir=folder, webhooks=WebhookSettings(**settings))
    async with open_webhooks(configured, Registry([]), sells.pipeline, money, info) as webhooks:
        return webhooks, info


async def test_subscriptions_live_in_the_file_of_the_ledger_and_their_key_beside_it(tmp_path):
    async with shop(tmp_path) as sells:
        money = money_of(sells)
        webhooks, info = await opened(tmp_path, sells, money)
        assert isinstance(webhooks.store, WebhookStore)
        assert info.webhooks is webhooks.subscriptions
        assert (tmp_path / KEY_FILE).is_file()


async def test_without_a_ledger_file_nothing_is_written(tmp_path):
    async with shop(tmp_path / "shop") as sells:
        await opened(tmp_path, sells, memory_money(SystemClock()))
        assert [path.name for path in tmp_path.iterdir()] == ["shop"]


async def test_webhooks_can_be_switched_off(tmp_path):
    async with shop(tmp_path) as sells:
        webhooks, info = await opened(tmp_path, sells, money_of(sells), enabled=False)
        assert (webhooks, info.webhooks) == (None, None)


async def test_an_account_is_named_by_its_reference_never_by_its_token(tmp_path):
    async with shop(tmp_path) as sells:
        account = await account_lookup(money_of(sells))(RICH)
        assert await sells.ledger.balance(AccountRef(account.account)) == await sells.ledger.balance(RICH)
        assert account.payer == token_hash(RICH).hex()


@proves("operating.loopback")
@pytest.mark.parametrize("allow", [True, False])
def test_the_development_switch_is_off_by_default(allow):
    assert WebhookSettings().allow_loopback is False
    assert WebhookSettings(allow_loopback=allow).allow_loopback is allow


def test_the_library_that_delivers_is_loaded_with_the_first_delivery_only():
    code = "import sys, toolserver.serving.webhooks; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_a_receiver_behind_tls_of_a_private_authority_is_reached_by_those_who_trust_it(tmp_path):
    server, client = certificates("hooks.localhost")
    async with receiving(tls=server) as receiver:
        trusting = replace(LOCAL, load_tls=lambda: client)
        async with open_room(tmp_path / "trusting", network=trusting) as room:
            await room.subscribe(receiver.url("https", "hooks.localhost"))
            await room.pass_slots()
            assert (len(receiver.requests), await room.spent()) == (1, 1)
            assert b'toolserver_webhook_attempts_total{outcome="ok"} 1.0' in room.shop.pipeline.metrics.text()
        async with open_room(tmp_path / "not", network=LOCAL) as room:
            subscription = await room.subscribe(receiver.url("https", "hooks.localhost"))
            await room.pass_slots()
            (fire,) = await room.fires(subscription.id)
            assert (fire.error, len(receiver.requests)) == ("tls", 1)
