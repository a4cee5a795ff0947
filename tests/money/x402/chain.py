"""A chain that keeps our time, and the official facilitator before it, both as programs of their own."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from tests.live.processes import ROOT, environment
from tests.money.purchases.anvil import Anvil, binary
from tests.ports import reserve_port

PAYER_KEY = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"  # of every local chain: BOB's
POOR_KEY = "0x8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba"  # an account without USDC
FEES_KEY = "47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a"
FACILITATOR = "from toolserver.cli.facilitator import facilitator; facilitator()"


class Pay(NamedTuple):
    """Where payments are made."""

    chain: Anvil
    url: str


def program() -> str:
    """Anvil; without it there is nothing to pay on."""
    found = binary()
    if found is None and os.environ.get("REQUIRE") == "all":
        pytest.fail("anvil is missing, and REQUIRE=all", pytrace=False)
    if found is None:
        pytest.skip("anvil is not on this machine: `make clients` brings it (needs npm)")
    return found


@contextlib.contextmanager
def anvil(slots: int = 1) -> Iterator[Anvil]:
    """A chain whose blocks have the time of this machine, as official clients do.

    A block is safe `slots` blocks deep, and final twice as deep.
    """
    port = reserve_port()
    flags = f"--host 127.0.0.1 --chain-id 8453 --slots-in-an-epoch {slots} --silent --port {port}".split()
    process = subprocess.Popen([program(), *flags])
    chain = Anvil(f"http://127.0.0.1:{port}")
    try:
        until = time.monotonic() + 60
        while True:
            try:
                chain.rpc("eth_chainId")
                break
            except httpx.TransportError:
                assert process.poll() is None
                assert time.monotonic() < until, "anvil does not answer"
                time.sleep(0.02)
        chain.set_up()
        yield chain
    finally:
        chain.close()
        process.kill()
        process.wait()


@contextlib.contextmanager
def facilitating(rpc: str, folder: Path) -> Iterator[str]:
    """`toolserver facilitator`; its address."""
    key = folder / "fees.key"
    key.write_text(FEES_KEY)
    key.chmod(0o600)
    words = [sys.executable, "-c", FACILITATOR, "--rpc", rpc, "--key-file", str(key), "--port", "0"]
    with (folder / "facilitator.log").open("wb") as errors:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, env=environment({}), cwd=ROOT)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (folder / "facilitator.log").read_text()
        yield str(httpx.Response(200, content=line).json()["facilitator_url"])
        process.terminate()
        assert process.wait(10) == 0
        assert "Traceback" not in (folder / "facilitator.log").read_text()
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
