"""Simulate Solana nodes: JSON-RPC over POST, slots of about 400 ms, votes among the transactions."""

from collections.abc import Callable, Mapping
from typing import Any

from toolserver.world.model import Ask, Reply, Route, World, expects, serves

HOSTS = {
    "solana-rpc.publicnode.com": "/",
    "api.mainnet-beta.solana.com": "/",
    "solana.drpc.org": "/",
    "solana.example": "/{key}",  # a possible value of SOLANA_RPC_URL: https://solana.example/sim-key
}
SAMPLES = "getRecentPerformanceSamples"
BLOCK_TIME = "getBlockTime"
SLOT_S, EPOCH_SLOTS, SAMPLE_S = 0.4, 432_000, 60
LAUNCH = 1_600_000_000  # chosen so that slots have as many digits as the real ones


def slot_at(at: float) -> int:
    return int((at - LAUNCH) / SLOT_S) + 3


def time_of(slot: int) -> int:
    """Return the time of a slot, in whole epoch seconds."""
    return int((slot - 3) * SLOT_S) + LAUNCH


def samples(world: World, count: int) -> list[dict[str, int]]:
    """Return the completed minutes, newest first."""
    ends = [world.now - world.now % SAMPLE_S - i * SAMPLE_S for i in range(count)]
    return [_sample(world, end) for end in ends]


def _sample(world: World, end: float) -> dict[str, int]:
    users = int(SAMPLE_S * (1100 + 500 * world.noise("solana.users", end / 1800)))
    slots = slot_at(end) - slot_at(end - SAMPLE_S)
    return {
        "numNonVoteTransactions": users,
        "numSlots": slots,
        "numTransactions": users + slots * 1250,
        "samplePeriodSecs": SAMPLE_S,
        "slot": slot_at(end),
    }


def epoch_info(world: World) -> dict[str, int]:
    slot = slot_at(world.now)
    return {
        "absoluteSlot": slot,
        "blockHeight": slot - slot // 20,
        "epoch": slot // EPOCH_SLOTS,
        "slotIndex": slot % EPOCH_SLOTS,
        "slotsInEpoch": EPOCH_SLOTS,
        "transactionCount": slot * 1700,
    }


def answer(world: World, ask: Ask) -> Reply:
    if _asks(SAMPLES)(ask):
        return _result(ask, samples(world, int(*ask.json["params"])))
    if _asks(BLOCK_TIME)(ask):
        return _result(ask, time_of(int(*ask.json["params"])))
    return _result(ask, epoch_info(world))


def _asks(method: str) -> Callable[[Ask], bool]:
    """Match a request by its body: one path answers every call."""
    return lambda ask: f'"{method}"' in ask.body.decode(errors="replace")


def _without_votes(world: World, ask: Ask) -> Reply:
    """Answer as an older node, which does not count the transactions of users separately."""
    rows = samples(world, int(ask.json["params"][0]))
    return _result(ask, [{k: v for k, v in row.items() if k != "numNonVoteTransactions"} for row in rows])


def _behind(world: World, ask: Ask) -> Reply:
    return _error(ask, -32005, "Node is behind by 4242 slots")


def _text(world: World, ask: Ask) -> Reply:
    return Reply.json({"jsonrpc": "2.0", "error": "something wrong", "id": ask.json["id"]})


def _too_many(world: World, ask: Ask) -> Reply:
    return _error(ask, 429, "Too many requests for a specific RPC call", 429)


def _barred(world: World, ask: Ask) -> Reply:
    return _error(ask, 403, "Access forbidden, contact your app developer or support@rpcpool.com.", 403)


def _nothing(world: World, ask: Ask) -> Reply:
    return _result(ask, [] if _asks(SAMPLES)(ask) else None)


def _result(ask: Ask, value: Any) -> Reply:
    return Reply.json({"jsonrpc": "2.0", "result": value, "id": ask.json["id"]})


def _error(ask: Ask, code: int, message: str, status: int = 200) -> Reply:
    failure = {"code": code, "message": message}
    return Reply.json({"jsonrpc": "2.0", "error": failure, "id": ask.json["id"]}, status)


def _own_node(world: World, ask: Ask) -> Reply:
    """Answer as an operator's own node, with the key in the path."""
    if not ask.key_ok(ask.parts["key"]):
        return _error(ask, 401, "Unauthorized", 401)
    return answer(world, ask)


def _serve(name: str, method: str, host: str, path: str) -> Route:
    reply = answer if path == "/" else _own_node
    route = serves(name, host, path, "POST", when=_asks(method))(reply)
    route.forms |= {
        "error200": _behind,
        "empty": _nothing,
        "limited": _too_many,
        "geo": _barred,
    }
    route.forms["status:500"] = _text
    return route


for _host, _path in HOSTS.items():
    _serve("Solana.performance_samples", SAMPLES, _host, _path).form("drift")(_without_votes)
    _serve("Solana.epoch_info", "getEpochInfo", _host, _path)
    _serve("Solana.block_time", BLOCK_TIME, _host, _path)


@expects("chain-network")
def expected(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the values that `/api/chain-network` must have at this instant."""
    rows, info = samples(world, 3), epoch_info(world)
    users = [row["numNonVoteTransactions"] for row in rows]
    return {
        "tps": round(users[0] / SAMPLE_S, 1),
        "tpsAvg": round(sum(users) / (3 * SAMPLE_S), 1),
        "tpsTotal": round(rows[0]["numTransactions"] / SAMPLE_S, 1),
        "slot": info["absoluteSlot"],
        "slotMs": 400.0,
        "epoch": info["epoch"],
        "epochProgress": round(100 * info["slotIndex"] / EPOCH_SLOTS, 1),
        "includesVotes": False,
    }
