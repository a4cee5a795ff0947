"""Plans the collection of deposits: which addresses are worth emptying, and what has to be signed to do so.

The addresses hold USDC and no ether for fees, and their keys are not here. So a plan lists an
authorisation for each address (`transfer_authorization`), which is signed offline and then
submitted by any account that has a little ether.
"""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from toolserver.clock import Clock
from toolserver.core.outbound import NO_PROXIES, Proxies
from toolserver.money.purchases.chain.ethereum import address_from, checksum_address
from toolserver.money.purchases.chain.relay import open_relay
from toolserver.money.purchases.chain.rpc_pool import BATCH, RpcPool, make_rpc_pool
from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.purchases.deposit import DepositKey
from toolserver.money.purchases.listing import show_usd
from toolserver.money.purchases.transfer_authorization import VALID_S, Authorization
from toolserver.money.purchases.units import CHAIN_ID, USDC_TEXT
from toolserver.settings import PaymentSettings as Settings

GAS = 90_000  # for one submitted authorisation; 84,800 were measured
WEI = 10**18  # in one ether


class Deposit(NamedTuple):
    """A deposit address and its balance in 0.000001 USDC. `purchase` is the state of its
    purchase, or `lost` if there is no row for it any more.
    """

    hd_index: int
    address: bytes
    amount: int
    purchase: str = "credited"


class SubmissionCost(NamedTuple):
    """The cost of submitting one authorisation, in wei. `usd` is the total in 0.000001 USD, if ether has a price."""

    gas_price: int
    data_fee: int
    usd: int | None

    @property
    def wei(self) -> int:
        return GAS * self.gas_price + self.data_fee

    @classmethod
    def of(cls, gas_price: int, data_fee: int, eth_usd: float | None) -> "SubmissionCost":
        """Return the cost at these prices in wei; `eth_usd` is the price of one ether in USD."""
        wei = GAS * gas_price + data_fee
        return cls(gas_price, data_fee, None if eth_usd is None else round(wei * eth_usd * ATOMIC / WEI))


async def find_funded(
    addresses: Iterable[tuple[int, bytes]],
    balances: Callable[[Sequence[bytes]], Awaitable[list[int]]],
    *,
    least: int = 1,
) -> list[Deposit]:
    """Return the deposit addresses that hold at least `least` (0.000001 USDC). One request reads `BATCH` of them.

    Raises ChainDown.
    """
    funded: list[Deposit] = []
    numbered = list(addresses)
    for at in range(0, len(numbered), BATCH):
        part = numbered[at : at + BATCH]
        amounts = await balances([address for _, address in part])
        pairs = zip(part, amounts, strict=True)
        funded += [Deposit(index, address, amount) for (index, address), amount in pairs if amount >= least]
    return funded


def plan(
    deposits: Iterable[Deposit], to: bytes, key: DepositKey, *, now: int, valid_s: int = VALID_S
) -> dict[str, Any]:
    """Return the document for the offline signer that moves all these deposits to one address.

    In it `path` names the key to sign with, below m/44'/60'/account', and `typed_data` is
    what wallets sign (EIP-712). Deposits of an account key that was in use before are listed
    separately, because they cannot be checked with `key`. `now` is in epoch seconds.
    """
    own: list[Deposit] = []
    others: list[Deposit] = []
    for deposit in deposits:
        (own if key.address(deposit.hd_index) == deposit.address else others).append(deposit)
    return {
        "chain_id": CHAIN_ID,
        "token": USDC_TEXT,
        "to": checksum_address(to),
        "total": sum(deposit.amount for deposit in own),
        "authorizations": [_show_authorization(deposit, to, now + valid_s) for deposit in own],
        "of_other_keys": [
            {"index": one.hd_index, "address": checksum_address(one.address), "value": one.amount} for one in others
        ],
    }


def plan_sweep(
    deposits: Sequence[Deposit],
    to: bytes,
    key: DepositKey,
    cost: SubmissionCost,
    *,
    now: int,
    least: int,
    uncredited: bool = False,
) -> dict[str, Any]:
    """Return a plan of the deposits worth moving, with its yield and cost, and with what stays where it is and why.

    An address is worth emptying if it holds at least `least` (0.000001 USDC) and more than
    the submission costs. Money that has bought nothing yet stays, so that it is still found
    as unclaimed, unless `uncredited` is set.
    """
    worth = max(least, (cost.usd or 0) + 1)
    open_ = [one for one in deposits if one.purchase != "credited" and not uncredited]
    rest = [one for one in deposits if one.purchase == "credited" or uncredited]
    little, taken = [one for one in rest if one.amount < worth], [one for one in rest if one.amount >= worth]
    document = plan(taken, to, key, now=now)
    return document | {
        "yield_usd": show_usd(document["total"]),
        "cost": _show_cost(cost, len(document["authorizations"])),
        "left": {
            "least_usd": show_usd(worth),
            "worth_too_little": _show_left(little),
            "bought_nothing_yet": _show_left(open_),
        },
    }


def _show_left(deposits: Sequence[Deposit]) -> dict[str, Any]:
    return {"addresses": len(deposits), "usd": show_usd(sum(one.amount for one in deposits))}


def _show_cost(cost: SubmissionCost, count: int) -> dict[str, Any]:
    return {
        "authorizations": count,
        "gas_each": GAS,
        "gas_price_wei": cost.gas_price,
        "data_fee_wei_each": cost.data_fee,
        "eth": f"{count * cost.wei / WEI:.9f}",
        "usd": None if cost.usd is None else show_usd(count * cost.usd),
    }


def _show_authorization(deposit: Deposit, to: bytes, valid_before: int) -> dict[str, Any]:
    authorization = Authorization(deposit.address, to, deposit.amount, valid_before, secrets.token_bytes(32))
    return {"index": deposit.hd_index, "path": f"0/{deposit.hd_index}", "typed_data": authorization.typed_data}


async def sweep_plan(
    settings: Settings,
    *,
    addresses: Iterable[tuple[int, bytes]],
    clock: Clock,
    to: str,
    least_usd: int = 1,
    proxies: Proxies = NO_PROXIES,
) -> dict[str, Any]:
    """Return the plan to sign offline that collects every deposit of at least `least_usd`: see `sweep.plan`.

    `addresses` holds the deposit addresses that were given out, each with its index.

    Raises:
        ValueError: there is no account key, or `to` is not an address.
        ChainDown: no server answers.
    """
    collector, key = address_from(to), _find_key(settings)
    async with _asking(settings, clock, proxies) as chain:
        deposits = await find_funded(addresses, chain.balances, least=least_usd * ATOMIC)
    return plan(deposits, collector, key, now=int(clock.time()))


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
    proxies: Proxies = NO_PROXIES,
) -> dict[str, Any]:
    """Return the plan to sign offline that collects the deposits worth more than it costs: see `plan_sweep`.

    `states` maps the number of each deposit address to the state of its purchase. Numbers
    below `issued` without a state are looked at too: after a restored backup they belong to
    purchases that were lost. `least` is in 0.000001 USDC.

    Raises:
        ValueError: there is no account key, or `to` is not an address.
        ChainDown, RelayDown: no server answers.
    """
    collector, key = address_from(to), _find_key(settings)
    addresses = dict(issued_addresses)
    lost = (number for number in range(settings.first_index, issued) if number not in addresses)
    addresses |= {number: key.address(number) for number in lost}
    async with _asking(settings, clock, proxies) as chain:
        deposits = await find_funded(sorted(addresses.items()), chain.balances)
    deposits = [one._replace(purchase=states.get(one.hd_index, "lost")) for one in deposits]
    async with open_relay(settings.rpc_urls[0].get_secret_value(), clock, proxies) as relay:
        prices = await relay.read_prices()
    cost = SubmissionCost.of(*prices, eth_usd)
    now = int(clock.time())
    return plan_sweep(deposits, collector, key, cost, now=now, least=least, uncredited=uncredited)


async def find_unclaimed(
    settings: Settings,
    *,
    quoted: Iterable[int],
    used: Iterable[int],
    issued: int,
    clock: Clock,
    proxies: Proxies = NO_PROXIES,
) -> list[dict[str, Any]]:
    """Return the deposits that are on the chain and bought nothing, because their buyers never confirmed them.

    `quoted` are the numbers of purchases that are not credited, `used` those of credited
    ones. Every other number below `issued` was reserved: if there is money at its address,
    its purchase was lost, as after a restored backup.

    Raises:
        ValueError: there is no account key.
        ChainDown: no server answers.
    """
    key, waiting, taken = _find_key(settings), set(quoted), set(used)
    lost = set(range(settings.first_index, issued)) - waiting - taken
    addresses = [(index, key.address(index)) for index in sorted(waiting | lost)]
    async with _asking(settings, clock, proxies) as chain:
        deposits = await find_funded(addresses, chain.balances)
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
async def _asking(settings: Settings, clock: Clock, proxies: Proxies) -> AsyncIterator[RpcPool]:
    """Yield the RPC servers of the settings, of which at least one answers. Raises ChainDown."""
    chain = make_rpc_pool(settings, clock, proxies)
    try:
        await chain.check_ready()
        yield chain
    finally:
        await chain.aclose()
