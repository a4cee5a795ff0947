import asyncio

from tests.webhooks.shop import NOW, fire, subscription
from toolserver.sql.sqlite import durable
from toolserver.webhooks.fire_operations import AddFire, ClaimFires
from toolserver.webhooks.store import WebhookStore
from toolserver.webhooks.subscription_operations import AddSubscription


async def test_everything_is_there_after_the_file_was_closed(tmp_path):
    async with durable(tmp_path / "ledger.sqlite3") as file:
        store = WebhookStore(file)
        await store.apply(AddSubscription(subscription(condition=b"{}", sealed=b"\x00\xff")))
        await store.apply(AddFire(fire(condition=b"{}", state_before=b"b", state_after=b"a")))
        await store.save_payload("d", b"body", NOW)
    async with durable(tmp_path / "ledger.sqlite3") as file:
        store = WebhookStore(file)
        assert await store.all(10) == [subscription(condition=b"{}", sealed=b"\x00\xff")]
        assert await store.fire(fire().id) == fire(condition=b"{}", state_before=b"b", state_after=b"a", seq=1)
        assert await store.payload("d") == b"body"


async def test_two_processes_never_claim_the_same(tmp_path):
    path = tmp_path / "ledger.sqlite3"
    async with durable(path) as one, durable(path) as other:
        stores = [WebhookStore(one), WebhookStore(other)]
        await stores[0].apply(AddSubscription(subscription()))
        for number in range(60):
            await stores[0].apply(AddFire(fire(number)))
        jobs = [stores[n % 2].apply(ClaimFires(NOW, {1: 5}, 60_000)) for n in range(16)]
        claimed = [each.fire.id for batch in await asyncio.gather(*jobs) for each in batch]
        assert len(claimed) == len(set(claimed)) == 60


async def test_a_payload_is_kept_compressed(tmp_path):
    async with durable(tmp_path / "ledger.sqlite3") as file:
        await WebhookStore(file).save_payload("d", b"a" * 100_000, NOW)
        size = await file.read(lambda db: db.execute("SELECT length(body) FROM webhook_payload").fetchone()[0])
        assert size < 1000
