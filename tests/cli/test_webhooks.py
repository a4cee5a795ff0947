"""`toolserver webhooks`: what operators see and do."""

import asyncio
import json

import pytest
from click.testing import CliRunner

from tests.webhooks.shop import NOW, fire, subscription
from toolserver.cli.webhooks import webhooks
from toolserver.money.ledger.store import FILE
from toolserver.sql.sqlite import durable
from toolserver.webhooks.fire_operations import AddFire, FinishFire
from toolserver.webhooks.store import WebhookStore
from toolserver.webhooks.subscription_operations import AddSubscription

ID = subscription().id


@pytest.fixture
def folder(tmp_path):
    async def fill():
        async with durable(tmp_path / FILE) as file:
            store = WebhookStore(file)
            await store.apply(AddSubscription(subscription()))
            await store.apply(AddSubscription(subscription(2, description="other")))
            await store.apply(AddFire(fire(payload="digest", attempts=1, status=204)))
            await store.apply(FinishFire(fire().id, "charged", None, NOW))

    asyncio.run(fill())
    return tmp_path


def run(folder, *words):
    return CliRunner().invoke(webhooks, [*words, "--data-dir", str(folder)])


def rows(folder, *words):
    return json.loads(run(folder, *words, "--json").output)


def test_subscriptions_are_listed_without_secrets(folder):
    listed = rows(folder, "list")
    assert {row["id"] for row in listed} == {ID, subscription(2).id}
    assert listed[0]["owner"] == "a" * 16
    assert "sealed" not in run(folder, "list").output
    assert rows(folder, "list", "--state", "paused") == []
    assert run(folder, "list", "--state", "paused").output == "no subscriptions\n"


def test_one_is_shown_with_its_deliveries(folder):
    (shown,) = rows(folder, "show", ID)
    assert (shown["state"], shown["due_at"]) == ("active", "2027-01-15T08:05:00.000Z")
    (delivery,) = rows(folder, "deliveries", ID)
    assert (delivery["id"], delivery["state"], delivery["status"]) == (fire().message_id, "charged", 204)
    missing = run(folder, "show", "wh_nothing")
    assert missing.exit_code == 1
    assert "there is no subscription wh_nothing" in missing.output


def test_one_fires_now_or_is_paused(folder):
    assert run(folder, "fire", ID).exit_code == 0
    assert rows(folder, "show", ID)[0]["due_at"] != "2027-01-15T08:05:00.000Z"
    assert run(folder, "pause", ID, "--reason", "abuse").output == f"{ID} is paused\n"
    assert rows(folder, "show", ID)[0]["pause_reason"] == "abuse"
    refused = run(folder, "fire", ID)
    assert (refused.exit_code, refused.output) == (1, "Error: The subscription is paused.\n")


def test_a_delivery_is_sent_once_more(folder):
    assert run(folder, "replay", fire().message_id).exit_code == 0
    latest = rows(folder, "deliveries", ID)[0]
    assert (latest["state"], latest["kind"]) == ("open", "data")
    assert run(folder, "replay", "msg_nothing").exit_code == 1


def test_without_a_ledger_there_is_nothing_to_see(tmp_path):
    refused = run(tmp_path, "list")
    assert refused.exit_code == 1
    assert "there is no ledger" in refused.output
