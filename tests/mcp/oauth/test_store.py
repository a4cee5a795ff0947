"""What a store of OAuth promises, for every engine, and secrets that only their owner can use."""

import re

import anyio
import pytest

from tests.mcp.oauth.records import CHILD, CLIENT, GRANT, NOW, REQUEST, allowed, change, make
from tests.money.ledger.ledgers import opened_file
from tests.postgres import POSTGRES
from tests.requirements import proves
from toolserver.core.logging import hidden
from toolserver.mcp.oauth.store import (
    DAY_MS,
    HOUR_MS,
    IDLE_CLIENT_MS,
    STORE_LIMITS,
    UNUSED_CLIENT_MS,
    GrantSecret,
    MemoryOAuthStore,
    OAuthStoreFull,
    SqlOAuthStore,
    StoreLimits,
    hash_secret,
    make_secret,
    new_secret,
    seal_under,
    unseal_with,
)
from toolserver.sql.sqlite import durable


@pytest.fixture(params=["memory", "sqlite", POSTGRES])
async def open_store(request, tmp_path):
    """A function that opens a store with limits."""
    if request.param == "memory":
        yield lambda **limits: MemoryOAuthStore(StoreLimits(**limits))
        return
    async with opened_file(request.param, tmp_path) as file:
        yield lambda **limits: SqlOAuthStore(file, StoreLimits(**limits))


@pytest.fixture
def store(open_store):
    return open_store()


async def test_a_client_is_found_as_it_was_registered(store):
    secret = change(CLIENT, id="client_2", auth_method="client_secret_post", secret_hash=hash_secret("s"))
    await store.add_client(CLIENT)
    await store.add_client(secret)
    assert await store.find_client("client_1") == CLIENT
    assert await store.find_client("client_2") == secret
    assert await store.find_client("client_3") is None
    assert (await store.find_client("client_1")).document is False


async def test_a_request_is_answered_once(store):
    await store.add_request(REQUEST)
    assert await store.find_request(REQUEST.id) == REQUEST
    assert await store.deny_request(REQUEST.id, NOW + 1)
    assert not await store.deny_request(REQUEST.id, NOW + 2)
    assert not await store.allow_request(REQUEST.id, GRANT, make("code"), NOW + 3)
    assert await store.find_request(REQUEST.id) == change(REQUEST, answered_at=NOW + 1)
    assert (await store.find_secret(make("code").hash)) is None
    assert await store.find_request(hash_secret("other")) is None
    assert not await store.deny_request(hash_secret("other"), NOW)


async def test_what_is_bought_is_kept_until_the_request_is_answered(store):
    await store.add_request(REQUEST)
    await store.keep_purchase(REQUEST.id, b"sealed")
    assert (await store.find_request(REQUEST.id)).purchase == b"sealed"
    assert await store.allow_request(REQUEST.id, GRANT, make("code"), NOW)
    assert (await store.find_request(REQUEST.id)).purchase is None
    other = change(REQUEST, id=hash_secret("other"))
    await store.add_request(other)
    await store.keep_purchase(other.id, b"sealed")
    await store.keep_purchase(hash_secret("nobody's"), b"sealed")
    assert await store.find_request(hash_secret("nobody's")) is None
    await store.keep_purchase(other.id, None)
    assert await store.find_request(other.id) == other
    await store.keep_purchase(other.id, b"sealed")
    assert await store.deny_request(other.id, NOW)
    assert (await store.find_request(other.id)).purchase is None


async def test_a_request_that_was_answered_gives_no_second_grant(store):
    await allowed(store)
    again = make("code", grant="grant_2")
    assert not await store.allow_request(REQUEST.id, change(GRANT, id="grant_2"), again, NOW + 1)
    assert await store.find_secret(again.hash) is None
    assert (await store.find_client("client_1")).used_at == NOW
    assert (await store.find_request(REQUEST.id)).answered_at == NOW


async def test_a_client_that_describes_itself_is_not_stored_and_still_gets_a_grant(store):
    await store.add_request(REQUEST)
    code = make("code")
    assert await store.allow_request(REQUEST.id, GRANT, code, NOW)
    assert await store.exchange(code.hash, [make("access")], NOW + 1)
    assert (await store.find_secret(code.hash)).grant == GRANT
    assert await store.find_client("client_1") is None


async def test_a_grant_is_found_by_its_secrets_and_keeps_its_client(store):
    code = await allowed(store)
    assert await store.find_secret(code.hash) == (code, GRANT)
    assert await store.find_secret(hash_secret("other")) is None
    assert (await store.find_client("client_1")).used_at == NOW


async def test_a_secret_is_exchanged_once_for_others(store):
    code = await allowed(store)
    access, refresh, late = make("access"), make("refresh"), make("access")
    assert await store.exchange(code.hash, [access, refresh], NOW + 5)
    assert not await store.exchange(code.hash, [late], NOW + 6)
    assert (await store.find_secret(code.hash)).secret.used_at == NOW + 5
    assert (await store.find_secret(refresh.hash)).secret == refresh
    assert (await store.find_secret(access.hash)).secret == access
    assert not await store.exchange(hash_secret("unknown"), [late], NOW + 7)
    assert await store.find_secret(late.hash) is None
    assert (await store.find_client("client_1")).used_at == NOW + 5


async def test_nothing_of_a_revoked_grant_is_exchanged(store):
    code = await allowed(store)
    await store.revoke_grant("grant_1", NOW + 1)
    await store.revoke_grant("grant_1", NOW + 9)
    await store.revoke_grant("grant_2", NOW)
    late = make("access")
    assert not await store.exchange(code.hash, [late], NOW + 2)
    assert await store.find_secret(late.hash) is None
    assert (await store.find_secret(code.hash)).secret.used_at is None
    assert (await store.find_client("client_1")).used_at == NOW
    assert (await store.find_secret(code.hash)).grant.revoked_at == NOW + 1


async def test_rotated_tokens_of_a_grant_are_bounded_and_expired_access_tokens_go(open_store):
    store = open_store(used=3)
    last = await allowed(store)
    used, old_access = [], make("access", NOW + 3)
    for turn in range(1, 6):
        new = make("refresh")
        assert await store.exchange(last.hash, [new, old_access] if turn == 1 else [new], NOW + turn)
        used.append(last.hash)
        last = new
    known = [await store.find_secret(hash) is not None for hash in used]
    assert known == [False, False, True, True, True]
    assert await store.find_secret(last.hash) is not None
    assert await store.find_secret(old_access.hash) is None


async def test_an_access_token_is_forgotten_at_the_exchange_after_its_end_and_no_other_secret_is(store):
    last = await allowed(store)
    access, refresh, new = make("access", NOW + 3), make("refresh", NOW + 3), make("refresh")
    assert await store.exchange(last.hash, [access, refresh], NOW + 2)
    assert await store.find_secret(access.hash) is not None
    assert await store.exchange(refresh.hash, [new], NOW + 3)
    assert await store.find_secret(access.hash) is None
    assert await store.find_secret(refresh.hash) is not None


async def test_rotation_within_a_grant_leaves_the_secrets_of_others(open_store):
    store = open_store(used=1)
    mine = await allowed(store)
    theirs, access = make("code", grant="grant_2"), make("access", NOW + 1, "grant_2")
    await store.add_request(change(REQUEST, id=hash_secret("theirs")))
    assert await store.allow_request(hash_secret("theirs"), change(GRANT, id="grant_2"), theirs, NOW)
    assert await store.exchange(theirs.hash, [access], NOW)
    for turn in range(2, 5):
        new = make("refresh")
        assert await store.exchange(mine.hash, [new], NOW + turn)
        mine = new
    assert (await store.find_secret(theirs.hash)).grant.id == "grant_2"
    assert (await store.find_secret(access.hash)).secret == access


async def test_a_revoked_grant_is_kept_until_it_would_have_ended(store):
    code = await allowed(store)
    await store.revoke_grant("grant_1", NOW)
    assert await store.sweep(NOW + HOUR_MS - 1) == 0
    assert (await store.find_secret(code.hash)).grant == change(GRANT, revoked_at=NOW)


async def test_what_ended_is_swept_and_nothing_else(store):
    code = await allowed(store)
    assert await store.sweep(NOW + HOUR_MS - 1) == 0
    assert await store.sweep(NOW + HOUR_MS) == 2, "the code and the request"
    assert await store.find_secret(code.hash) is None
    assert await store.find_request(REQUEST.id) is None
    refresh = make("refresh", NOW + 90 * DAY_MS, "grant_2")
    await store.add_request(REQUEST)
    assert await store.allow_request(REQUEST.id, change(GRANT, id="grant_2"), refresh, NOW)
    assert await store.sweep(NOW + 30 * DAY_MS - 1) == 1, "the request"
    assert await store.find_secret(refresh.hash) is not None
    assert await store.sweep(NOW + 30 * DAY_MS) == 3, "two grants and a secret"
    assert await store.find_secret(refresh.hash) is None, "its grant has ended"


async def test_clients_that_nobody_uses_are_forgotten(store):
    used = change(CLIENT, id="client_2", used_at=NOW)
    await store.add_client(CLIENT)
    await store.add_client(used)
    assert await store.sweep(NOW + UNUSED_CLIENT_MS - 1) == 0
    assert await store.sweep(NOW + UNUSED_CLIENT_MS) == 1
    assert await store.find_client("client_1") is None
    assert await store.find_client("client_2") == used
    assert await store.sweep(NOW + IDLE_CLIENT_MS - 1) == 0
    assert await store.sweep(NOW + IDLE_CLIENT_MS) == 1
    assert await store.find_client("client_2") is None


async def test_a_full_table_of_clients_forgets_what_ended_first_and_refuses_only_if_all_were_used(open_store):
    store = open_store(clients=2)
    await store.add_client(change(CLIENT, used_at=NOW))
    await store.add_client(change(CLIENT, id="client_2", used_at=NOW))
    with pytest.raises(OAuthStoreFull):
        await store.add_client(change(CLIENT, id="client_3"))
    with pytest.raises(OAuthStoreFull):
        await store.add_client(change(CLIENT, id="client_4", created_at=NOW + IDLE_CLIENT_MS - 1))
    await store.add_client(change(CLIENT, id="client_4", created_at=NOW + IDLE_CLIENT_MS))
    assert [await store.find_client(f"client_{n}") is not None for n in range(1, 5)] == [False, False, False, True]


async def fill(store, owners, start=0, **fields):
    """Add requests of these owners, one a millisecond; their ids."""
    ids = []
    for n, owner in enumerate(owners):
        id = hash_secret(f"{owner} {n} {fields}")
        await store.add_request(change(REQUEST, id=id, owner=owner, created_at=NOW + start + n, **fields))
        ids.append(id)
    return ids


async def list_missing(store, ids):
    return [n for n, id in enumerate(ids) if await store.find_request(id) is None]


async def test_a_full_table_of_requests_forgets_what_expired_first(open_store):
    store = open_store(requests=2)
    ids = await fill(store, ["greedy", "greedy"])
    assert await list_missing(store, ids) == []
    late = change(REQUEST, id=hash_secret("late"), owner="few", created_at=NOW + HOUR_MS, expires_at=NOW + 2 * HOUR_MS)
    await store.add_request(late)
    assert await list_missing(store, [*ids, late.id]) == [0, 1]


async def test_a_full_table_of_requests_drops_the_oldest_of_the_greediest(open_store):
    store = open_store(requests=6)
    ids = await fill(store, ["few", "greedy", "other", "greedy", "greedy", "other"])
    newer = await fill(store, ["person"], 10, state="new")
    assert await list_missing(store, ids + newer) == [1]
    newer += await fill(store, ["greedy"], 20, state="again")
    assert await list_missing(store, ids + newer) == [1, 2], "both have two now, and this is the oldest of theirs"
    newer += await fill(store, ["greedy"], 30, state="and again")
    assert await list_missing(store, ids + newer) == [1, 2, 3]


async def test_a_full_table_drops_last_what_somebody_bought_something_in(open_store):
    store = open_store(requests=3)
    ids = await fill(store, ["greedy", "greedy", "few"])
    for id in ids[:2]:
        await store.keep_purchase(id, b"sealed")
    ids += await fill(store, ["person"], 10, state="new")
    assert await list_missing(store, ids) == [2]
    await store.keep_purchase(ids[3], b"sealed")
    ids += await fill(store, ["person"], 20, state="newer")
    assert await list_missing(store, ids) == [0, 2]


async def test_a_full_table_drops_a_hundredth_at_once(open_store):
    assert STORE_LIMITS.dropped_share == 100
    store = open_store(requests=4, dropped_share=2)
    ids = await fill(store, ["few", "greedy", "greedy", "greedy", "person"])
    assert await list_missing(store, ids) == [1, 2]


async def test_a_full_table_of_clients_drops_the_oldest_unused_of_the_greediest(open_store):
    store = open_store(clients=4)
    for n, owner in enumerate(["greedy", "few", "greedy", "greedy", "person", "person"]):
        client = change(CLIENT, id=f"client_{n}", created_at=NOW + n, owner=owner, used_at=NOW if n == 0 else None)
        await store.add_client(client)
    missing = [n for n in range(6) if await store.find_client(f"client_{n}") is None]
    assert missing == [1, 2], "first the oldest unused of the greediest; then all have one, and the oldest goes"


async def test_the_address_of_who_registered_a_client_is_stored_until_its_first_use(store):
    await store.add_client(change(CLIENT, owner="203.0.113.1"))
    assert (await store.find_client("client_1")).owner == "203.0.113.1"
    await store.add_request(REQUEST)
    assert await store.allow_request(REQUEST.id, GRANT, make("code"), NOW)
    assert (await store.find_client("client_1")).owner == ""


async def test_while_there_is_room_nothing_is_forgotten(open_store):
    store = open_store(clients=3, requests=3)
    await store.add_client(CLIENT)
    await store.add_client(change(CLIENT, id="client_2", created_at=NOW + UNUSED_CLIENT_MS))
    await store.add_request(REQUEST)
    await store.add_request(change(REQUEST, id=hash_secret("2"), created_at=NOW + HOUR_MS))
    assert await store.find_client("client_1") == CLIENT
    assert await store.find_request(REQUEST.id) == REQUEST


@proves("oauth.secrets")
async def test_a_grant_outlives_the_process_and_the_file_holds_no_secret(tmp_path):
    path = tmp_path / "ledger.sqlite3"
    code, stored = make_secret("code", GRANT.id, CHILD, NOW + 60_000)
    async with durable(path) as file:
        store = SqlOAuthStore(file)
        await store.add_client(CLIENT)
        await store.add_request(REQUEST)
        assert await store.allow_request(REQUEST.id, GRANT, stored, NOW)
    async with durable(path) as file:
        assert await SqlOAuthStore(file).find_secret(stored.hash) == (stored, GRANT)
    written = b"".join(each.read_bytes() for each in tmp_path.glob("ledger.sqlite3*"))
    assert stored.hash in written
    assert code.encode() not in written
    assert CHILD.encode() not in written


@pytest.mark.live
async def test_a_code_is_exchanged_once_whichever_instance_gets_it(tmp_path):
    async with opened_file("postgres", tmp_path) as one, opened_file("postgres", tmp_path) as other:
        stores = SqlOAuthStore(one), SqlOAuthStore(other)
        code, done = await allowed(stores[0]), []

        async def exchange(store):
            done.append(await store.exchange(code.hash, [make("access"), make("refresh")], NOW))

        async with anyio.create_task_group() as tasks:
            for turn in range(8):
                tasks.start_soon(exchange, stores[turn % 2])
        assert sorted(done) == [False] * 7 + [True]
        await stores[1].revoke_grant("grant_1", NOW)
        assert (await stores[0].find_secret(code.hash)).grant.revoked_at == NOW


def test_only_the_secret_opens_what_was_sealed_under_it():
    sealed = seal_under("one", CHILD)
    assert unseal_with("one", sealed) == CHILD
    assert unseal_with("two", sealed) is None
    assert CHILD.encode() not in sealed


def test_a_secret_of_a_grant_opens_the_allowance():
    secret, stored = make_secret("refresh", "grant_1", CHILD, 5)
    assert unseal_with(secret, stored.sealed) == CHILD
    assert stored == GrantSecret(hash_secret(secret), "grant_1", "refresh", stored.sealed, 5, used_at=None)
    assert secret.encode() not in stored.sealed
    assert CHILD.encode() not in stored.sealed


def test_a_secret_names_its_kind_and_has_256_bits():
    assert re.fullmatch("svc_access_[0-9a-f]{64}", new_secret("access"))
    assert hash_secret("a") == bytes.fromhex("ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb")


def test_secrets_differ_and_are_hidden_in_logs():
    kinds = ("code", "access", "refresh")
    generated = {new_secret(kind) for kind in kinds for _ in range(3)}
    assert len(generated) == 9
    assert all(hidden(f"got {secret} here") == "got [hidden] here" for secret in generated)


def test_any_text_has_a_hash_also_one_that_is_no_unicode():
    assert hash_secret("\udcff") == hash_secret("?")
    assert unseal_with("\udcff", seal_under("\udcff", CHILD)) == CHILD
