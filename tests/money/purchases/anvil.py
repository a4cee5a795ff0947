"""A local chain that is Base as far as anybody can tell: chain id 8453, and at USDC's address a token of our own."""

import contextlib
import json
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak

from tests.live.processes import ROOT
from tests.ports import reserve_port
from toolserver.money.purchases.units import USDC

FOLDER = ROOT / "toolserver" / "world" / "contracts"
CLIENTS = Path(__file__).parents[2] / "live" / "clients"
CONTRACTS: dict[str, dict[str, str]] = json.loads((FOLDER / "compiled.json").read_text())["contracts"]
START = 1_800_000_000  # the first block's time
ALICE, BOB, MALLORY, RELAY = (bytes.fromhex(a) for a in (  # unlocked, and rich in ether
    "f39fd6e51aad88f6f4ce6ab8827279cfffb92266",
    "70997970c51812dc3a010c7d01b50e0d17dc79c8",
    "3c44cdddb6a900fa2b585dd299e03d12fa4293bc",
    "90f79bf6eb2c4f870365e785982e1f101e93b906",
))  # fmt: skip


def binary() -> str | None:
    """Where anvil is."""
    system = {"Linux": "linux", "Darwin": "darwin"}.get(platform.system(), "win32")
    machine = "arm64" if platform.machine().lower() in ("arm64", "aarch64") else "amd64"
    packed = CLIENTS / f"node_modules/@foundry-rs/anvil-{system}-{machine}/bin/anvil"
    return os.environ.get("ANVIL") or (str(packed) if packed.is_file() else shutil.which("anvil"))


@contextlib.contextmanager
def started() -> Iterator[str]:
    """A new chain; its address."""
    program = binary()
    if program is None:
        pytest.skip("anvil is not on this machine: `make clients` brings it (needs npm)")
    port = reserve_port()
    flags = "--host 127.0.0.1 --chain-id 8453 --slots-in-an-epoch 1 --silent".split()
    process = subprocess.Popen([program, *flags, "--port", str(port), "--timestamp", str(START)])
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(url, process)
        yield url
    finally:
        process.kill()
        process.wait()


def _wait(url: str, process: "subprocess.Popen[bytes]") -> None:
    for _ in range(500):
        assert process.poll() is None, "anvil ended"
        with contextlib.suppress(httpx.TransportError):
            httpx.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []})
            return
        time.sleep(0.01)
    raise AssertionError("anvil does not answer")


def called(signature: str, *values: Any) -> bytes:
    """Calldata: `called("transfer(address,uint256)", to, 5)`."""
    types = signature[signature.index("(") + 1 : -1]
    return keccak(text=signature)[:4] + encode(_split(types), values)


def _split(types: str) -> list[str]:
    parts, depth = [""], 0
    for character in types:
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part]


class Anvil:
    """What a test does on the chain. Every transaction is mined at once, in a block of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = httpx.Client(timeout=10)

    def close(self) -> None:
        self._client.close()

    def rpc(self, method: str, *params: Any) -> Any:
        said = self._client.post(self.url, json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).json()
        assert "error" not in said, said["error"]
        return said["result"]

    def set_up(self) -> None:
        """USDC where it belongs, and a million of it for everybody."""
        self.rpc("anvil_setCode", f"0x{USDC.hex()}", CONTRACTS["Usd"]["runtime"])
        for person in (ALICE, BOB, MALLORY):
            self.send(RELAY, USDC, called("mint(address,uint256)", person, 10**12))

    def send(self, sender: bytes, to: bytes | None, data: bytes, *, fails: bool = False) -> str:
        """Send a transaction; its hash. `fails`: it is mined all the same."""
        given = {"from": f"0x{sender.hex()}", "data": f"0x{data.hex()}", "gas": hex(3_000_000)}
        hash: str = self.rpc("eth_sendTransaction", given | ({"to": f"0x{to.hex()}"} if to else {}))
        assert (self.mined(hash)["status"] == "0x0") == fails
        return hash

    def mined(self, hash: str) -> dict[str, Any]:
        """The receipt of a transaction that was just sent."""
        for _ in range(500):
            if found := self.receipt(hash):
                return found
            time.sleep(0.01)
        raise AssertionError("the transaction is not mined")

    def deploy(self, name: str, sender: bytes = RELAY) -> bytes:
        """A new contract; its address."""
        hash = self.send(sender, None, bytes.fromhex(CONTRACTS[name]["bytecode"][2:]))
        return bytes.fromhex(self.receipt(hash)["contractAddress"][2:])

    def pay(self, to: bytes, usd: float | str, sender: bytes = ALICE, *, token: bytes = USDC, tail: bytes = b"") -> str:
        """A plain transfer of USDC."""
        return self.send(sender, token, transfer_call(to, usd) + tail)

    def receipt(self, hash: str) -> dict[str, Any]:
        found: dict[str, Any] = self.rpc("eth_getTransactionReceipt", hash)
        return found

    def mine(self, blocks: int = 3) -> None:
        self.rpc("anvil_mine", hex(blocks))

    def reorganise(self, depth: int, *kept: tuple[str, int]) -> None:
        """Put other blocks in the place of the last ones: empty but for some transactions, each in the block named."""
        raw = {hash: self.rpc("eth_getRawTransactionByHash", hash) for hash, _ in kept}
        self.rpc("anvil_reorg", depth, [[raw[hash], block] for hash, block in kept])

    def pass_time(self, seconds: int) -> None:
        self.rpc("evm_increaseTime", hex(seconds))
        self.mine(1)

    def balance(self, address: bytes) -> int:
        data = called("balanceOf(address)", address)
        return int(self.rpc("eth_call", {"to": f"0x{USDC.hex()}", "data": f"0x{data.hex()}"}, "latest"), 16)


def transfer_call(to: bytes, usd: float | str) -> bytes:
    from decimal import Decimal

    return called("transfer(address,uint256)", to, int(Decimal(str(usd)) * 10**6))
