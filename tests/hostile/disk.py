"""`python -m tests.hostile.disk [fault …]`: what callers get while the disk fails, as a table, and what it cost them.

For each fault a service of its own runs on a small disk of its own. Every call is made before the fault, under it and
after it. In the end the ledger is checked: each credit that was taken stands for an answer that was given.
"""

import base64
import json
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.hostile.disks import FAULTS, can_mount, small_disk
from tests.hostile.facilitators import RunningFacilitator, facilitating
from tests.live.inbox import Inbox
from tests.live.processes import Program, Sim, control, ran, started
from tests.money.x402.parts import PAY_TO, signed
from toolserver.money.ledger.store import FILE
from toolserver.money.purchases.chain.ethereum import checksum_address

PREMIUM = "/api/pro/macro"
CALLS = ("free", "premium", "x402", "buy", "confirm", "balance", "receipt", "no-charge", "fire")
SLOT_S = 300
FIRE_S, PATIENT_S = 4.0, 30.0  # a fire comes within seconds of its slot, but on a slow disk or a busy machine
READABLE = ("full", "read-only", "locked")  # while these last, what is stored can still be read
UNLIMITED = {"TOOLSERVER_LIMITS__ENABLED": "false"}


@dataclass
class Ended:
    """One call: its status, how long it took, and what was charged, in credits or 0.000001 USDC."""

    status: int
    seconds: float
    retry_after: str | None = None
    charged: int = 0


@dataclass
class Row:
    """One fault: readiness and every call while it lasts."""

    fault: str
    ready: int
    ledger: int
    checks: dict[str, bool]
    calls: dict[str, Ended]
    after: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def print(self) -> None:
        """One line of the table."""
        failed = ",".join(name for name, good in self.checks.items() if not good) or "-"
        cells = "  ".join(f"{c.status}/{c.charged}/{c.seconds:.1f}s" for c in self.calls.values())
        health = f"{self.ready}  {self.ledger}  {failed:38}"
        print(f"{self.fault:10} {health} {cells}  {'; '.join(self.problems) or 'books right'}", flush=True)


class Shopper:
    """A client who calls everything, and counts what was answered and what was charged."""

    def __init__(self, program: Program, sim: Sim, facilitator: RunningFacilitator) -> None:
        self._http = httpx.Client(base_url=program.url, timeout=60, trust_env=False)  # longer is for ever
        self._sim, self._facilitator, self._inbox = sim, facilitator, Inbox()
        self.token, self._credits = str(program.ready["token"]), int(program.ready["credits"])
        self.addresses: list[str] = []
        self.sold = self.charged = self.x402_sold = 0
        self._receipt = ""
        self._claim: dict[str, str] = {}

    def close(self) -> None:
        """Close the connections, once everything that was delivered is charged or is taking too long."""
        until = time.monotonic() + PATIENT_S
        while self._spent() < self.charged + self.fired and time.monotonic() < until:
            time.sleep(0.2)
        self._http.close()
        self._inbox.close()

    @property
    def fired(self) -> int:
        """How many webhooks were delivered, each counted once."""
        return len(self._inbox.ids())

    def prepare(self) -> None:
        """Have a receipt to ask for, and a payment to confirm that has all its blocks."""
        until = time.monotonic() + 20
        while self.call("buy").status != 200 and time.monotonic() < until:
            time.sleep(0.5)
        self._claim = self._pay()
        assert self.call("premium").status == 200, self.last
        assert self.call("x402").status == 200, self.last
        asked = {"endpoint": "macro", "webhook_url": self._inbox.url}
        made = self._http.post("/api/pro/subscribe", json=asked, headers={"Authorization": f"Bearer {self.token}"})
        assert made.status_code == 201, made.text
        assert self.call("fire").status == 200, "nothing was delivered"

    def call(self, name: str, *, fire_s: float = PATIENT_S) -> Ended:
        """Make a call and return how it ended; of a webhook 200 means delivered, 503 not delivered within `fire_s`."""
        if name == "fire":
            return self._await_fire(fire_s)
        start = time.monotonic()
        made = self._facilitator.script.settlements
        answer = getattr(self, "_ask_" + name.replace("-", "_"))()
        self.last = answer.text
        ended = Ended(answer.status_code, time.monotonic() - start, answer.headers.get("retry-after"))
        if name == "premium":
            receipt = answer.headers.get("x-service-receipt")
            ended.charged = charged_in(receipt) if receipt else 0
            self.charged += ended.charged
            if answer.status_code == 200:
                self.sold += 1
                self._receipt = answer.headers["x-service-receipt-id"]
        if name == "x402":
            ended.charged = self._facilitator.script.settlements - made
            self.x402_sold += answer.status_code == 200
        if name == "buy" and answer.status_code == 200:
            self.addresses.append(answer.json()["wallet"])
        return ended

    def _await_fire(self, within_s: float) -> Ended:
        """Let a slot pass, and see whether a webhook is delivered."""
        start, before = time.monotonic(), self.fired
        self._sim.put("clock", {"advance_s": SLOT_S})
        while self.fired == before and time.monotonic() - start < within_s:
            time.sleep(0.05)
        arrived = self.fired - before
        return Ended(200 if arrived else 503, time.monotonic() - start, charged=arrived)

    def _spent(self) -> int:
        answer = self._ask_balance()
        return self._credits - int(answer.json()["credits"]) if answer.status_code == 200 else 0

    @property
    def x402_payments(self) -> int:
        """How many payments were made."""
        return len(self._facilitator.script.made)

    def health(self) -> tuple[int, int, dict[str, bool]]:
        """The status of /readyz, that of /healthz/ledger and its checks, once the last verdict is forgotten."""
        time.sleep(0.6)
        ledger = self._http.get("/healthz/ledger")
        return self._http.get("/readyz").status_code, ledger.status_code, ledger.json()["checks"]

    def _pay(self) -> dict[str, str]:
        quote = self._ask_buy().json()
        self.addresses.append(quote["wallet"])
        tx_hash = self._sim.paid(quote["wallet"], 2)
        self._sim.put("clock", {"advance_s": 60})
        return {"tx_hash": tx_hash, "nonce": quote["memo"]}

    def _ask_free(self) -> httpx.Response:
        return self._http.get("/api/btc-price", headers={"Authorization": f"Bearer {self.token}"})

    def _ask_premium(self) -> httpx.Response:
        return self._http.get(PREMIUM, headers={"Authorization": f"Bearer {self.token}"})

    def _ask_x402(self) -> httpx.Response:
        offer = self._http.get(PREMIUM).headers["payment-required"]
        amount = int(json.loads(base64.b64decode(offer))["accepts"][0]["amount"])
        payment = signed(amount, validBefore=str(int(time.time()) + 10**8))
        return self._http.get(PREMIUM, headers={"PAYMENT-SIGNATURE": payment})

    def _ask_buy(self) -> httpx.Response:
        return self._http.post("/api/payment/buy-credits", json={"amount_usd": 2})

    def _ask_confirm(self) -> httpx.Response:
        return self._http.post("/api/payment/confirm", json=self._claim)

    def _ask_balance(self) -> httpx.Response:
        return self._http.get("/api/payment/balance", headers={"Authorization": f"Bearer {self.token}"})

    def _ask_receipt(self) -> httpx.Response:
        return self._http.get(f"/api/receipt/{self._receipt}", headers={"Authorization": f"Bearer {self.token}"})

    def _ask_no_charge(self) -> httpx.Response:
        return self._http.get("/api/payment/no-charge-stats")


def charged_in(jws: str) -> int:
    """The credits that a receipt says were charged."""
    part = jws.split(".")[1]
    core = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return int(core["credits_charged"])


def try_fault(name: str, folder: Path) -> Row:
    """Run a service on a disk of its own, let a fault happen to the disk, and judge what callers got."""
    module = "tests.hostile.slow_disk" if name == "slow" else "toolserver"
    with small_disk(folder / "data") as disk, facilitating() as facilitator:
        more = UNLIMITED | x402_settings(facilitator.url)
        with (
            started("demo", folder=folder, module=module, **more) as program,
            control(program.ready["world_url"]) as sim,
        ):
            shopper = Shopper(program, sim, facilitator)
            shopper.prepare()
            with FAULTS[name](disk):
                health = shopper.health()
                fire_s = PATIENT_S if name == "slow" else FIRE_S
                row = Row(name, *health, {call: shopper.call(call, fire_s=fire_s) for call in CALLS})
            time.sleep(0.6)
            row.after = {call: shopper.call(call).status for call in CALLS}
            row.after["ready"], row.after["ledger"], _ = shopper.health()
            shopper.close()
        row.problems = [*judge(row), *check_books(folder, shopper)]
    return row


def x402_settings(url: str) -> dict[str, str]:
    """Settings under which single calls can be paid for through this facilitator."""
    pay_to = checksum_address(PAY_TO)
    given = {"ENABLED": "true", "FACILITATOR_URL": url, "PAY_TO": pay_to}
    return {f"TOOLSERVER_X402__{name}": value for name, value in given.items()}


def judge(row: Row) -> list[str]:
    """What callers should not have got."""
    found = [f"{name} fails afterwards: {status}" for name, status in row.after.items() if status != 200]
    if row.calls["free"].status != 200:
        found.append("no free answers")
    if row.ready != 200:
        found.append("out of the balancer")
    if row.fault == "slow":
        return found + [f"{name} says {c.status}" for name, c in row.calls.items() if c.status != 200]
    if row.ledger != 503:
        found.append("the ledger is called healthy")
    for name in ("buy", "confirm", "balance", "receipt"):
        ended, reads = row.calls[name], row.fault in READABLE and name != "buy"
        refused = ended.status == 503 and ended.retry_after is not None
        if not refused and not (reads and ended.status == 200):
            found.append(f"{name} says {ended.status}")
    if row.calls["no-charge"].status not in (200, 503):
        found.append(f"no-charge says {row.calls['no-charge'].status}")
    return found + [f"{name} sold" for name in ("premium", "x402", "fire") if row.calls[name].status == 200]


def check_books(folder: Path, shopper: Shopper) -> list[str]:
    """What is wrong in the ledger of a service that has stopped."""
    checked = json.loads(ran("ledger", "check", "--json", "--data-dir", str(folder / "data"), folder=folder).stdout)
    with closing(sqlite3.connect(folder / "data" / FILE)) as db:
        charged = db.execute("SELECT coalesce(sum(credits), 0) FROM reservation WHERE state='posted'").fetchone()[0]
    found = [] if checked["ok"] else [f"breaches: {checked['breaches']}"]
    if charged != shopper.charged + shopper.fired:
        told = f"receipts say {shopper.charged}, and {shopper.fired} webhooks were delivered"
        found.append(f"the ledger charged {charged}, {told}")
    if len(set(shopper.addresses)) != len(shopper.addresses):
        found.append("an address was given out twice")
    if shopper.x402_sold != (made := shopper.x402_payments):
        found.append(f"{made} payments for {shopper.x402_sold} answers")
    return found


def main(names: list[str]) -> int:
    """Print the table; 0 when nothing is wrong in it."""
    if not can_mount():
        print("no file system can be mounted here, so the disk is not filled and not made read-only: run it as root")
    print(f"{'disk':10} rdy  {'checks that fail':37} " + "  ".join(f"{name:11}" for name in CALLS))
    wrong = 0
    for name in names or FAULTS:
        with tempfile.TemporaryDirectory() as folder:
            row = try_fault(name, Path(folder))
        row.print()
        wrong += bool(row.problems)
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
