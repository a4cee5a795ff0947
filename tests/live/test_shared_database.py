"""Real servers on one PostgreSQL: what one sells all take, each charge is made once, and a kill loses nothing."""

import json
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from tests.live.buying import bought
from tests.live.inbox import Inbox
from tests.live.killing import begun, selling
from tests.live.patient import MODULE as PATIENT
from tests.live.processes import UNLIMITED, Program, ran, started
from tests.postgres import run_sql, url_of
from tests.requirements import proves
from toolserver.core.caller import token_hash
from toolserver.money.ledger.store import FILE
from toolserver.sql.ledger_place import open_place, read_place
from toolserver.sql.postgres import PostgresTerms
from toolserver.webhooks.fire_operations import FireNow
from toolserver.webhooks.store import WebhookStore

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

BRIEFING = "/api/pro/briefing"
PATIENCE_S = "8"
COMMANDS = (("ledger", "check"), ("books", "month"), ("books", "check", "--no-chain"))


@dataclass
class Shop:
    """Where instances are started: a folder for each, one database, and one folder of keys that they all have."""

    folder: Path
    world: Program
    settings: dict[str, str]
    keys: Path | None = None
    names: list[str] = field(default_factory=list)

    def place(self, name: str) -> Path:
        """The folder of an instance, with the keys of the first one."""
        place = self.folder / name
        place.mkdir(exist_ok=True)
        if self.keys is None:
            self.keys = place / "data" / "keys"
        elif not (place / "data").exists():
            shutil.copytree(self.keys, place / "data" / "keys")
        return place

    def command(self, *words: str) -> bytes:
        """What a command prints, run in the folder of the first instance."""
        folder = str(self.place("a") / "data")
        done = ran(*words, "--data-dir", folder, folder=self.folder, within_s=60, **self.settings)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def say(self, *words: str) -> Any:
        """The same as JSON."""
        return json.loads(self.command(*words, "--json"))

    def rows(self, sql: str) -> list[Any]:
        """What stands in the database."""
        return read_place(
            PostgresTerms(self.settings["TOOLSERVER_DATABASE_URL"]), lambda db: db.execute(sql).fetchall()
        )

    def run(self, sql: str) -> None:
        run_sql(sql, self.settings["TOOLSERVER_DATABASE_URL"])

    def fire(self, ids: list[str]) -> None:
        """Let subscriptions come due at once, as `toolserver webhooks fire` does."""

        async def plan() -> None:
            place = PostgresTerms(self.settings["TOOLSERVER_DATABASE_URL"], connect_s=20, work_s=20)
            async with open_place(place) as file:
                for id in ids:
                    await WebhookStore(file).apply(FireNow(id, time.time_ns() // 1_000_000))

        anyio.run(plan)

    def require_right_books(self) -> None:
        for words in COMMANDS:
            said = self.say(*words)
            assert said.get("ok", said.get("agrees")) is True, said


@contextmanager
def open_shop(folder: Path) -> Iterator[Shop]:
    """A world and a database, on which nothing serves yet."""
    with started("world", folder=folder) as world:
        own = {
            "TOOLSERVER_DATABASE_URL": url_of(folder),
            "TOOLSERVER_WEBHOOKS__ALLOW_LOOPBACK": "true",
            "TOOLSERVER_UPSTREAM__VIA": world.url,
        }
        yield Shop(folder, world, {**UNLIMITED, **own, **selling(world.url)})


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with open_shop(tmp_path) as opened:
        yield opened


@contextmanager
def instances(shop: Shop, count: int) -> Iterator[list[Program]]:
    """So many instances; the first makes the keys that all have.

    The usual patience with PostgreSQL is less than a second: on a busy machine they would refuse what a test expects.
    """
    with ExitStack() as stack:
        own = {**shop.settings, "PATIENCE_S": PATIENCE_S}
        yield [
            stack.enter_context(started("serve", folder=shop.place(name), module=PATIENT, **own))
            for name in "abc"[:count]
        ]


def client_of(at: Program, token: str) -> httpx.Client:
    bearer = {"authorization": f"Bearer {token}"}
    return httpx.Client(base_url=at.url, headers=bearer, timeout=30, trust_env=False)


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    made = Inbox()
    yield made
    made.close()


def subscribe(at: Program, token: str, inbox: Inbox) -> str:
    with client_of(at, token) as client:
        made = client.post("/api/pro/subscribe", json={"endpoint": "agent-context", "webhook_url": inbox.url})
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def wait_for_charges(shop: Shop, id: str, count: int, within_s: float = 30) -> list[Any]:
    until = time.monotonic() + within_s
    while True:
        rows = shop.rows(f"SELECT id FROM webhook_fire WHERE subscription = '{id}' AND state = 'charged'")
        if len(rows) >= count:
            return rows
        assert time.monotonic() < until, rows
        time.sleep(0.2)


def test_what_was_bought_called_and_fired_stands_after_a_restart(shop, inbox):
    with instances(shop, 1) as (first,):
        token = bought(first, shop.world.url)
        with client_of(first, token) as client:
            called = client.get(BRIEFING)
            assert called.status_code == 200, called.text
        id = subscribe(first, token, inbox)
        shop.command("webhooks", "fire", id)
        inbox.wait(1)
        wait_for_charges(shop, id, 1)
    assert not (shop.place("a") / "data" / FILE).exists()
    with instances(shop, 1) as (again,), client_of(again, token) as client:
        receipt = client.get(f"/api/receipt/{called.headers['x-service-receipt-id']}").json()["receipt"]
        assert receipt["credits_charged"] > 0
        assert client.get("/api/payment/balance").json()["credits"] == 100 - receipt["credits_charged"] - 1
        assert [row["id"] for row in client.get("/api/pro/subscriptions").json()["subscriptions"]] == [id]
        (purchase,) = shop.say("purchases")
        assert (purchase["state"], purchase["credits"]) == ("credited", 100)
        assert bought(again, shop.world.url) != token
        assert len({row["address"] for row in shop.say("purchases")}) == 2
        shop.require_right_books()


def call_until_served(client: httpx.Client) -> int:
    """The status of a paid call, which is sent again as long as its 503 says that the ledger has no time: no charge."""
    for _ in range(20):
        answer = client.get(BRIEFING)
        if answer.status_code != 503:
            break
        assert answer.json()["error"] == "billing_unavailable"
        time.sleep(0.5)
    return answer.status_code


@proves("ledger.instances")
def test_three_instances_spend_one_token_to_exactly_zero_and_refuse_what_one_revoked(shop):
    with instances(shop, 3) as servers:
        token = bought(servers[0], shop.world.url)
        clients = [client_of(at, token) for at in servers]
        with ExitStack() as stack, ThreadPoolExecutor(12) as threads:
            for client in clients:
                stack.enter_context(client)
            given = {"name": "agent", "credits": 5}
            child = clients[0].post("/api/payment/allowances", json=given).json()
            called = list(threads.map(lambda turn: call_until_served(clients[turn % 3]), range(150)))
            price = 100 // called.count(200)
            assert called.count(200) * price == 100, called
            assert set(called) == {200, 402}
            assert {client.get("/api/payment/balance").json()["credits"] for client in clients} == {0}

            shop.say("ledger", "grant", token_hash(token).hex()[:16], "10", "--reason", "test")
            spent = [client_of(at, child["token"]) for at in servers]
            for client in spent:
                stack.enter_context(client)
                assert client.get("/api/payment/balance").status_code == 200
            assert clients[1].delete(f"/api/payment/allowances/{child['id']}").status_code == 200
            time.sleep(1)
            assert {client.get("/api/payment/balance").status_code for client in spent} == {402}
            assert {client.get(BRIEFING).status_code for client in spent} == {402}
            shop.say("ledger", "revoke", token_hash(token).hex()[:16], "--reason", "test")
            time.sleep(1)
            assert {client.get("/api/payment/balance").status_code for client in clients} == {402}
        shop.require_right_books()


def test_each_fire_is_delivered_and_charged_once_with_every_timer_on(shop, inbox):
    with instances(shop, 3) as servers:
        token = bought(servers[0], shop.world.url)
        ids = [subscribe(at, token, inbox) for at in servers]
        fires = 4
        for round in range(1, fires + 1):
            shop.fire(ids)
            inbox.wait(3 * round)
        for id in ids:
            assert len(wait_for_charges(shop, id, fires)) == fires
        sent = [headers["webhook-id"] for headers, _ in inbox.requests]
        assert len(sent) == len(set(sent)) == 3 * fires, "one delivery for each fire"
        with client_of(servers[2], token) as client:
            assert client.get("/api/payment/balance").json()["credits"] == 100 - 3 * fires
        shop.require_right_books()


def test_one_that_is_killed_while_it_sells_loses_nothing_and_charges_nothing_twice(shop):
    with instances(shop, 2) as servers, begun(shop.place("c"), **shop.settings) as (third, process):
        token = bought(servers[0], shop.world.url, 400)
        whole, cut, stop = set[str](), [], threading.Event()

        def buy(at: Program) -> None:
            with client_of(at, token) as client:
                while not stop.is_set():
                    try:
                        answer = client.get(BRIEFING)
                    except httpx.HTTPError:
                        cut.append(at)
                        return
                    if answer.status_code == 200:
                        whole.add("call_" + answer.headers["x-service-receipt-id"].removeprefix("rcpt_"))

        with ThreadPoolExecutor(9) as threads:
            at_work = [threads.submit(buy, at) for at in (*servers, third) * 3]
            time.sleep(3)
            process.send_signal(signal.SIGKILL)
            process.wait(10)
            time.sleep(2)
            stop.set()
            for each in at_work:
                each.result(30)
        assert whole
        assert set(map(id, cut)) <= {id(third)}
        states = dict(shop.rows("SELECT call_id, state FROM reservation"))
        waiting = {call for (call,) in shop.rows("SELECT call_id FROM journal")}
        assert {states.get(call) for call in whole} == {"posted"}, "what arrived is charged"
        posted = {call for call, state in states.items() if state == "posted"}
        assert posted - whole <= waiting, "what did not arrive is owed back"
        assert len(posted - whole) <= 3
        ((charged,),) = shop.rows("SELECT sum(credits) FROM reservation WHERE state = 'posted'")
        ((held,),) = shop.rows("SELECT coalesce(sum(credits), 0) FROM reservation WHERE state = 'open'")
        with client_of(servers[1], token) as client:
            assert client.get("/api/payment/balance").json()["credits"] == 20_000 - charged - held
        shop.run("UPDATE journal SET next_at = 0")
        until = time.monotonic() + 60
        while shop.rows("SELECT 1 FROM journal"):
            assert time.monotonic() < until, "what the dead one owes was not released"
            time.sleep(0.5)
        states = dict(shop.rows("SELECT call_id, state FROM reservation"))
        posted = {call for call, state in states.items() if state == "posted"}
        assert posted <= whole, "nobody is charged for what did not arrive"
        assert len(whole - posted) <= 3, "given back is only what arrived since the dead one's last commit"
