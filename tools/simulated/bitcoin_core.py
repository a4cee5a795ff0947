"""Simulate an operator's Bitcoin Core node on the wire: batches of JSON-RPC calls, amounts in BTC, a password.

It is a possible value of BITCOIN_RPC_URL: https://sim-user:sim-password@bitcoin.example
"""

import base64
import binascii
from collections.abc import Callable
from functools import cached_property
from typing import Any

from tools.simulated import bitcoin
from tools.simulated.bitcoin import SAT, SimOutput, SimTx
from toolserver.world.model import Ask, Reply, World, serves

HOST = "bitcoin.example"
WAITS_S, LARGE_WAIT_S = 240, 1800  # seconds for which small and large transactions wait for a block
SAT_A_VBYTE = 10**5  # sat/vB of a BTC/kvB
UNKNOWN = -5


class NodeError(Exception):
    """The error that the node returns in place of a result."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.body = {"code": code, "message": message}


def outpoint(world: World, tx: SimTx, n: int) -> tuple[str, int]:
    """Return the output that an input of a transaction spends."""
    return bitcoin.digest(world, "parent", f"{tx.txid}.{n}"), n


def is_parent_waiting(world: World, tx: SimTx) -> bool:
    """Return True for a transaction that spends outputs of one that waits itself."""
    return world.u("btc.parent", tx.txid) < 0.05


class SimNode:
    """The node at one instant. Each method of METHODS is the RPC of that name."""

    def __init__(self, world: World) -> None:
        self._world = world

    @cached_property
    def waiting(self) -> dict[str, SimTx]:
        """The transactions that wait for a block, by id."""
        recent = bitcoin.heard(self._world, self._world.now - WAITS_S)
        return {tx.txid: tx for tx in [*recent, *bitcoin.large(self._world, self._world.now - LARGE_WAIT_S)]}

    @cached_property
    def _owners(self) -> dict[tuple[str, int], SimOutput]:
        """The outputs of confirmed transactions that those which wait spend."""
        confirmed = (tx for tx in self.waiting.values() if not is_parent_waiting(self._world, tx))
        return {outpoint(self._world, tx, n): spent for tx in confirmed for n, spent in enumerate(tx.inputs)}

    def getblockchaininfo(self) -> dict[str, Any]:
        world, height = self._world, bitcoin.height(self._world)
        mined_at = bitcoin.GENESIS + height * bitcoin.BLOCK_S
        return {
            "chain": "main",
            "blocks": height,
            "headers": height,
            "bestblockhash": bitcoin.digest(world, "block", height),
            "bits": "17021a91",
            "difficulty": bitcoin.difficulty(world),
            "time": mined_at,
            "mediantime": mined_at - 5 * bitcoin.BLOCK_S,
            "verificationprogress": 0.9999987,
            "initialblockdownload": False,
            "chainwork": bitcoin.digest(world, "work", height),
            "size_on_disk": 812_000_000_000,
            "pruned": False,
            "warnings": [],
        }

    def getnetworkhashps(self, blocks: int) -> float:
        return bitcoin.hashrate(self._world, 1)

    def getmempoolinfo(self) -> dict[str, Any]:
        count, vsize, fee = bitcoin.waiting(self._world)
        return {
            "loaded": True,
            "size": count,
            "bytes": vsize,
            "usage": 4 * vsize,
            "total_fee": fee / SAT,
            "maxmempool": 300_000_000,
            "mempoolminfee": round(bitcoin.FLOOR / SAT_A_VBYTE, 8),
            "minrelaytxfee": round(bitcoin.FLOOR / SAT_A_VBYTE, 8),
            "incrementalrelayfee": round(bitcoin.FLOOR / SAT_A_VBYTE, 8),
            "unbroadcastcount": 0,
            "fullrbf": True,
        }

    def estimatesmartfee(self, blocks: int, mode: str) -> dict[str, Any]:
        rates = dict(zip((1, 3, 6, 144), bitcoin.fees(self._world), strict=False))
        return {"feerate": round(rates[blocks] / SAT_A_VBYTE, 8), "blocks": max(2, blocks)}

    def getrawmempool(self, verbose: bool) -> list[str]:
        return list(self.waiting)

    def getrawtransaction(self, txid: str, verbose: bool) -> dict[str, Any]:
        tx = self._find(txid, "No such mempool transaction. Use -txindex or provide a block hash.")
        spent = [outpoint(self._world, tx, n) for n in range(len(tx.inputs))]
        unsigned = {"scriptSig": {"asm": "", "hex": ""}, "sequence": 4294967293}
        return {
            "txid": tx.txid,
            "hash": bitcoin.digest(self._world, "witness", tx.txid),
            "version": 2,
            "size": tx.vsize + 80,
            "vsize": tx.vsize,
            "weight": tx.weight,
            "locktime": 0,
            "vin": [{"txid": name, "vout": n} | unsigned for name, n in spent],
            "vout": [{"value": out.value_sat / SAT, "n": n, **_script(out)} for n, out in enumerate(tx.outputs)],
            "hex": "02000000",
        }

    def getmempoolentry(self, txid: str) -> dict[str, Any]:
        tx = self._find(txid, "Transaction not in mempool")
        fee = tx.fee_sat / SAT
        return {
            "vsize": tx.vsize,
            "weight": tx.weight,
            "time": int(tx.at),
            "height": bitcoin.height(self._world.at(tx.at)),
            "descendantcount": 1,
            "descendantsize": tx.vsize,
            "ancestorcount": 1,
            "ancestorsize": tx.vsize,
            "wtxid": bitcoin.digest(self._world, "witness", tx.txid),
            "fees": {"base": fee, "modified": fee, "ancestor": fee, "descendant": fee},
            "depends": [],
            "spentby": [],
            "bip125-replaceable": True,
            "unbroadcast": False,
        }

    def gettxout(self, txid: str, n: int, include_mempool: bool) -> dict[str, Any] | None:
        spent = self._owners.get((txid, n))
        if spent is None:
            return None
        block = bitcoin.digest(self._world, "block", bitcoin.height(self._world))
        found = {"bestblock": block, "confirmations": 6, "value": spent.value_sat / SAT}
        return found | _script(spent) | {"coinbase": False}

    def _find(self, txid: str, otherwise: str) -> SimTx:
        tx = self.waiting.get(txid)
        if tx is None:
            raise NodeError(UNKNOWN, otherwise)
        return tx


METHODS = {
    method.__name__: method
    for method in (
        SimNode.getblockchaininfo,
        SimNode.getnetworkhashps,
        SimNode.getmempoolinfo,
        SimNode.estimatesmartfee,
        SimNode.getrawmempool,
        SimNode.getrawtransaction,
        SimNode.getmempoolentry,
        SimNode.gettxout,
    )
}
ASKED_FIRST = {
    "BitcoinCore.network": ("getblockchaininfo", "estimatesmartfee"),
    "BitcoinCore.mempool": ("getrawmempool", "getrawtransaction", "gettxout"),
}


def answer(world: World, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the replies to a batch."""
    simulated = SimNode(world)
    return [_answer(simulated, call) for call in calls]


def _answer(simulated: SimNode, call: dict[str, Any]) -> dict[str, Any]:
    method, reply = METHODS.get(call["method"]), {"jsonrpc": "2.0"}
    if method is None:
        return reply | {"error": {"code": -32601, "message": "Method not found"}, "id": call["id"]}
    try:
        return reply | {"result": method(simulated, *call["params"]), "id": call["id"]}
    except NodeError as error:
        return reply | {"error": error.body, "id": call["id"]}


def _script(output: SimOutput) -> dict[str, Any]:
    if output.address is None:
        return {"scriptPubKey": {"asm": "OP_RETURN 00", "desc": "raw(6a0100)", "hex": "6a0100", "type": "nulldata"}}
    named = {"asm": "0 00", "desc": f"addr({output.address})", "hex": "0014", "address": output.address}
    return {"scriptPubKey": named | {"type": "witness_v0_keyhash"}}


def _is_allowed(ask: Ask) -> bool:
    """Return True for a user and a password that both begin with `sim-`."""
    kind, _, packed = ask.headers.get("authorization", "").partition(" ")
    try:
        user, _, password = base64.b64decode(packed, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return False
    return kind == "Basic" and ask.key_ok(user) and ask.key_ok(password)


def node(world: World, ask: Ask) -> Reply:
    """Answer a batch. Without the right password the body is empty."""
    if not _is_allowed(ask):
        return Reply.text("", 401, headers={"WWW-Authenticate": 'Basic realm="jsonrpc"'})
    return Reply.json(answer(world, ask.json))


def older_node(world: World, ask: Ask) -> Reply:
    """Answer as a node before 28.0 does, in another order: `error` is always there, and there is no time of a block."""
    replies = [{"result": None, "error": None} | reply for reply in answer(world, ask.json)]
    for reply in replies:
        del reply["jsonrpc"]
        if isinstance(reply["result"], dict) and "mediantime" in reply["result"]:
            reply["result"] = {name: value for name, value in reply["result"].items() if name != "time"}
    return Reply.json(replies[::-1])


def _asks(methods: tuple[str, ...]) -> Callable[[Ask], bool]:
    def when(ask: Ask) -> bool:
        try:
            return ask.json[0]["method"] in methods
        except (ValueError, TypeError, LookupError):
            return False

    return when


def _refuse(code: int, message: str) -> dict[str, Any]:
    return {"result": None, "error": {"code": code, "message": message}, "id": None}


def nothing(world: World, ask: Ask) -> Reply:
    """Answer each call as a node that is still loading."""
    error = {"code": -28, "message": "Loading block index…"}
    return Reply.json([{"jsonrpc": "2.0", "error": error, "id": call["id"]} for call in ask.json])


FORMS = {
    "error200": Reply.json(_refuse(-32600, "Invalid Request object")),
    "limited": Reply.text("Work queue depth exceeded", 503),
}
for _name, _methods in ASKED_FIRST.items():
    _route = serves(_name, HOST, "/", "POST", when=_asks(_methods), forms=FORMS)(node)
    _route.form("drift")(older_node)
    _route.form("empty")(nothing)
