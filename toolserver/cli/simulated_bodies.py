"""Compute what the simulated world would answer to a recorded request: the shape that parsers are known to read."""

import json
from dataclasses import replace
from urllib.parse import unquote, urlsplit

from toolserver.core.recorded_exchange import RecordedExchange
from toolserver.world.model import ROUTES, Ask, World
from toolserver.world.providers import load_providers

SEEDS = (1, 2, 3)  # a field in one of them may be absent in another, as in reality


def simulate_bodies(exchange: RecordedExchange) -> list[bytes]:
    """Return the bodies of the simulated upstream for the same request at the same time, one for each of SEEDS.

    Returns an empty list if nothing is simulated, or if the simulation refuses.
    """
    load_providers()
    parts = urlsplit(exchange.url)
    body = b"" if exchange.sent_json is None else json.dumps(exchange.sent_json).encode()
    headers = {name.lower(): value for name, value in exchange.sent_headers.items()}
    ask = Ask(exchange.method, parts.netloc, parts.path or "/", parts.query, headers, body)
    found = ROUTES.find(replace(ask, path=unquote(ask.path))) or ROUTES.find(ask)
    if found is None:
        return []
    route, ask = found
    replies = [route.handler(World(seed, float(int(exchange.sent_at))), ask) for seed in SEEDS]
    return [reply.body for reply in replies if reply.status == 200]
