"""Finds deposits on the chain for the operator: those worth collecting, and those that bought nothing."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from toolserver.clock import Clock
from toolserver.core.credit_price import ATOMIC
from toolserver.money.purchases import sweep
from toolserver.money.purchases.deposit import DepositKey, address_from, checksum_address
from toolserver.money.purchases.listing import show_usd
from toolserver.money.purchases.relay import open_relay
from toolserver.money.purchases.rpc_pool import RpcPool
from toolserver.money.purchases.service import make_rpc_pool
from toolserver.settings import PaymentSettings as Settings


async def sweep_plan(
    settings: Settings, *, addresses: Iterable[tuple[int, bytes]], clock: Clock, to: str, least_usd: int = 1
) -> dict[str, Any]:
    """Return the plan to sign offline that collects every deposit of at least `least_usd`: see `sweep.plan`.

    `addresses` holds the deposit addresses that were given out, each with its index.

    Raises:
        ValueError: there is no account key, or `to` is not an address.
        ChainDown: no server answers.
    """
    collector, key = address_from(to), _find_key(settings)
    async with _asking(settings, clock) as chain:
        deposits = await sweep.find_funded(addresses, chain.balances, least=least_usd * ATOMIC)
    return sweep.plan(deposits, collector, key, now=int(clock.time()))


async def plan_worthwhile_sweep(
    settings: Settings,
    *,
    issued_addresses: Iterable[tuple[int, bytes]],
    states: Mapping[int, str],
    issued: int,
    clock: Clock,
    to: str,
    least: int,
    eth_usd: float | None = None,
    uncredited: bool = False,
) -> dict[str, Any]:
    """Return the plan to sign offline that collects the deposits worth more than it costs: see `sweep.plan_sweep`.

    `states` maps the number of each deposit address to the state of its purchase. Numbers below `issued` without a
    state are looked at too: after a restored backup they belong to purchases that were lost. `least` is in 0.000001
    USDC.

    Raises:
        ValueError: there is no account key, or `to` is not an address.
        ChainDown, RelayDown: no server answers.
    """
    collector, key = address_from(to), _find_key(settings)
    addresses = dict(issued_addresses)
    lost = (number for number in range(settings.first_index, issued) if number not in addresses)
    addresses |= {number: key.address(number) for number in lost}
    async with _asking(settings, clock) as chain:
        deposits = await sweep.find_funded(sorted(addresses.items()), chain.balances)
    deposits = [one._replace(purchase=states.get(one.hd_index, "lost")) for one in deposits]
    async with open_relay(settings.rpc_urls[0].get_secret_value(), clock) as relay:
        prices = await relay.read_prices()
    cost = sweep.SubmissionCost.of(*prices, eth_usd)
    now = int(clock.time())
    return sweep.plan_sweep(deposits, collector, key, cost, now=now, least=least, uncredited=uncredited)


async def find_unclaimed(
    settings: Settings, *, quoted: Iterable[int], used: Iterable[int], issued: int, clock: Clock
) -> list[dict[str, Any]]:
    """Return the deposits that are on the chain and bought nothing, because their buyers never confirmed them.

    `quoted` are the numbers of purchases that are not credited, `used` those of credited ones. Every other number below
    `issued` was reserved: if there is money at its address, its purchase was lost, as after a restored backup.

    Raises:
        ValueError: there is no account key.
        ChainDown: no server answers.
    """
    key, waiting, taken = _find_key(settings), set(quoted), set(used)
    lost = set(range(settings.first_index, issued)) - waiting - taken
    addresses = [(index, key.address(index)) for index in sorted(waiting | lost)]
    async with _asking(settings, clock) as chain:
        deposits = await sweep.find_funded(addresses, chain.balances)
    return [
        {
            "index": one.hd_index,
            "wallet": checksum_address(one.address),
            "amount_usd": show_usd(one.amount),
            "purchase": "lost" if one.hd_index in lost else "quoted",
        }
        for one in deposits
    ]


def _find_key(settings: Settings) -> DepositKey:
    """Return the key that deposit addresses are derived from. Raises ValueError when there is none."""
    if settings.xpub is None:
        raise ValueError("deposit addresses cannot be computed without payments.xpub, from which they are derived")
    return DepositKey(settings.xpub.get_secret_value())


@asynccontextmanager
async def _asking(settings: Settings, clock: Clock) -> AsyncIterator[RpcPool]:
    """Yield the RPC servers of the settings, of which at least one answers. Raises ChainDown."""
    chain = make_rpc_pool(settings, clock)
    try:
        await chain.check_ready()
        yield chain
    finally:
        await chain.aclose()
