"""Simulate Base's public nodes, with one token: a block every two seconds, USDC transfers as injected.

Transfers come from the control interface (`POST /_sim/chain/transfer`), which injects events
of kind `base_transfer`. Balances are not kept: the balance of an address is the sum that was
sent to it less what it sent, and at least 0, so that a payer needs no money of its own.
"""

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

from toolserver.world.model import Ask, Reply, World, serves

CHAIN_ID, BLOCK_S = 8453, 2
GENESIS = 1_686_789_347  # the real chain's first block
SAFE, FINALIZED = 60, 600  # blocks behind the head
BALANCES_CODE = 87  # bytes of the code that reads many balances, before the addresses
USDC = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"
TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
CODE = "0x60806040523661001357610011610017565b005b6100115b"
HOSTS = ("mainnet.base.org", "base-rpc.publicnode.com")


class Sent(NamedTuple):
    """A transfer of USDC; `amount` in 0.000001 USDC."""

    hash: str
    sender: str
    to: str
    amount: int
    block: int


def block_at(at: float) -> int:
    """Return the number of the first block that is not older than an instant."""
    return -(-int(at - GENESIS) // BLOCK_S)


def head(world: World) -> int:
    """Return the number of the newest block."""
    return int(world.now - GENESIS) // BLOCK_S


def block_time(number: int) -> int:
    return GENESIS + number * BLOCK_S


def sent(world: World) -> list[Sent]:
    """Return every transfer that is in a block by now."""
    transfers = [
        Sent(e["hash"], e["from"].lower(), e["to"].lower(), int(e["amount"]), block_at(e["at"]))
        for e in world.injected("base_transfer")
    ]
    return [each for each in transfers if each.block <= head(world)]


def block_hash(world: World, number: int) -> str:
    """Return a hash of a block's number and content, so that a block that loses a transfer gets another hash."""
    held = "".join(each.hash for each in sent(world) if each.block == number)
    return f"0x{hashlib.sha256(f'base {number} {held}'.encode()).hexdigest()}"


def block(world: World, number: int) -> dict[str, Any]:
    """Return a block, with the hashes of its transactions."""
    empty = "0x" + "00" * 32
    return {
        "baseFeePerGas": "0x4c4b40",
        "blobGasUsed": "0x0",
        "difficulty": "0x0",
        "excessBlobGas": "0x0",
        "extraData": "0x00000000fa00000006",
        "gasLimit": "0x7270e00",
        "gasUsed": "0x2625a0",
        "hash": block_hash(world, number),
        "logsBloom": "0x" + "00" * 256,
        "miner": "0x4200000000000000000000000000000000000011",
        "mixHash": empty,
        "nonce": "0x0000000000000000",
        "number": hex(number),
        "parentBeaconBlockRoot": empty,
        "parentHash": block_hash(world, number - 1),
        "receiptsRoot": empty,
        "sha3Uncles": "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347",
        "size": "0x3a98",
        "stateRoot": empty,
        "timestamp": hex(block_time(number)),
        "transactions": [each.hash for each in sent(world) if each.block == number],
        "transactionsRoot": empty,
        "uncles": [],
        "withdrawals": [],
        "withdrawalsRoot": empty,
    }


class BaseRpcError(Exception):
    """The error that a node returns in place of a result."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.body = {"code": code, "message": message}


def _height(world: World, tag: str) -> int:
    back = {"latest": 0, "pending": 0, "safe": SAFE, "finalized": FINALIZED, "earliest": head(world)}
    return max(0, head(world) - back[tag]) if tag in back else int(tag, 16)


def _block_by_number(world: World, params: list[Any]) -> dict[str, Any] | None:
    number = _height(world, params[0])
    if not 0 <= number <= head(world):
        return None
    shown = block(world, number)
    if params[1]:
        shown["transactions"] = [_shown(world, each) for each in sent(world) if each.block == number]
    return shown


def _find(world: World, hash: str) -> Sent | None:
    return next((each for each in sent(world) if each.hash == hash.lower()), None)


def _transaction(world: World, params: list[Any]) -> dict[str, Any] | None:
    transfer = _find(world, params[0])
    return transfer and _shown(world, transfer)


def _shown(world: World, each: Sent) -> dict[str, Any]:
    return {
        **_place(world, each),
        "hash": each.hash,
        "from": each.sender,
        "to": USDC,
        "input": f"0xa9059cbb{each.to[2:]:0>64}{each.amount:064x}",
        "value": "0x0",
        "gas": "0xfde8",
        "gasPrice": "0x5b8d80",
        "maxFeePerGas": "0x989680",
        "maxPriorityFeePerGas": "0xf4240",
        "nonce": "0x7",
        "type": "0x2",
        "accessList": [],
        "chainId": hex(CHAIN_ID),
        "yParity": "0x0",
        "v": "0x0",
        "r": each.hash,
        "s": each.hash,
    }


def _place(world: World, each: Sent) -> dict[str, Any]:
    return {
        "blockHash": block_hash(world, each.block),
        "blockNumber": hex(each.block),
        "transactionIndex": hex(1 + [s.hash for s in sent(world) if s.block == each.block].index(each.hash)),
    }


def _transfer_log(world: World, each: Sent) -> dict[str, Any]:
    place = _place(world, each)
    return {
        **place,
        "transactionHash": each.hash,
        "address": USDC,
        "topics": [TRANSFER, f"0x{each.sender[2:]:0>64}", f"0x{each.to[2:]:0>64}"],
        "data": f"0x{each.amount:064x}",
        "logIndex": place["transactionIndex"],
        "removed": False,
    }


def _receipt(world: World, params: list[Any]) -> dict[str, Any] | None:
    each = _find(world, params[0])
    if each is None:
        return None
    return {
        **_place(world, each),
        "transactionHash": each.hash,
        "from": each.sender,
        "to": USDC,
        "status": "0x1",
        "contractAddress": None,
        "cumulativeGasUsed": "0x1ec30",
        "effectiveGasPrice": "0x5b8d80",
        "gasUsed": "0xb1c5",
        "logs": [_transfer_log(world, each)],
        "logsBloom": "0x" + "00" * 256,
        "type": "0x2",
        "l1Fee": "0x2a1b3c",
        "l1GasPrice": "0x3b9aca00",
        "l1GasUsed": "0x640",
    }


def _logs(world: World, params: list[Any]) -> list[dict[str, Any]]:
    """Return the transfers of USDC in a range of blocks. Each topic is one value, a list of them, or None for any."""
    wanted = params[0]
    event, payers, payees = [*wanted["topics"], None, None][:3]
    contracts = [wanted["address"]] if isinstance(wanted["address"], str) else wanted["address"]
    if USDC not in map(str.lower, contracts) or event != TRANSFER:
        return []
    low, high = _height(world, wanted["fromBlock"]), _height(world, wanted["toBlock"])
    in_range = (s for s in sent(world) if low <= s.block <= high)
    paid = [s for s in in_range if _is_wanted(s.sender, payers) and _is_wanted(s.to, payees)]
    return [_transfer_log(world, each) for each in paid]


def _is_wanted(address: str, topic: str | list[str] | None) -> bool:
    """Return True if a topic of a search stands for an address: None for any, else one or several words."""
    words = [topic] if isinstance(topic, str) else topic
    return words is None or f"0x{address[2:]:0>64}" in map(str.lower, words)


def _asked_about(data: str) -> list[str]:
    """Return the addresses in code that is run without deployment: only the code that reads balances of USDC is
    supported.
    """
    code, words = data[2 : 2 + 2 * BALANCES_CODE], data[2 + 2 * BALANCES_CODE :]
    if not (code.startswith("6370a08231") and USDC[2:] in code and len(words) % 64 == 0):
        raise BaseRpcError(3, "execution reverted")
    return [f"0x{words[start + 24 : start + 64]}".lower() for start in range(0, len(words), 64)]


def _balance(world: World, owner: str, at: int) -> int:
    moved = [transfer for transfer in sent(world) if transfer.block <= at]
    came = sum(transfer.amount for transfer in moved if transfer.to == owner)
    return max(0, came - sum(transfer.amount for transfer in moved if transfer.sender == owner))


def _call(world: World, params: list[Any]) -> str:
    call = params[0]
    data, at = call.get("data") or call.get("input") or "0x", _height(world, params[1])
    if "to" not in call:
        return "0x" + "".join(f"{_balance(world, owner, at):064x}" for owner in _asked_about(data))
    if call["to"].lower() != USDC:
        return "0x"
    if data == "0x313ce567":  # decimals()
        return f"0x{6:064x}"
    if data[:10] == "0x70a08231" and len(data) == 74:  # balanceOf(address)
        return f"0x{_balance(world, f'0x{data[34:]}'.lower(), at):064x}"
    if data[:10] == "0xe94a0102" and len(data) == 138:  # authorizationState(address,bytes32): nobody here uses any
        return f"0x{0:064x}"
    raise BaseRpcError(3, "execution reverted")


METHODS: dict[str, Callable[[World, list[Any]], Any]] = {
    "eth_chainId": lambda world, params: hex(CHAIN_ID),
    "net_version": lambda world, params: str(CHAIN_ID),
    "eth_gasPrice": lambda world, params: hex(6_000_000),
    "eth_blockNumber": lambda world, params: hex(head(world)),
    "eth_getBlockByNumber": _block_by_number,
    "eth_getCode": lambda world, params: CODE if params[0].lower() == USDC else "0x",
    "eth_call": _call,
    "eth_getTransactionReceipt": _receipt,
    "eth_getTransactionByHash": _transaction,
    "eth_getLogs": _logs,
}


def answer(world: World, call: dict[str, Any]) -> dict[str, Any]:
    """Return the reply to one JSON-RPC call."""
    said = {"jsonrpc": "2.0", "id": call.get("id")}
    method = METHODS.get(call.get("method", ""))
    if method is None:
        return said | {"error": {"code": -32601, "message": "the method does not exist/is not available"}}
    try:
        return said | {"result": method(world, call.get("params") or [])}
    except BaseRpcError as error:
        return said | {"error": error.body}
    except (LookupError, ValueError, TypeError, AttributeError):
        return said | {"error": {"code": -32602, "message": "invalid argument"}}


def rpc(world: World, ask: Ask) -> Reply:
    """Answer one call, or a list of calls."""
    request = ask.json
    return Reply.json(
        [answer(world, call) for call in request] if isinstance(request, list) else answer(world, request)
    )


def behind(world: World, ask: Ask) -> Reply:
    """Answer as a node that does not know any transaction yet."""
    return Reply.json({"jsonrpc": "2.0", "id": ask.json.get("id"), "result": None})


def too_many(world: World, ask: Ask) -> Reply:
    said = {"jsonrpc": "2.0", "id": ask.json.get("id"), "error": {"code": -32016, "message": "over rate limit"}}
    return Reply.json(said, 429)


for _host in HOSTS:
    _route = serves("Base.rpc", _host, "/", "POST")(rpc)
    _route.form("empty")(behind)
    _route.form("limited")(too_many)
