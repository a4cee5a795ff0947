"""Simulate the Ethereum chain: a block every 12 s, whose transfers and fees follow from its number."""

import hashlib
from typing import Any, NamedTuple

from toolserver.world.model import World

SLOT_S = 12
UNBORN = 123_600_000  # slots before block 0
ETHER, GWEI = 10**18, 10**9

WALLETS = {
    "Binance": ("0x28c6c06298d514db089934071355e5743bf21d60", "0x21a31ee1afc51d94c2efccaa2092ad1028285549"),
    "Coinbase": ("0xa9d1e08c7793af67e9d92fe308d5697fb81d3e43", "0x71660c4005ba85c37ccec55d0c4493e66fe775d3"),
    "Kraken": ("0x2910543af39aba0cd09dbb2d50200b3e800a63d2", "0x267be1c1d684f78cb4f6a176c4911b741e4ffdc0"),
    "OKX": ("0x6cc5f688a315f3dc28a7781717a9a798a59fda7b", "0x236f9f97e0e62388479bf9e5ba4889e46b0273c3"),
    "Bybit": ("0xf89d7b9c864f589bbf53a82105107622b35eaa40",),
    "Crypto.com": ("0x6262998ced04146fa42253a5c0af90ca02dfd2a3", "0x46340b20830761efd32832a74d7169b29feb9758"),
    "KuCoin": ("0xd6216fc19db775df9774a6e33526131da7d19a2c",),
    "Gate.io": ("0x0d0707963952f2fba59dd06f2b425ace40b492fe", "0x1c4b70a3968436b9a0a9cf5205c787eb81bb558c"),
}


class SimTransfer(NamedTuple):
    """Ether moved by a transaction of a block. `to` is None when it creates a contract."""

    key: str
    sender: str
    to: str | None
    value_wei: int


def head(world: World) -> int:
    """Return the number of the newest block."""
    return int(world.now // SLOT_S) - UNBORN


def block_time(number: int) -> int:
    return (number + UNBORN) * SLOT_S


def digest(world: World, key: str, k: object = "", size: int = 32) -> str:
    """Return bytes in hex that depend on seed, key and k."""
    return "0x" + hashlib.sha256(f"{world.seed}|eth.{key}|{k}".encode()).hexdigest()[: 2 * size]


def stranger(world: World, k: object) -> str:
    """Return an address without a label."""
    return digest(world, "address", k, 20)


def wallet(world: World, k: object) -> tuple[str, str]:
    """Return one of the exchanges, and one of its addresses."""
    exchange = world.pick("eth.exchange", k, list(WALLETS))
    return exchange, world.pick("eth.wallet", k, WALLETS[exchange])


def transfers(world: World, number: int) -> list[SimTransfer]:
    """Return a block's transfers of 5 ETH and more: flows of exchanges, whales, and injected ones.

    Pin `eth.quiet` to 1 to have only the injected ones.
    """
    moment = world.at(block_time(number))
    injected = [_injected(event, number) for event in moment.injected("eth_transfer", moment.now - SLOT_S)]
    if moment.pinned("eth.quiet") == 1:
        return injected
    flows = [_flow(world, f"{number}.{i}") for i in range(2 + int(world.u("eth.flows", number) * 4))]
    if int(world.u("eth.between", number // 10) * 10) == number % 10:
        flows.append(_between_exchanges(world, f"{number}.x"))
    if int(world.u("eth.whale", number // 3) * 3) == number % 3:
        flows.append(_whale(world, f"{number}.w"))
    return flows + injected


def _flow(world: World, key: str) -> SimTransfer:
    _, exchange = wallet(world, key)
    other, value = stranger(world, key), _wei(world, key, 5, 60)
    inflow = world.u("eth.direction", key) < 0.5
    return SimTransfer(key, other, exchange, value) if inflow else SimTransfer(key, exchange, other, value)


def _between_exchanges(world: World, key: str) -> SimTransfer:
    exchange, sender = wallet(world, key)
    other = world.pick("eth.other", key, [name for name in WALLETS if name != exchange])
    return SimTransfer(key, sender, WALLETS[other][0], _wei(world, key, 5, 60))


def _whale(world: World, key: str) -> SimTransfer:
    """Return a whale transfer; one in ten creates a contract."""
    to = None if world.u("eth.create", key) < 0.1 else stranger(world, f"{key}.to")
    return SimTransfer(key, stranger(world, key), to, _wei(world, key, 100, 2500))


def _injected(event: dict[str, Any], number: int) -> SimTransfer:
    nobody = "0x" + "11" * 20
    value = int(float(event.get("value_eth", 100)) * 10**6) * 10**12
    sender, to = str(event.get("from", nobody)), event.get("to", nobody)
    return SimTransfer(f"{number}.e{event['at']}.{sender}.{value}", sender.lower(), to and str(to).lower(), value)


def _wei(world: World, key: str, low: float, high: float) -> int:
    return int(world.between("eth.value", key, low, high) * 10**6) * 10**12 + int(world.u("eth.dust", key) * 10**12)


def base_fee(world: World, number: int) -> int:
    """Return wei per gas, 0.2 to 30 gwei. Pin `gas.base_fee_gwei` to fix it."""
    at = block_time(number)
    pinned = world.pinned("gas.base_fee_gwei", at)
    gwei = 0.2 * 150 ** ((world.noise("eth.base_fee", at / 3600) + 1) / 2) if pinned is None else pinned
    return max(1, int(gwei * GWEI))


def tip(world: World, number: int, percentile: float) -> int:
    """Return the tip in wei at a percentile of a block's gas."""
    return int(world.between("eth.tip", number, 0.005, 0.4) * (1 + (percentile / 25) ** 2) * GWEI)
