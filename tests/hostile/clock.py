"""`python -m tests.hostile.clock [rounds]`: the clock jumps by an hour and a day while a service sells.

Buyers call, repeat their calls, buy credits and wait for webhooks on both sides of every jump. In the end each credit
that was taken stands for an answer or a delivery that somebody got, no token has ended, and free calls count as before.
"""

import json
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.hostile.disk import charged_in
from tests.live.inbox import Inbox
from tests.live.processes import Program, Sim, control, ran, started
from toolserver.money.ledger.store import FILE

HOUR, DAY = 3600, 86_400
JUMPS = (HOUR, -HOUR, DAY, -DAY, -DAY, DAY, -HOUR, HOUR)
PREMIUM, FREE = "/api/pro/macro", "/api/btc-price"
SPACING_S, SETTLE_S = 31, 15.0


@dataclass
class Jump:
    """What calls before and after a jump answered. `same` says whether a repeated call was one call."""

    seconds: int
    before: int
    repeated: int
    after: int
    bought: int
    same: bool

    @property
    def wrong(self) -> list[str]:
        """What should not have been. An answer is kept for a day: after that long a repetition is a new call."""
        statuses = {"before": self.before, "repeated": self.repeated, "after": self.after, "bought": self.bought}
        found = [f"{name} says {status} at {self.seconds:+d} s" for name, status in statuses.items() if status != 200]
        if not self.same and self.seconds < DAY:
            found.append(f"a repeated call was sold twice at {self.seconds:+d} s")
        return found


@dataclass
class Matrix:
    """All jumps, and what is wrong after the last one."""

    jumps: list[Jump] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    charged: int = 0
    fired: int = 0
    bought: int = 0

    @property
    def wrong(self) -> list[str]:
        """Everything that should not have been."""
        return [*(each for jump in self.jumps for each in jump.wrong), *self.problems]


class Shopper:
    """A buyer who counts what receipts say was taken. `tokens` are those that were bought on the way."""

    def __init__(self, program: Program, sim: Sim, client: httpx.Client) -> None:
        self._program, self._sim, self._client = program, sim, client
        self.charged = 0
        self.tokens: list[str] = []
        self._receipts: set[str] = set()

    def call(self, **headers: str) -> httpx.Response:
        """A premium call. Its charge counts once, however often the same receipt comes."""
        answer = self._client.get(PREMIUM, headers=headers)
        receipt = answer.headers.get("x-service-receipt-id")
        if receipt and receipt not in self._receipts:
            self._receipts.add(receipt)
            self.charged += charged_in(answer.headers["x-service-receipt"])
        return answer

    def buy(self, seconds: int) -> int:
        """Ask for a quote, let the clock jump, pay, and confirm. Returns the last status."""
        quote = self._client.post("/api/payment/buy-credits", json={"amount_usd": 2})
        self._sim.put("clock", {"advance_s": seconds})
        if quote.status_code != 200:
            return quote.status_code
        claim = {"tx_hash": self._sim.paid(quote.json()["wallet"], 2), "nonce": quote.json()["memo"]}
        until = time.monotonic() + SETTLE_S
        while True:
            answer = self._client.post("/api/payment/confirm", json=claim)
            if answer.status_code != 409 or time.monotonic() > until:
                break
            self._sim.put("clock", {"advance_s": 4})
            time.sleep(0.1)
        if answer.status_code == 200:
            self.tokens.append(answer.json()["token"])
        return answer.status_code

    def jump(self, number: int, seconds: int) -> Jump:
        """Sell on both sides of a jump."""
        key = {"Idempotency-Key": f"jump-{number}"}
        before = self.call(**key)
        bought = self.buy(seconds)
        again, after = self.call(**key), self.call()
        same = again.headers.get("x-service-receipt-id") == before.headers.get("x-service-receipt-id")
        return Jump(seconds, before.status_code, again.status_code, after.status_code, bought, same)


def run_matrix(folder: Path, rounds: int = 1) -> Matrix:
    """Let the clock jump while a service of its own sells, and check its books when it has stopped."""
    matrix, inbox = Matrix(), Inbox()
    limits = {"TOOLSERVER_LIMITS__PERSONAL_PER_MINUTE": "100000", "TOOLSERVER_LIMITS__PREMIUM_PER_MINUTE": "100000"}
    with started("demo", "--limits", folder=folder, **limits) as program, control(program.ready["world_url"]) as sim:
        headers = {"Authorization": f"Bearer {program.ready['token']}"}
        with httpx.Client(base_url=program.url, timeout=30, trust_env=False, headers=headers) as client:
            shopper = Shopper(program, sim, client)
            _wait_for_quotes(client)
            client.post("/api/pro/subscribe", json={"endpoint": "briefing", "webhook_url": inbox.url})
            for number, seconds in enumerate(JUMPS * rounds):
                matrix.jumps.append(shopper.jump(number, seconds))
            matrix.problems += _check_limits(client, sim) + _check_tokens(client, shopper.tokens)
            spent = _settled(client, program, shopper, inbox)
        matrix.charged, matrix.fired, matrix.bought = shopper.charged, len(inbox.ids()), len(shopper.tokens)
    inbox.close()
    if spent != matrix.charged + matrix.fired:
        matrix.problems.append(f"{spent} credits are gone for {matrix.charged} in receipts and {matrix.fired} fires")
    matrix.problems += _check_books(folder, matrix)
    return matrix


def _wait_for_quotes(client: httpx.Client) -> None:
    until = time.monotonic() + SETTLE_S
    while client.post("/api/payment/buy-credits", json={"amount_usd": 2}).status_code != 200:
        assert time.monotonic() < until, "no quotes"
        time.sleep(0.3)


def _check_limits(client: httpx.Client, sim: Sim) -> list[str]:
    """A free tool without a token is spaced as always: once, not again, and again half a minute later."""
    anonymous = httpx.Client(base_url=client.base_url, timeout=30, trust_env=False)
    with anonymous:
        sim.put("clock", {"advance_s": SPACING_S})
        first, second = (anonymous.get(FREE).status_code for _ in range(2))
        sim.put("clock", {"advance_s": SPACING_S})
        third = anonymous.get(FREE).status_code
    return [] if (first, second, third) == (200, 429, 200) else [f"free calls: {first}, {second}, {third}"]


def _check_tokens(client: httpx.Client, tokens: list[str]) -> list[str]:
    """Every token that was bought on the way still has all its credits."""
    found = []
    for number, token in enumerate(tokens):
        answer = client.get("/api/payment/balance", headers={"Authorization": f"Bearer {token}"})
        if answer.status_code != 200 or answer.json()["credits"] != 100:
            found.append(f"token {number}: {answer.status_code} {answer.text[:80]}")
    return found


def _settled(client: httpx.Client, program: Program, shopper: Shopper, inbox: Inbox) -> int:
    """How many credits are gone, once what was delivered is charged or is taking too long."""
    until = time.monotonic() + SETTLE_S
    while True:
        spent = int(program.ready["credits"]) - int(client.get("/api/payment/balance").json()["credits"])
        if spent >= shopper.charged + len(inbox.ids()) or time.monotonic() > until:
            return spent
        time.sleep(0.2)


def _check_books(folder: Path, matrix: Matrix) -> list[str]:
    checked = json.loads(ran("ledger", "check", "--json", "--data-dir", str(folder / "data"), folder=folder).stdout)
    with closing(sqlite3.connect(folder / "data" / FILE)) as db:
        posted = db.execute("SELECT coalesce(sum(credits), 0) FROM reservation WHERE state='posted'").fetchone()[0]
    found = [] if checked["ok"] else [f"breaches: {checked['breaches']}"]
    if posted != matrix.charged + matrix.fired:
        found.append(f"the ledger charged {posted} for {matrix.charged} in receipts and {matrix.fired} fires")
    return found


def main(rounds: int = 5) -> int:
    """Print the table; 0 when nothing is wrong in it."""
    with tempfile.TemporaryDirectory() as folder:
        matrix = run_matrix(Path(folder), rounds)
    print(f"{'jump':>8} before repeated after bought  one call")
    for jump in matrix.jumps:
        print(f"{jump.seconds:+8d} {jump.before:6} {jump.repeated:8} {jump.after:5} {jump.bought:6}  {jump.same}")
    print(f"{matrix.charged} credits by receipts, {matrix.fired} webhooks, {matrix.bought} purchases")
    print("wrong:", "; ".join(matrix.wrong) or "nothing")
    return len(matrix.wrong)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
