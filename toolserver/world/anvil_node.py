"""Runs anvil, Foundry's local chain, as Base: with its chain id, and a dollar of our own where USDC is."""

import json
import os
import shutil
import signal
import subprocess  # nosec B404 # the program that the operator names
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from toolserver.core.private_file import write_private
from toolserver.world.rich_accounts import RICH, WEALTH

CHAIN_ID = 8453
USDC = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"
CONTRACTS = Path(__file__).parent / "contracts" / "compiled.json"
PLACE_FILE, STATE_FILE = "anvil.json", "anvil-state.json"  # in the data directory
EPOCH = 16  # blocks: one that is 16 deep is safe, and one that is 32 deep is final
BLOCK_S = 2
START_S, STOP_S = 30.0, 10.0
MISSING = (
    "anvil was not found. Get it with `npm install --ignore-scripts @foundry-rs/anvil@1.7.1`, and name it with "
    "--anvil node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil; or run the demo with --chain simulated"
)


class AnvilMissing(Exception):
    """There is no anvil on this machine. The text says how to get it."""


class RpcError(Exception):
    """The node refuses a call. The text is its own."""


def find_anvil(named: str | None) -> str:
    """Return the path of the program. Raises AnvilMissing."""
    found = shutil.which(named or "anvil")
    if found is None:
        raise AnvilMissing(MISSING)
    return found


class AnvilNode:
    """A running anvil, and calls to it. Every method blocks, and may be called by several threads."""

    def __init__(self, url: str, pid: int, process: "subprocess.Popen[bytes] | None" = None) -> None:
        from toolserver.core.http_library import httpx

        self.url, self._pid, self._process = url, pid, process
        self._client = httpx.Client(trust_env=False, timeout=30)
        self._lock = Lock()

    def close(self) -> None:
        """Close the connections to it, and leave it as it is."""
        self._client.close()

    def forward(self, body: bytes) -> bytes:
        """Return the answer to a JSON-RPC request, or to a list of them."""
        return self._client.post(self.url, content=body, headers={"content-type": "application/json"}).content

    def call(self, method: str, *params: Any) -> Any:
        """Return the result of a call. Raises RpcError."""
        said = json.loads(
            self.forward(msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
        )
        if "error" in said:
            raise RpcError(said["error"].get("message", ""))
        return said["result"]

    def block(self, number: int | str) -> dict[str, Any]:
        """Return a block by number or tag, with the hashes of its transactions."""
        found: dict[str, Any] = self.call(
            "eth_getBlockByNumber", number if isinstance(number, str) else hex(number), False
        )
        return found

    def set_up(self) -> None:
        """Put USDC where it belongs, and a million of it into each account whose key is public."""
        self.call("anvil_setBlockTimestampInterval", BLOCK_S)
        if self.call("eth_getCode", USDC, "latest") != "0x":
            return
        self.place_contract(USDC, "Usd")
        for owner in RICH:
            self.send(RICH[0], USDC, f"0x40c10f19{owner[2:]:0>64}{WEALTH:064x}")  # mint(address,uint256)
        self.call("anvil_mine", hex(1))

    def place_contract(self, address: str, name: str) -> None:
        """Put the code of one of our contracts at an address."""
        contracts = json.loads(CONTRACTS.read_text(encoding="utf-8"))["contracts"]
        self.call("anvil_setCode", address, contracts[name]["runtime"])

    def send(self, sender: str, to: str, data: str) -> str:
        """Submit a transaction of any account, for the next block, and return its hash."""
        with self._lock:
            if sender not in RICH:
                self.call("anvil_impersonateAccount", sender)
                self.call("anvil_setBalance", sender, hex(10**18))
            call = {"from": sender, "to": to, "data": data, "gas": hex(300_000)}
            return str(self.call("eth_sendTransaction", call))

    def mine_until(self, now: int, most: int) -> bool:
        """Mine the blocks that are missing until a time (epoch seconds), at most so many. Return False if none is."""
        with self._lock:
            blocks = (now - int(self.block("latest")["timestamp"], 16)) // BLOCK_S
            if blocks <= 0:
                return False
            if blocks > most:
                self.call("evm_setNextBlockTimestamp", now - BLOCK_S * (most - 1))
            self.call("anvil_mine", hex(min(blocks, most)))
            return True

    def stop(self) -> None:
        """Let it write its state, if it has a file for that, and end."""
        self.close()
        try:
            os.kill(self._pid, signal.SIGINT)
            if self._process is not None:
                self._process.wait(STOP_S)
        except ProcessLookupError:
            pass  # it has ended
        except subprocess.TimeoutExpired:
            os.kill(self._pid, signal.SIGKILL)


def start_anvil(program: str, port: int, now: float, folder: Path | None) -> AnvilNode:
    """Start anvil, or go on with the one that a demo left running when it was killed. With a folder, its state is kept.

    Raises RuntimeError if it does not start.
    """
    if folder is not None and (running := _find_running(folder / PLACE_FILE)) is not None:
        return running
    flags = f"--host 127.0.0.1 --port {port} --chain-id {CHAIN_ID} --slots-in-an-epoch {EPOCH} --silent --no-mining"
    words = [program, *flags.split(), "--base-fee", "0", "--gas-price", "0"]
    words += ["--timestamp", str(int(now) - BLOCK_S)]  # so that its first block, which sets it up, is no newer
    if folder is not None:
        words += ["--state", str(folder / STATE_FILE), "--preserve-historical-states"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True)  # nosec B603
    node = AnvilNode(f"http://127.0.0.1:{port}", process.pid, process)
    _wait(node, process)
    node.set_up()
    if folder is not None:
        write_private(folder / PLACE_FILE, json.dumps({"url": node.url, "pid": process.pid}) + "\n")
    return node


def _wait(node: AnvilNode, process: "subprocess.Popen[bytes]") -> None:
    from toolserver.core.http_library import httpx

    until = time.monotonic() + START_S
    while True:
        try:
            node.call("eth_chainId")
            return
        except httpx.TransportError:
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"anvil did not start (exit status {process.poll()})") from None
            time.sleep(0.02)


def _find_running(file: Path) -> AnvilNode | None:
    from toolserver.core.http_library import httpx

    try:
        place = json.loads(file.read_text(encoding="utf-8"))
        node = AnvilNode(place["url"], place["pid"])
    except (OSError, ValueError, KeyError):
        return None
    is_ours = False
    try:
        is_ours = "anvil" in str(node.call("web3_clientVersion")) and int(node.call("eth_chainId"), 16) == CHAIN_ID
    except (ValueError, KeyError, RpcError, httpx.TransportError):
        pass  # something else answers there, or nothing
    finally:
        if not is_ours:
            node.close()
    return node if is_ours else None


def word(address: str) -> str:
    """Return an address as a word of 32 bytes, without 0x."""
    return f"{address[2:].lower():0>64}"


def swallow(calls: Sequence[tuple[str, str]]) -> str:
    """Return the call that makes a contract of ours call others: `execute((address,bytes)[])` with one call or more."""
    from eth_abi.abi import encode

    values = [(address, bytes.fromhex(data[2:])) for address, data in calls]
    return f"0xbaae8abf{encode(['(address,bytes)[]'], [values]).hex()}"
