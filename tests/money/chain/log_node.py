"""A node of our own: blocks with transfers of USDC, served over JSON-RPC within the limits of real providers.

It knows nothing of the product: balances are the sums of its blocks. Run as a program, it serves a million transfers.
"""

import argparse
import asyncio
import hashlib
import json
import random
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from aiohttp import web

USDC = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"
TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
CODE = 87  # bytes of the code that reads many balances; the addresses follow
GENESIS, BLOCK_S = 1_799_900_000, 2


class Moved(NamedTuple):
    """A transfer in a block."""

    block: int
    index: int
    tx: str
    payer: str
    payee: str
    amount: int


class Refused(Exception):
    """The node answers with an error."""


class LogNode:
    """Blocks by number, the newest last. `reorganise` puts others in the place of the newest."""

    def __init__(
        self, *, topics: int = 1_000, blocks: int = 10_000, results: int = 10_000, says_time: bool = True
    ) -> None:
        self.topics, self.blocks, self.results, self.says_time = topics, blocks, results, says_time
        self.height, self.final_lag = 0, 10
        self.forks: dict[int, int] = defaultdict(int)  # how often a block was replaced
        self.held: dict[int, list[Moved]] = defaultdict(list)
        self.incoming: dict[str, list[Moved]] = defaultdict(list)
        self.outgoing: dict[str, list[Moved]] = defaultdict(list)
        self.asked: list[str] = []
        self.refused = 0
        self.lag = 0  # blocks by which this server is behind
        self.leaves_out: set[str] = set()  # transactions that its logs leave out

    # --- what happens on the chain

    def mine(self, *moves: tuple[str, str, str, int]) -> int:
        """A block with these transfers (transaction, payer, payee, amount); its number."""
        self.height += 1
        for index, (tx, payer, payee, amount) in enumerate(moves):
            moved = Moved(self.height, index, tx, payer, payee, amount)
            self.held[self.height].append(moved)
            self.incoming[payee].append(moved)
            self.outgoing[payer].append(moved)
        return self.height

    def reorganise(self, depth: int) -> list[Moved]:
        """Empty the newest blocks and replace each by another; what was in them."""
        gone = [
            moved for number in range(self.height - depth + 1, self.height + 1) for moved in self.held.pop(number, [])
        ]
        for moved in gone:
            self.incoming[moved.payee].remove(moved)
            self.outgoing[moved.payer].remove(moved)
        for number in range(self.height - depth + 1, self.height + 1):
            self.forks[number] += 1
        self.height -= depth
        return gone

    def balance(self, address: str, at: int) -> int:
        came = sum(moved.amount for moved in self.incoming.get(address, ()) if moved.block <= at)
        return max(0, came - sum(moved.amount for moved in self.outgoing.get(address, ()) if moved.block <= at))

    # --- what it answers

    @property
    def head(self) -> int:
        return self.height - self.lag

    def hash(self, number: int) -> str:
        return f"0x{hashlib.sha256(f'{number} {self.forks[number]}'.encode()).hexdigest()}"

    def block(self, number: int) -> dict[str, str] | None:
        if not 0 <= number <= self.head:
            return None
        return {"number": hex(number), "hash": self.hash(number), "timestamp": hex(GENESIS + number * BLOCK_S)}

    def number(self, tag: str) -> int:
        back = {"latest": 0, "safe": self.final_lag // 2, "finalized": self.final_lag}
        return max(0, self.head - back[tag]) if tag in back else int(tag, 16)

    def logs(self, wanted: dict[str, Any]) -> list[dict[str, Any]]:
        first, last = self.number(wanted["fromBlock"]), self.number(wanted["toBlock"])
        topics = wanted["topics"]
        outward = len(topics) == 2
        named = topics[1] if outward else topics[2]
        if topics[0] != TRANSFER or wanted["address"].lower() != USDC:
            return []
        if len(named) > self.topics or last - first >= self.blocks or last > self.head:
            raise Refused("more than this node allows")
        found: list[Moved] = []
        for topic in named:
            moves = (self.outgoing if outward else self.incoming).get(f"0x{topic[26:]}")
            if moves:
                found += moves[bisect_left(moves, (first,)) : bisect_right(moves, (last + 1,))]
        if len(found) > self.results:
            raise Refused("query returned more results than this node allows")
        return [self.log(moved) for moved in sorted(found) if moved.tx not in self.leaves_out]

    def log(self, moved: Moved) -> dict[str, Any]:
        shown = {
            "address": USDC,
            "topics": [TRANSFER, f"0x{moved.payer[2:]:0>64}", f"0x{moved.payee[2:]:0>64}"],
            "data": f"0x{moved.amount:064x}",
            "blockNumber": hex(moved.block),
            "transactionHash": moved.tx,
            "transactionIndex": hex(moved.index),
            "blockHash": self.hash(moved.block),
            "logIndex": hex(moved.index),
            "removed": False,
        }
        return shown | ({"blockTimestamp": hex(GENESIS + moved.block * BLOCK_S)} if self.says_time else {})

    def call(self, call: dict[str, Any], tag: str) -> str:
        data = call["data"]
        if call.get("to"):
            if data == "0x313ce567":
                return f"0x{6:064x}"
            return f"0x{self.balance(f'0x{data[-40:]}', self.number(tag)):064x}"
        words, at = data[2 + 2 * CODE :], self.number(tag)
        return "0x" + "".join(
            f"{self.balance(f'0x{words[start + 24 : start + 64]}', at):064x}" for start in range(0, len(words), 64)
        )

    def answer(self, method: str, params: list[Any]) -> Any:
        self.asked.append(method)
        if method == "eth_chainId":
            return hex(8453)
        if method == "eth_getCode":
            return "0x60"
        if method == "eth_call":
            return self.call(*params)
        if method == "eth_getLogs":
            return self.logs(params[0])
        if method == "eth_getBlockByNumber":
            return self.block(self.number(params[0]))
        raise Refused("the method does not exist")

    async def handle(self, request: web.Request) -> web.StreamResponse:
        call = json.loads(await request.read())
        said = {"jsonrpc": "2.0", "id": call["id"]}
        try:
            said["result"] = self.answer(call["method"], call["params"])
        except Refused as error:
            self.refused += 1
            said["error"] = {"code": -32005, "message": str(error)}
        return web.Response(text=json.dumps(said), content_type="application/json")


@asynccontextmanager
async def served(node: LogNode, port: int = 0) -> AsyncIterator[str]:
    """The node on a port of this machine; its address."""
    app = web.Application(client_max_size=2**20)
    app.router.add_post("/{tail:.*}", node.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def fill(node: LogNode, addresses: Iterable[str], transfers: int, blocks: int) -> None:
    """Spread transfers over blocks and addresses: payments, dust and nothing, from payers that are not ours."""
    rng, payees = random.Random(1), list(addresses)
    per_block, left = -(-transfers // blocks), transfers
    while left > 0:
        moves = []
        for number in range(min(per_block, left)):
            tx = f"0x{hashlib.sha256(f'{left - number}'.encode()).hexdigest()}"
            amount = rng.choice((1_000_000, 5_000_000, 5_000_000, 20_000_000, 500_000, 900, 0))
            moves.append((tx, f"0x{rng.randrange(1, 2**64):040x}", payees[rng.randrange(len(payees))], amount))
        node.mine(*moves)
        left -= len(moves)


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--addresses", type=argparse.FileType())
    parser.add_argument("--transfers", type=int)
    parser.add_argument("--blocks", type=int)
    given = parser.parse_args()
    node = LogNode()
    node.final_lag = 600
    fill(node, given.addresses.read().split(), given.transfers, given.blocks)
    for _ in range(700):
        node.mine()
    async with served(node, given.port) as url:
        print(url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
