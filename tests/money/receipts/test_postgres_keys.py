"""The database has one set of keys for all instances, and refuses an instance that has others."""

from dataclasses import replace

import anyio
import pytest

from tests.money.ledger.ledgers import opened_file
from toolserver.money.receipts.keys import make_key, revoke_key, rotate_keys
from toolserver.money.receipts.sql_keys import KeysDiffer, PublishedKeys

NOW = 1_800_000_000
pytestmark = pytest.mark.live


@pytest.fixture
async def published(tmp_path):
    async with opened_file("postgres", tmp_path) as file:
        yield PublishedKeys(file)


async def test_what_is_published_stays_and_has_no_private_half(published):
    assert not await published.has_any()
    old = (make_key(),)
    first = await published.agree("receipts", old)
    rotated = rotate_keys(old, NOW)
    second = await published.agree("receipts", rotated)

    assert await published.has_any()
    assert first == (replace(old[0], seed=None),)
    assert {key.kid for key in second} == {key.kid for key in rotated}
    assert all(key.seed is None for key in second)
    assert set(await published.agree("receipts", old)) == set(second)


async def test_a_revocation_reaches_who_has_the_old_file(published):
    key = make_key()
    await published.agree("receipts", (key,))
    await published.agree("receipts", revoke_key([key], key.kid, NOW))

    seen = {known.kid: known.revoked_at for known in await published.agree("receipts", (key,))}
    assert seen[key.kid] == NOW


async def test_other_keys_are_refused_for_each_purpose_by_itself(published):
    await published.agree("receipts", (make_key(),))
    await published.agree("log", (make_key(),))

    with pytest.raises(KeysDiffer, match="keys for log"):
        await published.agree("log", (make_key(),))


async def test_of_instances_that_start_together_with_keys_of_their_own_one_is_let_in(published):
    refused = 0

    async def start() -> None:
        nonlocal refused
        try:
            await published.agree("receipts", (make_key(),))
        except KeysDiffer:
            refused += 1

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(start)
    assert refused == 4


async def test_a_secret_is_known_by_its_fingerprint(published):
    await published.require_same("webhooks", "a" * 64)
    await published.require_same("webhooks", "a" * 64)
    with pytest.raises(KeysDiffer):
        await published.require_same("webhooks", "b" * 64)
