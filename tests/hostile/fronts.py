"""What an attack goes against: each server, directly and behind each proxy, as the commands of the attacks choose."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from tests.deploy.proxies import PROXIES, find_proxy

SERVERS = ("hypercorn", "uvicorn")
DIRECT = "none"


def add_front_flags(parser: ArgumentParser) -> None:
    """Add the flags `--server`, `--proxy` and `--seconds`."""
    parser.add_argument("--server", choices=SERVERS)
    parser.add_argument("--proxy", choices=(DIRECT, *PROXIES))
    parser.add_argument("--seconds", type=float, default=60.0)


def list_fronts(chosen: Namespace) -> Iterator[tuple[str, str]]:
    """Yield the chosen pairs of server and proxy, all by default. A proxy that is not installed is printed instead."""
    for server in [chosen.server] if chosen.server else SERVERS:
        for proxy in [chosen.proxy] if chosen.proxy else (DIRECT, *PROXIES):
            if proxy != DIRECT and find_proxy(proxy) is None:
                print(f"{server} behind {proxy}: {proxy} is not installed")
            else:
                yield server, proxy
