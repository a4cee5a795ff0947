"""Run proxy.py as the proxy of a company: CONNECT with a user name and password, in a process of its own.

It is the only one that finds the hosts of a test: every name and address leads to this machine.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from proxy.http.proxy import HttpProxyBasePlugin

from tests.ports import reserve_port

USER, PASSWORD = "anna", "p%40ss:word"  # as in a URL
WITHIN_S = 20


class LeadHere(HttpProxyBasePlugin):  # type: ignore[misc]
    """Resolve every host to this machine, and write down what was asked for."""

    def resolve_dns(self, host: str, port: int) -> tuple[str, Any]:
        with Path(os.environ["ASKED_OF_PROXY"]).open("a", encoding="utf-8") as asked:
            asked.write(f"{host}:{port}\n")
        return "127.0.0.1", None


class CompanyProxy:
    """The proxy while it runs, and the hosts that it was asked for."""

    def __init__(self, host: str, port: int, asked: Path) -> None:
        self.host, self.port, self._asked = host, port, asked

    def url(self, password: str = PASSWORD) -> str:
        return f"http://{USER}:{password}@{self.host}:{self.port}"

    @property
    def asked(self) -> list[str]:
        return self._asked.read_text("utf-8").split() if self._asked.exists() else []


@contextmanager
def company_proxy(folder: Path, host: str = "127.0.0.1") -> Iterator[CompanyProxy]:
    """Run the proxy on an address of this machine until the block ends."""
    port, asked = reserve_port(), folder / "asked-of-proxy"
    words = ["--hostname", host, "--port", str(port), "--num-workers", "1", "--num-acceptors", "1"]
    words += ["--log-level", "ERROR", "--basic-auth", "anna:p@ss:word", "--plugins", f"{__name__}.LeadHere"]
    environment = {**os.environ, "ASKED_OF_PROXY": str(asked), "PYTHONPATH": str(Path(__file__).parents[2])}
    with (folder / "proxy.log").open("wb") as log:
        program = subprocess.Popen([sys.executable, "-m", "proxy", *words], stdout=log, stderr=log, env=environment)
    try:
        _wait(host, port, program)
        yield CompanyProxy(host, port, asked)
    finally:
        program.terminate()
        with suppress(subprocess.TimeoutExpired):
            program.wait(5)
        program.kill()
        program.wait()


def _wait(host: str, port: int, program: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        assert program.poll() is None, "the proxy ended"
        try:
            socket.create_connection((host, port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the proxy does not listen")
