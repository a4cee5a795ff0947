"""What costs a stranger nothing must cost us little: invented tokens, uncommon messages, quotes that nobody pays."""

import secrets
import statistics
from pathlib import Path

import httpx
import pytest

from tests.hostile.test_http import cpu_s
from tests.live.processes import started
from tests.requirements import proves

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]
COUNT, MOST_HEALTH_CHECKS = 100, 10


def test_uncommon_messages_are_limited_and_quiet(service, client):
    said = len(service.said)
    answers = [client.post("/api/mcp", json={"jsonrpc": "2.0", "id": n, "method": f"no/such/{n}"}) for n in range(400)]
    assert [answer.json()["error"]["code"] for answer in answers].count(-32600) > 30
    assert not {answer.status_code for answer in answers} & {401, 402, 429}
    listed = client.post("/api/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert listed.status_code == 200
    assert len(service.said) - said < 20_000


@proves("limits.invented-tokens")
def test_invented_tokens_are_refused_by_address_and_a_customer_is_not(service, client):
    good = {"Authorization": f"Bearer {service.ready['token']}"}
    assert client.get("/api/pro/macro", headers=good).status_code == 200
    invented = [{"Authorization": f"Bearer svc_live_{secrets.token_hex(32)}"} for _ in range(60)]
    statuses = [client.get("/api/pro/macro", headers=headers).status_code for headers in invented]
    assert statuses[:20] == [402] * 20
    assert statuses.count(429) > 15
    assert set(statuses) == {402, 429}
    assert client.get("/api/pro/macro", headers=good).status_code == 200
    assert client.get("/api/payment/balance", headers=good).status_code == 200
    assert client.get("/api/btc-price", headers=invented[-1]).status_code == 200, "free tools count by address"


def test_quotes_are_limited_for_each_client(service, client):
    statuses = [client.post("/api/payment/buy-credits", json={"amount_usd": 2}).status_code for _ in range(40)]
    assert statuses[-1] == 429
    assert statuses.count(200) <= 10


def test_a_quote_costs_little_more_than_any_request(tmp_path: Path):
    """The server's CPU for quotes beside that for health checks, in turn; purchases/test_quotes.py counts work."""
    with started("demo", folder=tmp_path, TOOLSERVER_LIMITS__ENABLED="false") as program:
        with httpx.Client(base_url=program.url, timeout=20, trust_env=False) as client:
            while client.post("/api/payment/buy-credits", json={"amount_usd": 2}).status_code != 200:
                pass
            ratios = []
            for _ in range(5):
                begun = cpu_s(program.process.pid)
                for _ in range(COUNT):
                    client.get("/api/health")
                between = cpu_s(program.process.pid)
                for _ in range(COUNT):
                    client.post("/api/payment/buy-credits", json={"amount_usd": 2})
                ratios.append((cpu_s(program.process.pid) - between) / (between - begun))
    print(f"a quote costs as much CPU as {statistics.median(ratios):.1f} health checks, HTTP included; {ratios}")
    assert statistics.median(ratios) < MOST_HEALTH_CHECKS
