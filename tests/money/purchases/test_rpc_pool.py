"""Several servers as one chain: some lie, some are behind, some are gone."""

from datetime import UTC, datetime
from functools import partial

import pytest

from tests.money.purchases.parts import NOW, TX, Facts, Server, block_hash, paid, return_server
from toolserver.clock import ManualClock
from toolserver.money.purchases.chain.rpc_pool import FAILURES, REST_S, ChainDown, RpcPool

US = bytes([0xD0]) * 20
SEEN = paid(US, 5)
CLOCK = ManualClock(datetime.fromtimestamp(NOW, UTC))


def servers(*all_: Server, clock: ManualClock = CLOCK) -> RpcPool:
    return RpcPool([partial(return_server, each) for each in all_], monotonic=clock.monotonic)


def seeing(*found, **more) -> Server:
    server = Server(**more)
    server.sees(*found)
    return server


async def test_the_first_that_sees_it_is_believed():
    first, second = Server(), seeing(SEEN)
    assert await servers(first, second).observe(TX) == SEEN
    third = seeing(SEEN)
    assert await servers(second, third).observe(TX) == SEEN
    assert third.asked == 0


async def test_not_seen_by_those_who_answer_is_not_seen():
    assert await servers(Server(down=True), Server()).observe(TX) is None


async def test_when_nobody_answers_nobody_knows():
    chain = servers(Server(down=True), Server(down=True))
    with pytest.raises(ChainDown):
        await chain.observe(TX)
    with pytest.raises(ChainDown):
        await chain.check_ready()
    with pytest.raises(ChainDown):
        await servers().observe(TX)


@pytest.mark.parametrize("wrong", [Facts(chain_id=1), Facts(decimals=18), Facts(has_code=False)])
async def test_a_server_of_another_chain_is_never_believed(wrong, caplog):
    chain = servers(seeing(SEEN, what=wrong))
    with pytest.raises(ChainDown):
        await chain.check_ready()
    with pytest.raises(ChainDown):
        await chain.observe(TX)
    assert "gives no usable answer" in caplog.text
    assert await servers(seeing(SEEN, what=wrong), seeing(SEEN)).observe(TX) == SEEN


async def test_a_server_that_was_found_right_is_not_asked_again_whether_it_is():
    server = seeing(SEEN)
    chain = servers(server)
    await chain.check_ready()
    await chain.check_ready()
    asked = server.asked
    await chain.observe(TX)
    assert server.asked == asked + 1


async def test_a_server_that_keeps_failing_rests_and_is_tried_again():
    clock = ManualClock(datetime.fromtimestamp(NOW, UTC))
    bad, good = seeing(SEEN, down=True), seeing(SEEN)
    chain = servers(bad, good, clock=clock)
    for _ in range(FAILURES + 3):
        assert await chain.observe(TX) == SEEN
    assert bad.asked == FAILURES
    clock.advance(REST_S)
    bad.down = False
    before = good.asked
    assert await chain.observe(TX) == SEEN
    assert good.asked == before


async def test_a_look_finds_out_without_a_buyer_that_all_are_lost_and_which_are_back():
    clock = ManualClock(datetime.fromtimestamp(NOW, UTC))
    first, second = Server(), Server()
    chain = servers(first, second, clock=clock)
    await chain.look_again()
    assert (chain.count_servers(), second.asked) == ((2, 1, 0), 0)
    first.down = second.down = True
    await chain.look_again()
    assert chain.count_servers().is_lost
    second.down = False
    clock.advance(REST_S)
    await chain.look_again()
    assert chain.count_servers() == (2, 2, 1)
    first.down = False
    await chain.look_again()
    assert chain.count_servers() == (2, 2, 0)


async def test_failures_between_answers_do_not_add_up():
    server = seeing(SEEN)
    chain = servers(server)
    for _ in range(FAILURES):
        server.down = True
        for _ in range(FAILURES - 1):
            with pytest.raises(ChainDown, match="no server answered"):
                await chain.observe(TX)
        server.down = False
        assert await chain.observe(TX) == SEEN


# --- two agreeing


async def test_two_that_agree_are_believed_with_the_lower_of_their_heights():
    ahead = SEEN._replace(latest=500, safe=400, finalized=300)
    assert await servers(seeing(ahead), seeing(SEEN)).observe(TX, 2) == SEEN


@pytest.mark.parametrize(
    "other",
    [
        paid(US, 6),
        SEEN._replace(receipt=SEEN.receipt._replace(status=0)),
        SEEN._replace(receipt=SEEN.receipt._replace(block_hash=block_hash(100, "fork"))),
        SEEN._replace(canonical=block_hash(100, "fork")),
        SEEN._replace(receipt=SEEN.receipt._replace(logs=())),
    ],
    ids=["another amount", "failed", "another block", "another chain", "no logs"],
)
async def test_two_that_differ_are_not_believed(other, caplog):
    assert await servers(seeing(SEEN), seeing(other)).observe(TX, 2) is None
    assert "disagree" in caplog.text


async def test_a_majority_does_not_outvote_one_that_differs():
    assert await servers(seeing(SEEN), seeing(SEEN), seeing(paid(US, 6))).observe(TX, 2) is None


async def test_one_voice_of_two_is_not_seen_yet():
    assert await servers(seeing(SEEN), Server()).observe(TX, 2) is None


async def test_one_server_cannot_agree_with_itself():
    with pytest.raises(ChainDown, match="1 of 2"):
        await servers(seeing(SEEN)).observe(TX, 2)
    with pytest.raises(ChainDown, match="1 of 2"):
        await servers(seeing(SEEN), seeing(SEEN, down=True)).observe(TX, 2)


# --- what is gone

THEN, NEW = block_hash(100), block_hash(100, "new")


@pytest.mark.parametrize(
    ("all_", "gone"),
    [
        ([Server(blocks={100: NEW})], True),
        ([Server(blocks={100: NEW}), Server(blocks={100: NEW})], True),
        ([Server(blocks={100: THEN})], False),
        ([Server(blocks={100: NEW}), Server(blocks={100: THEN})], False),
        ([seeing(SEEN, blocks={100: NEW}), Server(blocks={100: NEW})], False),
        ([Server(blocks={100: NEW}), Server(blocks={100: NEW}), Server()], True),
    ],
    ids=["one", "two", "the block is there", "one has it still", "one sees it", "one is behind"],
)
async def test_gone_is_what_everybody_who_knows_says_is_gone(all_, gone):
    assert await servers(*all_).is_gone(TX, 100, THEN) is gone


@pytest.mark.parametrize(
    "all_",
    [
        [Server()],
        [Server(blocks={100: NEW}), Server()],
        [Server(blocks={100: NEW}), Server(blocks={100: NEW}, down=True)],
    ],
    ids=["behind", "the other is behind", "the other is down"],
)
async def test_nobody_who_is_alone_or_behind_says_what_is_gone(all_):
    with pytest.raises(ChainDown):
        await servers(*all_).is_gone(TX, 100, THEN)


async def test_servers_are_counted_as_usable_once_they_have_shown_that_they_are_the_right_chain():
    clock, first, second = ManualClock(datetime.fromtimestamp(NOW, UTC)), Server(), Server()
    chain = servers(first, second, clock=clock)
    assert chain.count_servers() == (2, 0, 0)
    await chain.check_ready()
    assert chain.count_servers() == (2, 1, 0)
    assert second.asked == 0
    first.down = True
    for _ in range(FAILURES):
        await chain.observe(TX)
    assert chain.count_servers() == (2, 1, 1)
    clock.advance(REST_S)
    assert chain.count_servers() == (2, 2, 1)


async def test_a_chain_is_lost_while_no_server_answers_and_back_with_the_first_that_does():
    first, second = Server(down=True), Server(down=True)
    chain = servers(first, second)
    assert not chain.count_servers().is_lost
    with pytest.raises(ChainDown):
        await chain.observe(TX)
    assert chain.count_servers().is_lost
    second.down = False
    await chain.observe(TX)
    assert not chain.count_servers().is_lost


PROXY = "http://proxy.corp:3128"


@pytest.mark.parametrize(
    ("private", "proxies", "apart"),
    [
        ((False, False), (None, None), 2),
        ((False, False), (PROXY, PROXY), 1),
        ((False, False), (PROXY, "http://other.corp:3128"), 2),
        ((False, False), (PROXY, None), 2),
        ((True, True), (None, None), 1),
        ((True, False), (None, None), 2),
        ((True, True), (PROXY, "http://other.corp:3128"), 1),
    ],
)
async def test_servers_behind_one_proxy_or_private_authority_count_as_one(private, proxies, apart):
    two = [seeing(SEEN, is_privately_certified=each, blocks={5: bytes(32)}) for each in private]
    chain = RpcPool([partial(return_server, each) for each in two], monotonic=CLOCK.monotonic, proxies=proxies)
    if apart == 2:
        assert await chain.observe(TX, 2) == SEEN
    else:
        with pytest.raises(ChainDown, match="1 of 2 servers answered"):
            await chain.observe(TX, 2)
        with pytest.raises(ChainDown, match="1 of 2 servers answered"):
            await chain.accepts(US, bytes(32), b"", agreeing=2)
    assert await chain.survey(TX) == [SEEN] * apart
    assert (len(chain), chain.count_servers().configured) == (apart, 2)


async def test_of_servers_that_count_as_one_the_one_that_sees_a_payment_is_listed():
    two = [Server(is_privately_certified=True), seeing(SEEN, is_privately_certified=True), Server()]
    assert await servers(*two).survey(TX) in ([None, SEEN], [SEEN, None])
