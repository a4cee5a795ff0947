"""Pays, undoes and reorganises on anvil what the control interface asks for, and keeps it at the time of the world."""

import secrets
import socket
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

from toolserver.world.anvil_node import USDC, AnvilNode, RpcError, start_anvil, swallow, word
from toolserver.world.chain import Reorganisation, TransferOrder
from toolserver.world.model import PAID, Ask, Reply, Routes, World
from toolserver.world.request_checks import ControlRefused
from toolserver.world.rich_accounts import WEALTH
from toolserver.world.state import WorldState

LOOK_S = 0.5  # how often blocks are mined that are due
LEAP = 40  # blocks at most that are mined when the clock is set forward: enough for what was before to be final
TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
USED = "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5"  # AuthorizationUsed(address,bytes32)
NOBODY = "0x" + "00" * 20  # who pays what is minted


@asynccontextmanager
async def anvil_chain(program: str | None, state: WorldState, folder: Path | None) -> AsyncIterator[None]:
    """Put the chain of a world on anvil, which ends with the block. With a folder, the next one goes on there.

    Without a program, the chain stays as it is.
    """
    if program is None:
        yield
        return
    start = partial(start_anvil, program, _find_free_port(), state.world().now, folder)
    node = await to_thread.run_sync(start)
    state.chain = chain = AnvilChain(node, state)
    try:
        await chain.follow()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(chain.run)
            yield
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(node.stop)


def _find_free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


class AnvilChain:
    """The chain of a world on a running anvil. Blocks come with the clock of the world, and never go back with it."""

    def __init__(self, node: AnvilNode, state: WorldState) -> None:
        self.node, self._state = node, state
        self._invented: dict[str, tuple[str, dict[str, Any]]] = {}  # by hash: the server that tells it, and the receipt

    async def run(self) -> None:
        """Mine blocks as they become due, until cancelled."""
        while True:
            await self.follow()
            await anyio.sleep(LOOK_S)

    async def follow(self) -> None:
        """Mine what is missing until the time of the world."""
        await to_thread.run_sync(self._follow)

    def _follow(self) -> None:
        if self.node.mine_until(int(self._state.world().now), LEAP):
            self._touch()

    def _touch(self) -> None:
        """Let the world forget its answers about the chain of before."""
        self._state.edits = replace(self._state.edits)

    def serve(self, routes: Routes) -> Routes:
        return routes.on(self)

    async def transfer(self, order: TransferOrder) -> str:
        return await to_thread.run_sync(partial(self._transfer, order))

    def _transfer(self, order: TransferOrder) -> str:
        if order.known_to is not None:
            return self._invent(order, order.known_to)
        token, payer = order.token or USDC, order.via or order.sender
        if order.token is not None:
            self.node.place_contract(token, "Usd")
        if order.via is not None:
            self.node.place_contract(order.via, "SwallowingWallet")
        self._enrich(token, payer, order.amount)
        call = f"0xa9059cbb{word(order.to)}{order.amount:064x}"
        if order.via is not None:
            return self.node.send(order.sender, order.via, swallow([(token, call)]))
        return self.node.send(order.sender, token, call)

    def _enrich(self, token: str, owner: str, amount: int) -> None:
        """Give an account the token, if it holds too little of it. That is no transfer: nobody had it before."""
        from eth_utils.crypto import keccak

        if int(self.node.call("eth_call", {"to": token, "data": f"0x70a08231{word(owner)}"}, "latest"), 16) < amount:
            place = keccak(bytes.fromhex(word(owner)) + bytes(32)).hex()  # `balanceOf` is the first variable
            self.node.call("anvil_setStorageAt", token, f"0x{place}", f"0x{WEALTH:064x}")

    def _invent(self, order: TransferOrder, host: str) -> str:
        """Let one server tell a transfer that was never made: its receipt in the newest block."""
        hash, block = f"0x{secrets.token_hex(32)}", self.node.block("latest")
        place = {"blockHash": block["hash"], "blockNumber": block["number"], "transactionIndex": "0x0"}
        topics = [TRANSFER, f"0x{word(order.sender)}", f"0x{word(order.to)}"]
        log = {"address": USDC, "topics": topics, "data": f"0x{order.amount:064x}", "logIndex": "0x0", "removed": False}
        self._invented[hash] = (
            host,
            {
                **place,
                "transactionHash": hash,
                "from": order.sender,
                "to": USDC,
                "status": "0x1",
                "contractAddress": None,
                "cumulativeGasUsed": "0xb1c5",
                "effectiveGasPrice": "0x0",
                "gasUsed": "0xb1c5",
                "logs": [{**log, **place, "transactionHash": hash}],
                "logsBloom": "0x" + "00" * 256,
                "type": "0x2",
            },
        )
        return hash

    async def undo(self, hash: str) -> bool:
        return await to_thread.run_sync(partial(self._undo, hash))

    def _undo(self, hash: str) -> bool:
        if self._invented.pop(hash, None) is not None:
            self._touch()
            return True
        receipt = self.node.call("eth_getTransactionReceipt", hash) if len(hash) == 66 else None
        if receipt is None:
            return False
        depth = int(self.node.block("latest")["number"], 16) - int(receipt["blockNumber"], 16) + 1
        others = {each for number in self._newest(depth) for each in self.node.block(number)["transactions"]} - {hash}
        self._reorganise(depth, others)
        return True

    async def reorganise(self, depth: int, again: Collection[str]) -> Reorganisation:
        return await to_thread.run_sync(partial(self._reorganise, depth, again))

    def _reorganise(self, depth: int, again: Collection[str]) -> Reorganisation:
        found = [hash for number in self._newest(depth) for hash in self.node.block(number)["transactions"]]
        kept = [hash for hash in found if hash in again]
        raw = [self.node.call("eth_getRawTransactionByHash", hash) for hash in kept]
        try:
            self.node.call("anvil_reorg", depth, [[each, depth - 1] for each in raw])
        except RpcError as error:
            raise ControlRefused(f"anvil says: {error}") from None
        self._touch()
        return Reorganisation([hash for hash in found if hash not in again], kept)

    def _newest(self, depth: int) -> range:
        head = int(self.node.block("latest")["number"], 16)
        return range(max(0, head - depth) + 1, head + 1)

    async def list_transfers(self) -> list[dict[str, Any]]:
        return await to_thread.run_sync(self.read_transfers)

    def read_transfers(self) -> list[dict[str, Any]]:
        """Return the same, for a thread: each as the event that it would be in a world without a node."""
        logs = self.node.call("eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest", "topics": [[TRANSFER, USED]]})
        nonces = {
            (log["transactionHash"], log["topics"][1]): log["topics"][2] for log in logs if log["topics"][0] == USED
        }
        times: dict[str, int] = {}
        events = []
        for log in logs:
            payer = f"0x{log['topics'][1][26:]}"
            if log["topics"][0] != TRANSFER or payer == NOBODY:
                continue
            number = log["blockNumber"]
            times[number] = times.get(number) or int(self.node.block(number)["timestamp"], 16)
            nonce = nonces.get((log["transactionHash"], log["topics"][1]))
            event = {"kind": PAID, "at": times[number], "hash": log["transactionHash"], "from": payer}
            event |= {"to": f"0x{log['topics'][2][26:]}", "amount": int(log["data"], 16), "token": log["address"]}
            events.append(event | ({} if nonce is None else {"nonce": nonce}))
        return events

    def answer(self, world: World, ask: Ask) -> Reply:
        """Answer a request to one of the RPC servers of the world."""
        call = ask.json
        if isinstance(call, dict) and call.get("method") == "eth_getTransactionReceipt":
            host, receipt = self._invented.get(str(call["params"][0]).lower(), (None, None))
            if host == ask.host:
                return Reply.json({"jsonrpc": "2.0", "id": call.get("id"), "result": receipt})
        return Reply(self.node.forward(ask.body))
