"""No history of services that share a ledger charges anybody wrongly, and the simulation would see it if one did."""

import itertools
import random
from contextlib import closing

import anyio
import httpx
import pytest

from tests.money.ledger.simulation.machines import Crashed, File, Process, new_disk
from tests.money.ledger.simulation.mutants import MUTANTS, mutated
from tests.money.ledger.simulation.time import Deadlock, run
from tests.money.ledger.simulation.world import history
from tests.requirements import proves
from tests.size import sized

SEEDS = sized(180, fast=20, long=3600)
EACH = min(SEEDS, 60)
CAUGHT_WITHIN = 200


@proves("ledger.follower")
@pytest.mark.parametrize("first", range(0, SEEDS, EACH))
def test_nobody_is_charged_wrongly_whatever_happens(first):
    histories = [history(seed) for seed in range(first, first + EACH)]

    assert [(h.seed, h.wrong) for h in histories if h.wrong] == []
    for what in ("answered", "charged", "crashes", "messages"):
        assert sum(getattr(h, what) for h in histories) > EACH, f"too quiet: {what}"


@pytest.mark.slow("histories under each fault, until one of them shows it")
@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_would_be_seen(name):
    """By what it does to customers: that releases are left in a queue does not count."""
    with mutated(name) as options:
        for seed in itertools.count():
            if {wrong.what for wrong in history(seed, options).wrong} - {"queue"}:
                break
            assert seed < CAUGHT_WITHIN


def test_a_seed_is_one_history():
    for seed in (3, 4, 5, 17, 18):
        assert history(seed) == history(seed)


def test_a_simulation_takes_no_time_and_ends_when_everybody_waits():
    async def long():
        await anyio.sleep(10**6)
        return anyio.current_time()

    async def for_ever():
        await anyio.sleep_forever()

    assert run(long) == pytest.approx(10**6)
    with pytest.raises(Deadlock):
        run(for_ever)


def test_what_a_dead_process_asks_for_is_not_done():
    async def main():
        process = Process(random.Random(1))
        file = File(disk, process)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(file.work)
            await file.alone(
                lambda db: db.execute("INSERT INTO journal VALUES('c1', 'reserving', NULL, 0, 0)") and None
            )
            process.crash()
            with pytest.raises(Crashed):
                await file.alone(lambda db: db.execute("DELETE FROM journal") and None)
            tasks.cancel_scope.cancel()
        return disk.execute("SELECT call_id FROM journal").fetchall()

    with closing(new_disk()) as disk:
        assert run(main) == [("c1",)]


def test_a_lost_answer_is_waited_for_in_vain():
    from tests.money.ledger.simulation.network import Network, Weather

    async def main():
        async with anyio.create_task_group() as tasks:
            network, process = Network(random.Random(1), tasks), Process(random.Random(1))
            network.weather = Weather(loss=1.0)
            async with httpx.AsyncClient(transport=network.transport(process), base_url="http://owner.test") as client:
                with anyio.move_on_after(60) as waited:
                    await client.post("/", content=b"{}")
            return waited.cancelled_caught

    assert run(main)
