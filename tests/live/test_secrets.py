"""After a day's work of a shop, nothing that is secret stands where it should not: every place is searched for it."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.live.processes import Program, control, ran, started
from tests.live.signing_in import SigningIn
from tests.requirements import proves

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]

KNOWN = {
    "TOOLSERVER_LOGS__LEVEL": "debug",
    "FRED_API_KEY": "fred-key-0123456789abcdef",
    "GITHUB_TOKEN": "ghp_0123456789",
}


class Day:
    """Everything that was said in public, and everything that must not have been."""

    def __init__(self, program: Program, folder: Path) -> None:
        self.program, self.data = program, folder / "data"
        self.secrets: dict[str, str] = {name: value for name, value in KNOWN.items() if "LOGS" not in name}
        self.public: dict[str, bytes] = {}
        self.http = httpx.Client(base_url=program.url, timeout=30, trust_env=False)

    def ask(self, name: str, method: str, path: str, **more: Any) -> httpx.Response:
        """A request whose answer anybody may read: what it says and what its headers say."""
        answer = self.http.request(method, path, **more)
        self.public[f"{name} ({path})"] = answer.content + repr(answer.headers.raw).encode()
        return answer

    def buy(self) -> None:
        """A purchase: its own answers give the memo and the token away, to whoever asked."""
        quote = self.http.post("/api/payment/buy-credits", json={"amount_usd": 5}).json()
        with control(self.program.ready["world_url"]) as world:
            world.put("clock", {"speed": 30})
            tx = world.paid(quote["wallet"], 5)
        claim = {"tx_hash": tx, "nonce": quote["memo"]}
        bought = self.http.post("/api/payment/confirm", json=claim)
        assert bought.status_code == 200, bought.text
        self.secrets |= {"memo": quote["memo"], "bought token": bought.json()["token"]}
        self.ask("another transaction", "POST", "/api/payment/confirm", json=claim | {"tx_hash": "0x" + "ab" * 32})
        self.ask("a memo with a slip", "POST", "/api/payment/confirm", json=claim | {"nonce": quote["memo"] + "x"})

    def spend(self) -> None:
        """Paid calls, well and badly made, over both doors."""
        token = self.secrets["bought token"]
        auth = {"Authorization": f"Bearer {token}"}
        call = {"name": "premium_macro", "arguments": {}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        sold = self.ask(
            "a paid call", "GET", "/api/pro/briefing", headers=auth | {"Idempotency-Key": "once-upon-a-time"}
        )
        assert sold.status_code == 200
        self.ask("over MCP", "POST", "/api/mcp", json=message, headers=auth)
        self.ask("a bad argument", "GET", "/api/pro/macro?history=1", headers=auth)
        self.ask("a token with a slip", "GET", "/api/pro/macro", headers={"Authorization": f"Bearer {token}0"})
        self.ask("a token as a user", "GET", "/api/pro/macro", headers={"Authorization": f"Basic {token}"})
        self.ask("a token in the query", "GET", f"/api/pro/macro?history={token}")
        self.ask("a token in the path", "GET", f"/api/{token}")
        self.ask("balance", "GET", "/api/payment/balance", headers=auth)
        self.ask("receipt", "GET", f"/api/receipt/{sold.headers['x-service-receipt-id']}", headers=auth)
        self.ask("verify", "POST", "/api/receipt/verify", json={"receipt": sold.headers["x-service-receipt"]})

    def misplace(self) -> None:
        """The token in every place where a model or a person puts one by mistake."""
        token = self.secrets["bought token"]
        for place in ({"api_key": token}, {"auth": {"token": token}}, {"token": [token]}, {token: 1}):
            for tool in ("premium_macro", "btc_price", "payment_balance", "no_such_tool"):
                call = {"name": tool, "arguments": place}
                message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
                self.ask(f"misplaced as {next(iter(place))[:9]} in {tool}", "POST", "/api/mcp", json=message)
            self.ask(f"misplaced in a body {next(iter(place))[:9]}", "POST", "/api/payment/buy-credits", json=place)
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": token, "arguments": {}}}
        self.ask("misplaced as the tool", "POST", "/api/mcp", json=message)
        self.ask("misplaced as the method", "POST", "/api/mcp", json={"jsonrpc": "2.0", "id": 1, "method": token})
        for name in ("X-Api-Key", "X-Token", "Cookie", "X-Agent-Nonce", "Idempotency-Key", "User-Agent", "X-Payment"):
            self.ask(f"misplaced in {name}", "GET", "/api/pro/macro", headers={name: token})
        for query in ("api_key", "token", "access_token", token):
            self.ask(f"misplaced in the query as {query[:9]}", "GET", f"/api/btc-price?{query}={token}")
        self.ask("misplaced in the MCP address", "POST", f"/api/mcp?token={token}", json=message)

    def sign_in(self) -> None:
        """A host that signs in with the bought token, pays, refreshes, and sends its tokens to the wrong places."""
        with SigningIn(self.program.url) as host:
            host.allow(self.secrets["bought token"], 5)
            assert host.call("premium_briefing").status_code == 200
            host.exchange(grant_type="refresh_token", refresh_token=host.tokens["refresh_token"])
            self.secrets |= {name: value for name, value in host.secrets.items() if name != "page"}
        access = host.tokens["access_token"]
        auth = {"Authorization": f"Bearer {access}"}
        self.ask("an access token elsewhere", "GET", "/api/pro/macro", headers=auth)
        self.ask("a token at the wrong door", "GET", "/api/mcp/auth", headers={"Authorization": f"Basic {access}"})
        for name in ("authorize", "consent"):
            canary = {"client_id": self.secrets["bought token"], "request": access, "state": access}
            self.ask(f"a token in the query of {name}", "GET", f"/api/mcp/auth/{name}", params=canary)
        for name in ("token", "revoke", "register"):
            self.ask(f"a token in a wrong form of {name}", "POST", f"/api/mcp/auth/{name}", data={"client_id": access})

    def look_around(self) -> None:
        """What anyone can read, and what an operator is shown."""
        for path in (
            "/api/meta",
            "/openapi.json",
            "/api/payment/no-charge-stats",
            "/api/payment/no-charge-log/checkpoint",
        ):
            self.ask("public", "GET", path)
        self.ask("keys", "GET", "/.well-known/service-receipt-keys.json")
        metrics = httpx.URL(self.program.ready["metrics_url"])
        for name, url in (("metrics", metrics), ("operators", metrics.join("/operators.json"))):
            answer = httpx.get(url, trust_env=False)
            self.public[name] = answer.raise_for_status().content
        here = ("--data-dir", str(self.data))
        verbs = (("ledger", "holds"), ("ledger", "check"), ("purchases",), ("keys", "show"), ("db", "backup"))
        for verb in verbs:
            done = ran(*verb, *here, folder=self.data.parent, **KNOWN)
            assert done.returncode == 0, done.stderr
            self.public[f"toolserver {' '.join(verb)}"] = done.stdout + done.stderr
        doctor = ran("doctor", "--no-live", folder=self.data.parent, **KNOWN)
        self.public["toolserver doctor"] = doctor.stdout + doctor.stderr

    def close(self) -> None:
        """What is left behind: the log, and the files but for those that hold the keys."""
        self.http.close()
        for path in sorted((self.data / "keys").glob("*.json")):
            kept = json.loads(path.read_text())  # a set of keys, one key, or numbers, which are no secret
            halves = [key[half] for key in kept.get("keys", [kept]) for half in ("d", "k") if half in key]
            self.secrets |= {f"{path.name} {number}": half for number, half in enumerate(halves)}
        for path in sorted(self.data.rglob("*")):
            if path.is_file() and path.parent.name != "keys":
                self.public[f"file {path.name}"] = path.read_bytes()
        self.public["log"] = self.program.log.read_bytes()


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Day:
    folder = tmp_path_factory.mktemp("secrets")
    with started("demo", folder=folder, **KNOWN) as program:
        day = Day(program, folder)
        day.secrets["demo token"] = program.ready["token"]
        day.buy()
        day.spend()
        day.misplace()
        day.sign_in()
        day.look_around()
    day.close()
    return day


@proves("secrets.nowhere")
def test_no_secret_stands_anywhere(day: Day) -> None:
    found = [
        f"{secret} in {place}"
        for place, said in day.public.items()
        for secret, value in day.secrets.items()
        if value.encode() in said or value.removeprefix("svc_live_").removeprefix("svc_buy_").encode() in said
    ]
    assert found == []


def test_there_was_something_to_find(day: Day) -> None:
    """The log is told what went on, and the files are full: the search above looked at something."""
    said = day.program.said
    assert "quote made" in said
    assert len(day.secrets) >= 7
    assert {"metrics", "log", "file ledger.sqlite3", "toolserver purchases"} <= set(day.public)
    assert [place for place, said in day.public.items() if not said and not place.startswith("file ")] == []
