"""Measure TCP connection times from this server; no HTTP, no third party's data.

https://www.rfc-editor.org/rfc/rfc9293
"""

from typing import Any

from tools.parsing.fields import number, within
from tools.sources.hosts import MINUTE
from toolserver import Connect, HostGroup, Keys, Licence, Source


def request(host: str, keys: Keys) -> Connect:
    return Connect(f"tcp://{host}:443")


def parse(body: Any, host: str) -> int:
    """Return milliseconds, or -1 for a target that cannot be reached, which is an answer as well."""
    if body.get("unreachable") is True:
        return -1
    return int(within(number(body["latency_ms"]), 1, 60_000))


TCP_CONNECT = Source(
    "Probe.tcp_connect",
    request,
    parse,
    licence=Licence("yes", "measured by this service"),
    hosts=HostGroup("probe", 12, 0, 120, 60),
    fresh_s=60,
    ageless="measured by this server at that moment",
    keep_s=10 * MINUTE,
    timeout_s=9,
    probe="1.1.1.1",
)
