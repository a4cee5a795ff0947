"""How many files of the product work for one call: free, paid, composed, a quote, its confirmation, a webhook's fire.

The demo runs in a process that notes every function. What also runs in the pauses around a call is left out, and so is
what ran for only one of two calls of a kind: other sources are refreshed at any moment.

Every thread counts, since the store's writer works for the call. The simulated world counts where it answers for the
call, and so does what the step of its clock wakes beside a webhook, such as the reading of the chain. A busy machine
adds work that only happens to run at the same time: the least of several runs is that of the call.
"""

import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.architecture.code import ROOT

AT_MOST = {"free, cached": 14, "paid, cached": 28, "paid, composed": 65, "quote": 36, "confirm": 42, "webhook fire": 60}
SETTLED_S, PAUSE_S, PATIENCE_S = 0.15, 2.0, 90.0
UNLIMITED = {"TOOLSERVER_LIMITS__ENABLED": "false", "TOOLSERVER_WEBHOOKS__ALLOW_LOOPBACK": "true"}

Function = tuple[str, str, int]  # the file, the qualified name, the first line


class TracedDemo:
    """The demo, and what has run in it since it was last asked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._errors = (folder / "errors.txt").open("w")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.house.traced_demo", str(folder / "data")],
            cwd=ROOT,
            env=os.environ | UNLIMITED,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        assert self._process.stdout is not None
        ready = json.loads(self._process.stdout.readline())
        self.url, self.world_url, self.token = ready["base_url"], ready["world_url"], ready["token"]

    def functions_since(self) -> list[Function]:
        """The functions that ran since the last call of this one, in the order of their first calls."""
        path = self._folder / f"mark-{time.monotonic_ns()}.json"
        assert self._process.stdin is not None
        self._process.stdin.write(f"{path}\n")
        self._process.stdin.flush()
        wait_until(path.exists)
        return [(place, name, line) for place, name, line in json.loads(path.read_text(encoding="utf-8"))]

    def functions_of(self, act: Callable[[], object], *, beside: Callable[[], object] | None = None) -> list[Function]:
        """The functions that ran for an act, and not in the pauses before and after it, nor for what is done beside it.

        `beside` is a part of the act that is no part of the call, such as a step of the clock: it is done alone before.
        """
        self.functions_since()
        if beside is not None:
            beside()
        time.sleep(PAUSE_S)
        idle = set(self.functions_since())
        began = time.monotonic()
        act()
        time.sleep(SETTLED_S)
        active = self.functions_since()
        time.sleep(max(PAUSE_S, time.monotonic() - began))
        idle.update(self.functions_since())
        return [function for function in active if function not in idle]

    def request(self, path: str, body: object = None, *, method: str = "", token: str = "") -> Any:
        """The answer of the service, or of the world behind it for a path that begins with `/_sim`."""
        base = self.world_url if path.startswith("/_sim") else self.url
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {})
        request = urllib.request.Request(base + path, data, headers, method=method or ("POST" if data else "GET"))
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"null")

    def stop(self) -> None:
        """End the demo."""
        self._process.terminate()
        self._process.communicate(timeout=20)
        self._errors.close()


def in_both(first: list[Function], second: list[Function]) -> list[Function]:
    """The functions that ran for both of two calls of a kind: what ran for one of them only was at work beside it."""
    ran = set(first)
    return [function for function in second if function in ran]


def wait_until(is_so: Callable[[], object]) -> None:
    """Wait, within a limit, until something is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError("it did not happen")
        time.sleep(0.02)


class Receiver(http.server.BaseHTTPRequestHandler):
    """Takes webhooks and counts them."""

    deliveries = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        type(self).deliveries += 1
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def receiving() -> Iterator[str]:
    """The address of a receiver of webhooks."""
    server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/hook"
    server.shutdown()
    server.server_close()


def trace_calls(*, purchase: bool = True, subscribed: str = "world-deltas") -> dict[str, list[Function]]:
    """The functions of each kind of call, in the order in which they were first called; of a purchase if wanted.

    World deltas are composed again for minutes after a call, so a fire of them may find its answer composed already.
    """
    with tempfile.TemporaryDirectory() as folder, receiving() as hook:
        demo = TracedDemo(Path(folder))
        try:
            return trace(demo, hook, purchase=purchase, subscribed=subscribed)
        finally:
            demo.stop()


def trace(demo: TracedDemo, hook: str, *, purchase: bool, subscribed: str) -> dict[str, list[Function]]:
    """Make each kind of call, after others have warmed what all of them share."""
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "earthquakes", "arguments": {}}}
    quote: dict[str, str] = {}

    def ask() -> object:
        return demo.request("/api/earthquake")

    def ask_over_mcp() -> object:
        return demo.request("/api/mcp", rpc)

    def ask_anew() -> object:
        return demo.request("/api/weather?lat=38.72&lon=-9.14")

    def pay() -> object:
        return demo.request("/api/pro/macro", token=demo.token)

    def ask_for_quote() -> None:
        quote.update(demo.request("/api/payment/buy-credits", {"amount_usd": 5}))

    def confirm() -> object:
        return demo.request("/api/payment/confirm", {"tx_hash": transfer["tx_hash"], "nonce": quote["memo"]})

    def step(seconds: float) -> None:
        demo.request("/_sim/clock", {"advance_s": seconds}, method="PUT")

    def fire() -> None:
        awaited = Receiver.deliveries + 1
        step(301)
        wait_until(lambda: Receiver.deliveries >= awaited)
        time.sleep(1)

    time.sleep(4)
    for _ in range(2):
        demo.request("/api/health")
        demo.request("/api/volcanoes")
        demo.request("/api/pro/briefing", token=demo.token)
        ask()
        ask_over_mcp()
    functions = {"free, cached": demo.functions_of(ask), "free, cached, over MCP": demo.functions_of(ask_over_mcp)}
    functions["free, composed"] = demo.functions_of(ask_anew)
    functions["paid, composed"] = demo.functions_of(pay)
    functions["paid, cached"] = in_both(demo.functions_of(pay), demo.functions_of(pay))
    purchases = []
    for _ in range(2 if purchase else 0):
        quoted = demo.functions_of(ask_for_quote)
        transfer = demo.request("/_sim/chain/transfer", {"to": quote["wallet"], "amount_usd": 5})
        step(60)
        time.sleep(PAUSE_S)
        purchases.append((quoted, demo.functions_of(confirm)))
    if purchase:
        functions["quote"], functions["confirm"] = (in_both(*twice) for twice in zip(*purchases, strict=True))
    demo.request("/api/pro/subscribe", {"endpoint": subscribed, "webhook_url": hook}, token=demo.token)
    demo.request(f"/api/pro/{subscribed}", token=demo.token)
    fires = [demo.functions_of(fire, beside=lambda: step(1)) for _ in range(2)]
    functions["webhook fire"] = in_both(*fires)
    return functions


def print_counts() -> None:
    """Files and functions of each kind of call, with the most that is wanted."""
    for name, functions in trace_calls().items():
        files = {place for place, _, _ in functions}
        most = f", at most {AT_MOST[name]} wanted" if name in AT_MOST else ""
        print(f"{len(files):4} files, {len(functions):4} functions: {name}{most}")
