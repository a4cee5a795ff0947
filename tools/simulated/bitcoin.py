"""Simulate Bitcoin by the clock: arriving transactions, height, fees and mining power.

Seven transactions a second. Every 30 s one moves 10 BTC or more, and every 60 s one that
spends as much keeps nearly all of it: both pay the rest back to the address they spend from.
Inject a `btc_tx` (`value_btc`, optionally `change_btc`, `from`, `to`, `fee_sat`); pin
`btc.quiet` to 1 to have no large ones except those injected. Pin `btc.fee_sat_vb` to fix the
fee for the next block.
"""

import hashlib
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from toolserver.world.model import World

SAT = 10**8
TXS_A_SECOND = 7
WHALE_S, KEEPER_S = 30, 60
BLOCK_S, GENESIS = 600, 1_231_006_505
DAY = 86400.0
FLOOR = 0.1  # satoshi per virtual byte, below which a node takes no transaction


class SimOutput(NamedTuple):
    """An output of a transaction; one without an address is a note that moves nothing."""

    address: str | None
    value_sat: int


class SimTx(NamedTuple):
    """A transaction and the moment when it was first heard of."""

    txid: str
    at: float
    inputs: tuple[SimOutput, ...]
    outputs: tuple[SimOutput, ...]
    weight: int

    @property
    def vsize(self) -> int:
        return math.ceil(self.weight / 4)

    @property
    def total_sat(self) -> int:
        return sum(output.value_sat for output in self.outputs)

    @property
    def fee_sat(self) -> int:
        return sum(spent.value_sat for spent in self.inputs) - self.total_sat

    @property
    def moved_sat(self) -> int:
        """The amount that reached others than the payers."""
        own = {spent.address for spent in self.inputs}
        return sum(output.value_sat for output in self.outputs if output.address not in own)


def digest(world: World, key: str, k: object) -> str:
    return hashlib.sha256(f"{world.seed}|btc.{key}|{k}".encode()).hexdigest()


def address(world: World, k: object) -> str:
    return "bc1q" + digest(world, "address", k)[:38]


def newest(world: World, count: int) -> list[SimTx]:
    """Return the newest transactions, newest first."""
    seconds = count // TXS_A_SECOND + 2
    return heard(world, world.now - seconds)[:count]


def heard(world: World, since: float) -> list[SimTx]:
    """Return the transactions first heard of after `since`, newest first."""
    transactions = [*_small(world, since), *large(world, since)]
    return sorted(transactions, key=lambda tx: (tx.at, tx.txid), reverse=True)


def large(world: World, since: float) -> list[SimTx]:
    """Return the transactions that spend 10 BTC or more, and the injected ones."""
    transactions = [*_regular(world, "whale", WHALE_S, since), *_regular(world, "keeper", KEEPER_S, since)]
    loud = [tx for tx in transactions if world.pinned("btc.quiet", tx.at) != 1]
    return loud + [_injected(world, event) for event in world.injected("btc_tx", since)]


def _small(world: World, since: float) -> Iterator[SimTx]:
    for tick in range(math.floor(since * TXS_A_SECOND), math.floor(world.now * TXS_A_SECOND) + 1):
        at = (tick + world.u("btc.at", tick)) / TXS_A_SECOND
        if since < at <= world.now:
            paid, change = _spread(world, f"s{tick}", 0.0002, 4), _spread(world, f"c{tick}", 0.001, 4)
            yield _tx(world, f"s{tick}", at, paid, change)


def _regular(world: World, kind: str, every_s: int, since: float) -> Iterator[SimTx]:
    """Yield one transaction per period: a whale pays much, a keeper pays little and keeps much."""
    for slot in range(math.floor(since / every_s), math.floor(world.now / every_s) + 1):
        at = (slot + world.u(f"btc.{kind}", slot)) * every_s
        much, little = _spread(world, f"{kind}.much{slot}", 10.5, 600), _spread(world, f"{kind}.little{slot}", 0.1, 5)
        paid, change = (much, little) if kind == "whale" else (little, much)
        if since < at <= world.now:
            yield _tx(world, f"{kind}{slot}", at, paid, change, change_home=True)


def _spread(world: World, key: str, low: float, high: float) -> int:
    """Return an amount in satoshi, small ones more often."""
    return int(low * (high / low) ** world.u("btc.amount", key) * SAT)


def _tx(world: World, key: str, at: float, paid: int, change: int, *, change_home: bool | None = None) -> SimTx:
    """Return a payment to one or two, with change and sometimes a note. Many wallets take change at a new address."""
    home = address(world, f"{key}.home")
    back = home if change_home or world.u("btc.home", key) < 0.4 else address(world, f"{key}.new")
    first = paid if world.u("btc.two", key) < 0.7 else paid // 3
    receivers = [SimOutput(address(world, f"{key}.{n}"), part) for n, part in enumerate((first, paid - first)) if part]
    note = [SimOutput(None, 0)] if world.u("btc.note", key) < 0.1 else []
    return _balanced(world, key, at, home, (*receivers, SimOutput(back, change), *note))


def _balanced(
    world: World, key: str, at: float, home: str, outputs: tuple[SimOutput, ...], fee: int | None = None
) -> SimTx:
    """Return the transaction with inputs that cover its outputs and a fee."""
    weight = int(world.between("btc.weight", key, 440, 2400))
    rate = next_block_fee(world.at(at)) * world.between("btc.rate", key, 0.5, 1.6)
    fee = math.ceil(rate * weight / 4) if fee is None else fee
    spent = sum(output.value_sat for output in outputs) + fee
    inputs = (SimOutput(home, spent - spent // 4), SimOutput(address(world, f"{key}.second"), spent // 4))
    return SimTx(digest(world, "tx", key), at, inputs, outputs, weight)


def _injected(world: World, event: dict[str, Any]) -> SimTx:
    key = f"e{event['at']}.{event.get('value_btc')}.{event.get('to')}"
    home = str(event.get("from", address(world, f"{key}.home")))
    paid = SimOutput(str(event.get("to", address(world, f"{key}.to"))), round(float(event.get("value_btc", 100)) * SAT))
    change = round(float(event.get("change_btc", 0)) * SAT)
    outputs = (paid, SimOutput(home, change)) if change else (paid,)
    fee = event.get("fee_sat")
    return _balanced(world, key, float(event["at"]), home, outputs, None if fee is None else int(fee))


def height(world: World) -> int:
    return int((world.now - GENESIS) // BLOCK_S)


def next_block_fee(world: World) -> float:
    """Return satoshi per virtual byte, 0.2 to 40."""
    pinned = world.pinned("btc.fee_sat_vb")
    return float(0.2 * 200 ** ((world.noise("btc.fee", world.now / 1800) + 1) / 2)) if pinned is None else pinned


def fees(world: World) -> tuple[float, float, float, float, float]:
    """Return the fees for the next block, half an hour, an hour, a day, and the minimum to stay in the mempool."""
    top = next_block_fee(world)
    fastest, half_hour, hour, economy = (round(max(FLOOR, top * share), 3) for share in (1, 0.83, 0.71, 0.4))
    return fastest, half_hour, hour, economy, FLOOR


def hashrate(world: World, days: int) -> float:
    """Return hashes a second, as the mean of the past days."""
    steps = [world.now / DAY - step / 4 for step in range(4 * days)]
    return 9.5e20 * (1 + 0.06 * sum(world.noise("btc.hashrate", at) for at in steps) / len(steps))


def difficulty(world: World) -> float:
    """Return the difficulty, which changes every 2016 blocks."""
    period = height(world) // 2016
    return round(9.5e20 * (1 + 0.03 * world.noise("btc.difficulty", period)) * BLOCK_S / 2**32, 2)


def waiting(world: World) -> tuple[int, int, int]:
    """Return how many transactions wait, their virtual size, and their fees in satoshi."""
    count = int(45_000 * (1 + 0.7 * world.noise("btc.waiting", world.now / 900)))
    return count, count * 497, int(count * 497 * max(FLOOR, next_block_fee(world) * 0.6))
