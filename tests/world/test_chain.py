"""The chain of a world without a node: what is paid, undone, and put into other blocks."""

import pytest

from toolserver.world.chain import BLOCK_S, GENESIS, TransferOrder, block_at, block_time, head_at
from toolserver.world.state import SimClock, WorldState

T = GENESIS + 1_000 * BLOCK_S
PAYER, PAYEE = "0x" + "aa" * 20, "0x" + "bb" * 20


@pytest.fixture
def state():
    return WorldState(clock=SimClock(T, frozen=True))


async def pay(state, usd=1):
    return await state.chain.transfer(TransferOrder(PAYER, PAYEE, usd * 10**6))


def test_a_block_comes_every_two_seconds_and_contains_what_was_paid_before_it():
    assert (head_at(T), head_at(T + 1), head_at(T + 2)) == (1_000, 1_000, 1_001)
    assert (block_at(T), block_at(T + 1), block_time(1_001)) == (1_000, 1_001, T + 2)


@pytest.mark.parametrize("depth", [1, 2, 10])
async def test_a_reorganisation_takes_what_is_in_its_blocks_and_leaves_what_is_below(state, depth):
    below = await pay(state)
    state.clock.advance(BLOCK_S)
    inside = await pay(state)
    state.clock.advance((depth - 1) * BLOCK_S)
    assert await state.chain.reorganise(depth, []) == ([inside], [])
    assert [each["hash"] for each in await state.chain.list_transfers()] == [below]


async def test_what_is_mined_again_is_in_the_newest_block_with_the_same_hash(state):
    kept, gone = await pay(state, 3), await pay(state)
    state.clock.advance(5 * BLOCK_S)
    assert await state.chain.reorganise(10, [kept]) == ([gone], [kept])
    (again,) = await state.chain.list_transfers()
    assert (again["hash"], again["amount"], block_at(again["at"])) == (kept, 3 * 10**6, 1_005)


async def test_only_transfers_that_are_there_are_undone(state):
    paid = await pay(state)
    assert await state.chain.undo(paid)
    assert not await state.chain.undo(paid)
