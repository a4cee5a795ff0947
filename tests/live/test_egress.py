"""A hundred users of one hosted client behind one address: with a visitor token each, all of them are answered."""

import json
from collections import Counter
from typing import Any

import httpx
import pytest

from tests.live.processes import started
from tests.requirements import proves

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

USERS = 100
EGRESS = {"x-forwarded-for": "203.0.113.9", "user-agent": "Claude-User"}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "claude-ai", "version": "0.1.0"}}
STEPS: list[tuple[str, dict[str, Any]]] = [
    ("initialize", HELLO),
    ("tools/list", {}),
    ("tools/call", {"name": "btc_price", "arguments": {}}),
    ("tools/call", {"name": "forex", "arguments": {}}),
]


def converse(client: httpx.Client, token: str | None) -> list[str]:
    """What one user's host asks, one message after the other, and how each ended."""
    headers = EGRESS | ({"authorization": f"Bearer {token}"} if token else {})
    ends = []
    for method, params in STEPS:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = client.post("/api/mcp", json=message, headers=headers)
        result = answer.json()["result"]
        ends.append(json.loads(result["content"][0]["text"])["error"] if result.get("isError") else "ok")
    return ends


@proves("visitor.egress")
def test_a_hundred_of_a_hundred_are_answered_and_without_tokens_one(tmp_path) -> None:
    settings = {"TOOLSERVER_LIMITS__TRUSTED_PROXIES": '["127.0.0.1"]'}
    with (
        started("demo", "--limits", folder=tmp_path, **settings) as demo,
        httpx.Client(base_url=demo.url, timeout=60, trust_env=False) as client,
    ):
        tokens = []
        for user in range(USERS):  # each gets one in a browser of its own
            home = {"x-forwarded-for": f"198.51.100.{user}"}
            tokens.append(client.post("/api/payment/visitor-token", headers=home).raise_for_status().json()["token"])
        with_tokens = Counter(tuple(converse(client, token)) for token in tokens)
        without = Counter(tuple(converse(client, None)) for _ in range(USERS))

    assert with_tokens == {("ok",) * 4: USERS}
    assert without == {("ok",) * 4: 1, ("ok", "ok", "rate_limited", "rate_limited"): USERS - 1}
