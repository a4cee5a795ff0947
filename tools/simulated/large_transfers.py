"""Compute what the payloads on large transfers must contain, from the simulated chains alone."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tools.simulated import bitcoin, market
from tools.simulated.ethereum_chain import ETHER, WALLETS, block_time, digest, head, transfers
from toolserver.world.model import World, expects

BLOCKS = 5
OWNERS = {address: exchange for exchange, addresses in WALLETS.items() for address in addresses}


class SimMove(NamedTuple):
    """A transfer of the newest blocks, and the owners of both wallets."""

    txid: str
    number: int
    value_wei: int
    payer: str | None
    payee: str | None


def moves(world: World, least_eth: float) -> list[SimMove]:
    """Return the transfers of at least an amount in the five newest blocks."""
    all_moves = []
    for number in range(head(world), head(world) - BLOCKS, -1):
        for each in transfers(world, number):
            sender, receiver = OWNERS.get(each.sender), OWNERS.get(each.to or "")
            all_moves.append(SimMove(digest(world, "tx", each.key), number, each.value_wei, sender, receiver))
    return [move for move in all_moves if move.value_wei >= least_eth * ETHER]


@expects("pro/exchange-flows")
def flows(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the sums in ETH, and by exchange `[inflow, outflow]`."""
    seen = moves(world, 5)
    came = {name: sum(m.value_wei for m in seen if m.payee == name and not m.payer) / ETHER for name in WALLETS}
    went = {name: sum(m.value_wei for m in seen if m.payer == name and not m.payee) / ETHER for name in WALLETS}
    return {
        "spot_eth_usd": round(market.day(world, "ETH", "coinbase").last, 2),
        "blocks": [{"number": n, "time": block_time(n)} for n in range(head(world), head(world) - BLOCKS, -1)],
        "by_exchange": {name: [came[name], went[name]] for name in WALLETS},
        "transfer_count": sum(bool(m.payer) != bool(m.payee) for m in seen),
        "inter_exchange_count": sum(bool(m.payer and m.payee and m.payer != m.payee) for m in seen),
        "total_inflow_eth": sum(came.values()),
        "total_outflow_eth": sum(went.values()),
    }


@expects("pro/whales")
def whales(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    """Return what a first look finds: in the hundred newest bitcoin transactions and the five newest blocks."""
    btc = [tx for tx in bitcoin.newest(world, 100) if tx.moved_sat >= 10 * bitcoin.SAT]
    eth = moves(world, 100)
    return {
        "btc": {tx.txid: [tx.moved_sat / bitcoin.SAT, tx.total_sat / bitcoin.SAT] for tx in btc},
        "eth": {move.txid: move.value_wei / ETHER for move in eth},
        "btc_usd": round(market.day(world, "BTC", "coinbase").last, 2),
        "eth_usd": round(market.day(world, "ETH", "coinbase").last, 2),
    }


@expects("pro/crypto-deep")
def network(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    """Return mempool.space's figures for Bitcoin, before anything is rounded."""
    waiting = dict(zip(("count", "vsize", "total_fee_sat"), bitcoin.waiting(world), strict=True))
    return {
        "block_height": bitcoin.height(world),
        "fees_sat_per_vb": list(bitcoin.fees(world)),
        "hashrate": {
            "current_eh_s": bitcoin.hashrate(world, 7) / 1e18,
            "current_difficulty": bitcoin.difficulty(world),
            "mean_days": 7,
        },
        "mempool": waiting,
    }
