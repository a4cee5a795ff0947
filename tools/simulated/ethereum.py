"""Simulate Ethereum's public nodes: JSON-RPC over POST, quantities in hex."""

import itertools
from collections.abc import Callable
from typing import Any

from tools.simulated import market
from tools.simulated.ethereum_chain import (
    GWEI,
    SimTransfer,
    base_fee,
    block_time,
    digest,
    head,
    stranger,
    tip,
    transfers,
)
from toolserver.world.model import Ask, Reply, World, serves

BLOCK_GAS = 36_000_000
FEEDS = {
    "0xf4030086522a5beea4988f8ca5b36dbc97bee88c": ("BTC", 1200),
    "0x5f4ec3df9cbd43714fe2740f5e3616155c5b8419": ("ETH", 1200),
    "0x214ed9da11d2fbe465a6fc601a91e62ebec1a0d6": ("XAU", 21600),
}  # contract -> asset, and how often it is updated

LATEST, ROUND, AGGREGATE = (bytes.fromhex(text) for text in ("feaf968c", "9a6fc8f5", "82ad56cb"))
MULTICALL, PHASE = "0xca11bde05977b3631167028862be2a173976ca11", 7


def block(world: World, number: int) -> dict[str, Any]:
    """Return a block with its transactions, in the form of nodes."""
    count = 120 + int(world.u("eth.count", number) * 81)
    large = transfers(world, number)
    small = [_small(world, f"{number}.s{i}") for i in range(count - len(large))]
    ordered = sorted([*large, *small], key=lambda each: digest(world, "tx", each.key))
    name = digest(world, "block", number)
    fee = base_fee(world, number)
    return {
        "baseFeePerGas": hex(fee),
        "blobGasUsed": "0x60000",
        "difficulty": "0x0",
        "excessBlobGas": "0x0",
        "extraData": "0x73696d756c61746564",
        "gasLimit": hex(BLOCK_GAS),
        "gasUsed": hex(int(BLOCK_GAS * _used(world, number))),
        "hash": name,
        "logsBloom": "0x" + "00" * 256,
        "miner": stranger(world, f"builder{number % 5}"),
        "mixHash": digest(world, "mix", number),
        "nonce": "0x0000000000000000",
        "number": hex(number),
        "parentBeaconBlockRoot": digest(world, "beacon", number),
        "parentHash": digest(world, "block", number - 1),
        "receiptsRoot": digest(world, "receipts", number),
        "requestsHash": digest(world, "requests", number),
        "sha3Uncles": "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347",
        "size": hex(400 * count),
        "stateRoot": digest(world, "state", number),
        "timestamp": hex(block_time(number)),
        "transactions": [_transaction(world, number, name, fee, i, each) for i, each in enumerate(ordered)],
        "transactionsRoot": digest(world, "transactions", number),
        "uncles": [],
        "withdrawals": [],
        "withdrawalsRoot": digest(world, "withdrawals", number),
    }


def _used(world: World, number: int) -> float:
    return round(world.between("eth.used", number, 0.2, 0.9), 6)


def _small(world: World, key: str) -> SimTransfer:
    """Return a transaction of less than 3 ETH, often of zero: a contract call."""
    value = 0 if world.u("eth.call", key) < 0.5 else int(world.between("eth.small", key, 0.001, 3) * GWEI) * GWEI
    return SimTransfer(key, stranger(world, key), stranger(world, key + "to"), value)


def _transaction(
    world: World, number: int, block_hash: str, fee: int, index: int, moved: SimTransfer
) -> dict[str, Any]:
    kind = world.pick("eth.kind", moved.key, [2, 2, 2, 2, 2, 2, 0, 0, 1, 3])
    extra = int(world.between("eth.extra", moved.key, 0.001, 1) * GWEI)
    signed = digest(world, "signature", moved.key)
    return {
        "blockHash": block_hash,
        "blockNumber": hex(number),
        "from": moved.sender,
        "gas": "0x5208",
        "gasPrice": hex(fee + extra),
        "hash": digest(world, "tx", moved.key),
        "input": "0x" if moved.value_wei else "0xa9059cbb" + signed[2:],
        "nonce": hex(int(signed[2:6], 16)),
        "to": moved.to,
        "transactionIndex": hex(index),
        "value": hex(moved.value_wei),
        "type": hex(kind),
        **_typed(world, kind, fee, extra),
        "v": hex(0 if kind else 37 + index % 2),
        "r": signed,
        "s": digest(world, "s", moved.key),
    }


def _typed(world: World, kind: int, fee: int, extra: int) -> dict[str, Any]:
    """Return the members that depend on the type of a transaction."""
    if kind == 0:
        return {"chainId": "0x1"}
    listed = {"accessList": [], "chainId": "0x1", "yParity": "0x0"}
    if kind == 1:
        return listed
    capped = {"maxFeePerGas": hex(2 * fee + extra), "maxPriorityFeePerGas": hex(extra)}
    blobs = (
        {"maxFeePerBlobGas": "0x3b9aca00", "blobVersionedHashes": [digest(world, "blob", extra)]} if kind == 3 else {}
    )
    return capped | listed | blobs


class EthereumRpcError(Exception):
    """The error that a node returns in place of a result."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.body = {"code": code, "message": message}


def _block_number(world: World, params: list[Any]) -> str:
    return hex(head(world))


def _get_block(world: World, params: list[Any]) -> dict[str, Any] | None:
    number = head(world) if params[0] == "latest" else int(params[0], 16)
    if not 0 <= number <= head(world):
        return None
    full = block(world, number)
    return full if params[1] else full | {"transactions": [each["hash"] for each in full["transactions"]]}


def _fee_history(world: World, params: list[Any]) -> dict[str, Any]:
    count, newest = int(params[0], 16), head(world)
    numbers = range(newest - count + 1, newest + 1)
    return {
        "oldestBlock": hex(numbers[0]),
        "reward": [[] if n % 17 == 0 else [hex(tip(world, n, p)) for p in params[2]] for n in numbers],
        "baseFeePerGas": [hex(base_fee(world, n)) for n in (*numbers, newest + 1)],
        "gasUsedRatio": [_used(world, n) for n in numbers],
        "baseFeePerBlobGas": ["0x1"] * (count + 1),
        "blobGasUsedRatio": [0.5] * count,
    }


def _call(world: World, params: list[Any]) -> str:
    call = params[0]
    data = bytes.fromhex(call.get("data", call.get("input")).removeprefix("0x"))
    made = _aggregate(world, data) if call["to"].lower() == MULTICALL else _read_feed(world, call["to"].lower(), data)
    if made is None:
        raise EthereumRpcError(3, "execution reverted")
    return "0x" + made.hex()


def _read_feed(world: World, contract: str, data: bytes) -> bytes | None:
    """Return a feed's round, the latest or that of a number; None for a round or a call that it does not know."""
    if contract not in FEEDS:
        return None
    asset, every_s = FEEDS[contract]
    latest = int(world.now // every_s)
    if data == LATEST:
        number = latest
    elif data[:4] == ROUND:
        phase, number = divmod(_word_at(data, 4), 1 << 64)
        if phase != PHASE or not 0 < number <= latest:
            return None
    else:
        return None
    written, round_id = number * every_s, (PHASE << 64) + number
    price = int(market.price(world, asset, written) * 10**8)
    return _pack(round_id, price, written, written, round_id)


def _aggregate(world: World, data: bytes) -> bytes | None:
    """Return what Multicall3 does for aggregate3: success and bytes of each call; those here may all fail."""
    if data[:4] != AGGREGATE:
        return None
    body = data[4 + _word_at(data, 4) :]
    elements = body[32:]
    results = []
    for index in range(_word_at(body, 0)):
        call = elements[_word_at(elements, 32 * index) :]
        at = _word_at(call, 64)
        inner = call[at + 32 : at + 32 + _word_at(call, at)]
        made = _read_feed(world, "0x" + call[12:32].hex(), inner)
        results.append(_pack(made is not None, 64, len(made or b"")) + (made or b""))
    heads, offset = [], 32 * len(results)
    for result in results:
        heads.append(offset)
        offset += len(result)
    return _pack(32, len(results), *heads) + b"".join(results)


def _word_at(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 32])


def _pack(*words: int) -> bytes:
    return b"".join(int(word).to_bytes(32) for word in words)


METHODS: dict[str, Callable[[World, list[Any]], Any]] = {
    "eth_blockNumber": _block_number,
    "eth_getBlockByNumber": _get_block,
    "eth_feeHistory": _fee_history,
    "eth_call": _call,
    "eth_chainId": lambda world, params: "0x1",
}


def answer(world: World, call: dict[str, Any]) -> dict[str, Any]:
    """Return the reply to one JSON-RPC call."""
    said = {"jsonrpc": "2.0", "id": call.get("id")}
    method = METHODS.get(call.get("method", ""))
    if method is None:
        return said | {"error": {"code": -32601, "message": "the method does not exist/is not available"}}
    try:
        return said | {"result": method(world, call.get("params", []))}
    except EthereumRpcError as error:
        return said | {"error": error.body}
    except (LookupError, ValueError, TypeError):
        return said | {"error": {"code": -32602, "message": "invalid argument"}}


def rpc(world: World, ask: Ask) -> Reply:
    """Answer one call, or a list of calls."""
    request = ask.json
    return Reply.json(
        [answer(world, call) for call in request] if isinstance(request, list) else answer(world, request)
    )


def own_node(world: World, ask: Ask) -> Reply:
    """Answer as an operator's own node, with the key in the path."""
    if not ask.key_ok(ask.parts["key"]):
        return Reply.json(
            {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "Must be authenticated!"}}, 401
        )
    return rpc(world, ask)


def _says(**said: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1} | said


def reordered(world: World, ask: Ask) -> Reply:
    """Return the result first, addresses in another case, and the newer members."""
    said = answer(world, ask.json)
    result = said.get("result")
    if isinstance(result, dict) and "transactions" in result:
        changed = [
            each if isinstance(each, str) else each | _shouted(each) | {"blockTimestamp": result["timestamp"]}
            for each in result["transactions"]
        ]
        said["result"] = result | {"transactions": changed, "totalDifficulty": None}
    return Reply.json(dict(reversed(said.items())) | {"node": "sim"})


def _shouted(transaction: dict[str, Any]) -> dict[str, Any]:
    return {name: v and "0x" + v[2:].upper() for name in ("from", "to") for v in [transaction[name]]}


FORMS = {
    "empty": Reply.json(_says(result=None)),
    "error200": Reply.json(_says(error={"message": "Can't route your request to suitable provider", "code": 12})),
    "limited": Reply.json(_says(error={"code": -32005, "message": "rate limit exceeded"}), 429),
}
FORMS_OF_HOSTS = {"rpc.flashbots.net": {"error200": Reply.json(_says(error="rate limit exceeded"))}}
HOSTS = {
    "ethereum-rpc.publicnode.com": "/",
    "eth.drpc.org": "/",
    "gateway.tenderly.co": "/public/mainnet",
    "rpc.flashbots.net": "/",
    "ethereum.example": "/{key}",  # a possible value of ETH_RPC_URL: https://ethereum.example/sim-key
}
ASKED_BY = {
    "Ethereum.block_number": "eth_blockNumber",
    "Ethereum.full_block": "eth_getBlockByNumber",
    "Ethereum.fee_history": "eth_feeHistory",
    "Chainlink.price_feed": "eth_call",
    "Chainlink.round_history": "eth_call aggregate3",
}


def asks(method: str | None) -> Callable[[Ask], bool]:
    """Return True if the request calls a JSON-RPC method; None matches methods that have no name here."""

    def when(ask: Ask) -> bool:
        try:
            called = ask.json["method"]
            if called == "eth_call" and ask.json["params"][0]["to"].lower() == MULTICALL:
                called = "eth_call aggregate3"
        except (ValueError, TypeError, KeyError):
            called = None
        return called == method if method else called not in ASKED_BY.values()

    return when


NAMED: dict[str, str | None] = {**ASKED_BY, "Ethereum.other": None}
for (_host, _path), (_name, _method) in itertools.product(HOSTS.items(), NAMED.items()):
    _serve = own_node if "{key}" in _path else rpc
    _forms = FORMS | FORMS_OF_HOSTS.get(_host, {})
    serves(_name, _host, _path, "POST", when=asks(_method), forms=_forms)(_serve).form("drift")(reordered)
