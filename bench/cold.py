"""`python -m bench.cold [--rounds N]`: measure how long others wait while a server makes its largest answer, cold.

Each round starts a server without any cached answer. One caller sends `ping` without pause, while another requests all
earthquakes of a month once, which is the largest document of any source. The table shows the times of the pings from
the request for the large answer until its arrival.
"""

import argparse
import http.client
import json
import statistics
import tempfile
import threading
import time
from contextlib import ExitStack
from typing import NamedTuple
from urllib.request import urlopen

from bench.processes import Server, python, started
from bench.rows import LEGACY

SERVERS = ("hypercorn", "uvicorn")
LARGEST = "/api/climate/earthquakes?magnitude=all&period=month&limit=500"
PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
PAUSE_S, SETTLE_S = 0.002, 1.0
LIMIT_MS = 20.0


class Round(NamedTuple):
    """One server's result: time and size of the large answer, and the times of the pings during it, in ms."""

    answer_s: float
    answer_bytes: int
    pings_ms: list[float]

    def share(self, of: float) -> float:
        """Return the time within which this share of the pings was answered."""
        return sorted(self.pings_ms)[min(len(self.pings_ms) - 1, int(of * len(self.pings_ms)))]


class Pinger(threading.Thread):
    """Sends pings on one connection until it is stopped, and records when each began and how long it took."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._port, self._stop_now = port, threading.Event()
        self.taken: list[tuple[float, float]] = []

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port)
        while not self._stop_now.is_set():
            began = time.perf_counter()
            connection.request("POST", "/api/mcp", PING, dict(LEGACY))
            connection.getresponse().read()
            self.taken.append((began, time.perf_counter() - began))
            time.sleep(PAUSE_S)
        connection.close()

    def finish(self) -> None:
        """Stop, and wait for the last answer."""
        self._stop_now.set()
        self.join()


def measure_round(server: Server) -> Round:
    """Request the largest answer of a server that was just started, while another caller pings it."""
    pinger = Pinger(server.port)
    pinger.start()
    time.sleep(SETTLE_S)
    began = time.perf_counter()
    with urlopen(f"http://127.0.0.1:{server.port}{LARGEST}") as response:
        size = len(response.read())
    ended = time.perf_counter()
    pinger.finish()
    pings = [took * 1000 for at, took in pinger.taken if at + took > began and at < ended]
    return Round(ended - began, size, pings)


def measure(kind: str, rounds: int) -> list[Round]:
    """Measure rounds of one kind of server, each on its own data directory."""
    found = []
    with ExitStack() as stack:
        world = stack.enter_context(started(python("-m", "toolserver", "world", "--port", "0")))
        via = f"http://127.0.0.1:{world.port}"
        for _ in range(rounds):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="toolserver-cold-"))
            serve = python("-m", "toolserver", "serve", "--server", kind, "--port", "0", "--ready-json")
            options = {"TOOLSERVER_UPSTREAM__VIA": via, "TOOLSERVER_LIMITS__ENABLED": "false"}
            with started([*serve, "--data-dir", folder], **options, TOOLSERVER_LOGS__LEVEL="error") as server:
                found.append(measure_round(server))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.cold")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    print("| server | answer, KB | answer, s | pings | p50 ms | p99 ms | longest ms |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    worst = 0.0
    for kind in SERVERS:
        rounds = measure(kind, given.rounds)
        p50, p99, most = (statistics.median(each.share(of) for each in rounds) for of in (0.5, 0.99, 1.0))
        took, size = statistics.median(each.answer_s for each in rounds), rounds[-1].answer_bytes / 1000
        pings = sum(len(each.pings_ms) for each in rounds)
        print(f"| {kind} | {size:,.0f} | {took:.2f} | {pings} | {p50:.1f} | {p99:.1f} | {most:.1f} |")
        worst = max(worst, p99)
    print(f"\nthe median p99 is {'within' if worst < LIMIT_MS else 'beyond'} {LIMIT_MS:g} ms")
    return 0 if worst < LIMIT_MS else 1


if __name__ == "__main__":
    raise SystemExit(main())
