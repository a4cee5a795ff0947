"""A month of payments of every kind in a random order, on a demo whose chain, servers and process fail.

    python -m tests.month.seeded --seeds 20
    python -m tests.month.seeded --seeds 3 --chain anvil --anvil PATH

What each transfer and each token must be in the end is written down beside each payment, by the rules that
docs/books.md tells. Then differences are planted, and nothing else may be found.
"""

import argparse
import json
import random
import sqlite3
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.month.sandbox import FACILITATOR, MAIN, OTHER_BUYER, SECOND, Sandbox, run_alone

KINDS = (
    "exact short over below twice twice_by_another late unclaimed dust nothing foreign contract x402_call x402_topup"
    " signed_twice contract_signer invented_settlement lying_server other_chain reorganised reorganised_x402 killed"
).split()
CONTRACT, FOREIGN_TOKEN, STRANGER = "0x" + "c0de" * 10, "0x" + "f0e1" * 10, "0x" + "5a" * 20
FINAL_S = 1500  # after which blocks of the demo are final, and read as such
PER_USD = 50


@dataclass
class Expected:
    """What a transfer must be in the end: states of which one is right (`absent`: in no book)."""

    kind: str
    states: tuple[str, ...]


@dataclass
class Month:
    """One month. `transfers` has what is expected of each transaction, `tokens` the credits of each token, None for a
    token that must not be valid.
    """

    demo: Sandbox
    rng: random.Random
    transfers: dict[str, Expected] = field(default_factory=dict)
    tokens: dict[str, int | None] = field(default_factory=dict)
    cases: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    compared_blocks: int = 0

    # --- what happens

    def run(self, steps: int) -> None:
        """Live through the month: every kind of payment once, and then more of them, in a random order."""
        self.demo.start()
        kinds = [*KINDS, *self.rng.choices(KINDS, k=max(0, steps - len(KINDS)))]
        self.rng.shuffle(kinds)
        for kind in kinds[:steps]:
            getattr(self, f"do_{kind}")()
            self.kinds[kind] += 1
            self.demo.forward(self.rng.choice((30, 60, 400, 3600)))  # deeper than a reorganisation of the next step
        self._read_to_the_end()

    def usd(self) -> int:
        return self.rng.randint(2, 20)

    def buy(self, kind: str, quoted: float, paid: float, **more: str) -> str:
        """A purchase that is paid and confirmed; its token."""
        wallet, memo = self.demo.quote(quoted)
        return self._confirm_paid(kind, self.demo.pay(wallet, paid, **more), memo, paid)

    def _confirm_paid(self, kind: str, tx: str, memo: str, paid: float) -> str:
        self.demo.forward(10)
        answer = self.demo.confirm(tx, memo)
        for _ in range(5):
            if answer.status_code == 200:
                break
            self.demo.forward(30)
            answer = self.demo.confirm(tx, memo)
        self.check(
            answer.status_code == 200, f"{kind}: the claim of {tx} said {answer.status_code} {answer.text[:300]}"
        )
        self.transfers[tx] = Expected(kind, ("credited",))
        if answer.status_code != 200:
            return ""
        token = str(answer.json()["token"])
        self.tokens[token] = int(paid * PER_USD)
        return token

    def refuse(self, kind: str, tx: str, memo: str, code: str) -> None:
        """A claim must be refused with this code."""
        self.demo.forward(10)
        answer = self.demo.confirm(tx, memo)
        said = answer.json().get("error")
        self.check(said == code, f"{kind}: the claim of {tx} said {said} instead of {code}")

    def do_exact(self) -> None:
        usd = self.usd()
        self.buy("exact", usd, usd)

    def do_short(self) -> None:
        usd = self.usd()
        self.buy("short", usd, usd - 1)

    def do_over(self) -> None:
        usd = self.usd()
        self.buy("over", usd, usd + 3.5)

    def do_contract(self) -> None:
        usd = self.usd()
        self.buy("contract", usd, usd, via=CONTRACT)

    def do_late(self) -> None:
        wallet, memo = self.demo.quote(5)
        self.demo.forward(5400)
        self._confirm_paid("late", self.demo.pay(wallet, 5), memo, 5)

    def do_below(self) -> None:
        wallet, memo = self.demo.quote(5)
        tx = self.demo.pay(wallet, 0.5)
        self.refuse("below", tx, memo, "below_minimum")
        self.transfers[tx] = Expected("below", ("short",))
        self.cases["below_minimum"] += 1

    def do_foreign(self) -> None:
        wallet, memo = self.demo.quote(5)
        tx = self.demo.pay(wallet, 5, token=FOREIGN_TOKEN)
        self.refuse("foreign", tx, memo, "no_matching_transfer")
        self.transfers[tx] = Expected("foreign", ("absent",))

    def do_unclaimed(self) -> None:
        wallet, _ = self.demo.quote(5)
        tx = self.demo.pay(wallet, 5)
        self.transfers[tx] = Expected("unclaimed", ("quoted",))

    def do_dust(self) -> None:
        wallet, _ = self.demo.quote(5)
        for _ in range(self.rng.randint(1, 3)):
            self.transfers[self.demo.pay(wallet, 0.009)] = Expected("dust", ("absent",))

    def do_nothing(self) -> None:
        self.demo.quote(5)

    def do_twice(self) -> None:
        wallet, memo = self.demo.quote(5)
        token = self._confirm_paid("twice", self.demo.pay(wallet, 5), memo, 5)
        again = self.demo.pay(wallet, 2)
        self.transfers[again] = Expected("twice", ("credited",))
        self.tokens[token] = 7 * PER_USD

    def do_twice_by_another(self) -> None:
        wallet, memo = self.demo.quote(5)
        self._confirm_paid("twice_by_another", self.demo.pay(wallet, 5), memo, 5)
        again = self.demo.pay(wallet, 2, **{"from": OTHER_BUYER})
        self.transfers[again] = Expected("twice_by_another", ("second",))
        self.cases["second_transfer"] += 1

    # --- payments by signature

    def do_x402_call(self) -> None:
        self._pay_call("x402_call")

    def _pay_call(self, kind: str) -> str | None:
        path = "/api/pro/briefing"
        header, _ = self.demo.sign(self.demo.offer("GET", path))
        return self._settle(kind, "GET", path, header)

    def _settle(self, kind: str, method: str, path: str, header: str, body: Any = None) -> str | None:
        """Pay by signature until it is answered; the transaction."""
        known = self._made()
        answer = self.demo.pay_signed(method, path, header, body)
        for _ in range(6):
            if answer.status_code == 200:
                break
            self.demo.forward(12)
            answer = self.demo.pay_signed(method, path, header, body)
        self.check(answer.status_code == 200, f"{kind}: {path} said {answer.status_code} {answer.text[:300]}")
        self.demo.forward(4)  # a small payment counts before it is in a block
        tx = next(iter(set(self._made()) - set(known)), None)
        self.check(tx is not None, f"{kind}: nothing was paid")
        if tx is not None:
            self.transfers[tx] = Expected(kind, ("credited",))
        if answer.status_code == 200 and "token" in answer.json():
            self.tokens[answer.json()["token"]] = int(answer.json()["credits"])
        return tx

    def _made(self) -> list[str]:
        return [each["hash"] for each in self.demo.control("GET", "chain")]

    def _pay_topup(self, kind: str) -> str | None:
        body = {"amount_usd": 2}
        header, _ = self.demo.sign(self.demo.offer("POST", "/api/payment/topup", body))
        return self._settle(kind, "POST", "/api/payment/topup", header, body)

    def do_x402_topup(self) -> None:
        self._pay_topup("x402_topup")

    def do_signed_twice(self) -> None:
        path = "/api/pro/macro"
        header, _ = self.demo.sign(self.demo.offer("GET", path))
        self._settle("signed_twice", "GET", path, header)
        before = self._made()
        again = self.demo.pay_signed("GET", path, header)
        self.check(
            self._made() == before and "payment-required" not in again.headers,
            f"signed_twice: a second use of a payment said {again.status_code} and made a transfer or an offer",
        )

    def do_contract_signer(self) -> None:
        path, before = "/api/pro/briefing", self._made()
        header, _ = self.demo.sign(self.demo.offer("GET", path), by_contract=True)
        answer = self.demo.pay_signed("GET", path, header)
        self.check(
            answer.status_code in (400, 402) and self._made() == before,
            f"contract_signer: a signature that is no account's said {answer.status_code}",
        )

    def do_invented_settlement(self) -> None:
        """The facilitator reports a settlement that never was: nothing may be spendable, whatever it says."""
        body, before = {"amount_usd": 2}, self._made()
        header, _ = self.demo.sign(self.demo.offer("POST", "/api/payment/topup", body))
        rule = self._fault(FACILITATOR, "drift", form="invented")
        answer = self.demo.pay_signed("POST", "/api/payment/topup", header, body)
        self.demo.control("DELETE", f"faults/{rule}")
        self.check(answer.status_code != 200, "invented_settlement: a settlement that never was bought credits")
        self.demo.forward(400)
        again = self.demo.pay_signed("POST", "/api/payment/topup", header, body)
        self.check(
            again.status_code != 200 and self._made() == before,
            f"invented_settlement: the same payment, after it had expired, said {again.status_code}",
        )

    def _fault(self, match: str, kind: str, **terms: Any) -> str:
        return str(self.demo.control("POST", "faults", {"match": match, "kind": kind} | terms)["id"])

    # --- servers that fail, reorganisations, kills

    def do_lying_server(self) -> None:
        """One of two servers invents a payment."""
        wallet, memo = self.demo.quote(50)
        tx = self.demo.pay(wallet, 50, known_to=self.rng.choice((MAIN, SECOND)))
        self.demo.forward(10)
        answer = self.demo.confirm(tx, memo)
        token = answer.json().get("token") if answer.status_code == 200 else None
        if token is not None:
            self._must_not_spend(token)
            self.demo.forward(60)
            self._must_not_spend(token)
        self.demo.control("DELETE", f"chain/{tx}")
        self.transfers[tx] = Expected("lying_server", ("undone", "absent"))
        if token is not None:
            self.tokens[token] = None

    def _must_not_spend(self, token: str) -> None:
        answer = self.demo.api.get(f"{self.demo.base}/api/pro/briefing", headers={"Authorization": f"Bearer {token}"})
        self.check(answer.status_code == 402, f"what one server invented was spent: {answer.status_code}")

    def do_other_chain(self) -> None:
        """One of two servers is a node of another chain for a while."""
        rule = self._fault(self.rng.choice((MAIN, SECOND)), "drift", form="other_chain")
        usd = self.usd()
        self.buy("other_chain", usd, usd)
        self.demo.control("DELETE", f"faults/{rule}")

    def do_reorganised(self) -> None:
        """A payment is confirmed, and a reorganisation of 1 to 10 blocks goes above it, below it, or puts it back."""
        usd, depth = self.usd(), self.rng.randint(1, 10)
        wallet, memo = self.demo.quote(usd)
        tx = self.demo.pay(wallet, usd)
        token = self._confirm_paid("reorganised", tx, memo, usd)
        again = [tx] if self.rng.random() < 0.5 else []
        if tx in self._reorganise(depth, again):
            self.transfers[tx] = Expected("reorganised", ("undone", "absent"))
            self.tokens[token] = None

    def do_reorganised_x402(self) -> None:
        call = self.rng.random() < 0.5
        known = set(self.tokens)
        tx = (self._pay_call if call else self._pay_topup)("reorganised_x402")
        again = [tx] if tx is not None and self.rng.random() < 0.5 else []
        if tx in self._reorganise(self.rng.randint(1, 10), again):
            self.transfers[tx] = Expected("reorganised_x402", ("undone", "absent"))
            self.tokens |= dict.fromkeys(set(self.tokens) - known)

    def _reorganise(self, depth: int, again: list[str]) -> list[str]:
        """Replace the newest blocks, and let time pass in which the service looks; what is gone."""
        gone = self.demo.control("POST", "chain/reorganise", {"depth": depth, "again": again})["undone"]
        for _ in range(8):
            self.demo.forward(30)
        return list(gone)

    def do_killed(self) -> None:
        """The service is killed in the middle of a claim; the buyer claims again."""
        usd = self.usd()
        wallet, memo = self.demo.quote(usd)
        tx = self.demo.pay(wallet, usd)
        self.demo.forward(10)
        self.demo.kill_during(lambda: self.demo.confirm(tx, memo), self.rng.uniform(0, 0.1))
        self._confirm_paid("killed", tx, memo, usd)

    # --- what is found in the end

    def check(self, is_right: bool, sentence: str) -> None:
        if not is_right:
            self.wrong.append(sentence)

    def _read_to_the_end(self) -> None:
        """Let all blocks so far become final, and be read."""
        until = self.demo.now() + 2 * FINAL_S  # two readings later, so that what looks once a minute has looked between
        for _ in range(300):
            self.demo.forward(200)
            time.sleep(0.8)
            read = self._rows("SELECT block, at FROM chain_scan WHERE name = 'final'")
            newer = self._rows(f"SELECT 1 FROM chain_transfer WHERE block_number > {read[0][0] if read else 0}")
            if read and read[0][1] / 1000 > until and not newer:
                return
        self.wrong.append("the chain was not read to the end")

    def read(self, *words: str, may_fail: bool = False) -> Any:
        """What a command prints as JSON, whatever its exit status where it `may_fail`."""
        return json.loads(self.demo.command(*words, may_fail=may_fail))

    def compare(self) -> None:
        """Compare the books, the tokens and the cases with what is expected, and the books with each other."""
        found = self._states()
        for tx, expected in self.transfers.items():
            states = found.get(tx) or {"absent"}
            self.check(
                states <= set(expected.states), f"{expected.kind}: {tx} is {states} instead of {expected.states}"
            )
        for tx in found.keys() - self.transfers.keys():
            self.wrong.append(f"{tx} is {found[tx]}, and nobody paid it")
        for token, credits in self.tokens.items():
            left = self.demo.credits(token)
            self.check((left or None) == (credits or None), f"a token has {left} credits instead of {credits}")
        cases = Counter(
            each["reason"] for each in self.read("purchases", "--cases", "--json") if each["kind"] == "unapplied"
        )
        self.check(cases == self.cases, f"cases {dict(cases)} instead of {dict(self.cases)}")
        self.wrong += self.find_differences()

    def find_differences(self) -> list[str]:
        """What the commands of the operator find wrong now."""
        chain = self.read("books", "chain", "--json", may_fail=True)
        found = [f"books chain: {each}" for each in chain["differing"]]
        if not chain["agrees"] and not found:
            found.append(f"books chain: {chain}")
        check = self.read("books", "check", "--json", may_fail=True)
        found += [f"books check, {each['name']}: {line}" for each in check["checks"] for line in each["differences"]]
        found += [
            f"books check: {each['note']}" for each in check["checks"] if "moved by other means" in (each["note"] or "")
        ]
        if not check["ok"] and not any(line.startswith("books check") for line in found):
            found.append(f"books check: {check}")
        return found

    def _states(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for tx, state in self._rows("SELECT tx_hash, state FROM chain_transfer"):
            found.setdefault(f"0x{tx.hex()}", set()).add(state)
        return found

    @property
    def ledger(self) -> Path:
        return self.demo.data / "ledger.sqlite3"

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        db = sqlite3.connect(f"file:{self.ledger}?mode=ro", uri=True)
        try:
            return db.execute(sql).fetchall()
        finally:
            db.close()

    def compare_blocks(self, samples: int) -> None:
        """Compare the sums of the book with balances that another program reads, after sampled blocks.

        Dust has no row with a block, so what received any is compared after the last final block only.
        """
        moved = self._rows(
            "SELECT payer, payee, amount, inward, outward, block_number FROM chain_transfer WHERE state != 'undone'"
        )
        dust = {address: received - sent for address, received, sent in self._rows(
            "SELECT address, received_amount, sent_amount FROM chain_dust"
        )}  # fmt: skip
        ours = {payee for _, payee, _, inward, _, _ in moved if inward} | {
            payer for payer, _, _, _, outward, _ in moved if outward
        }
        first, last = (
            min(each[5] for each in moved) - 2,
            int(self.read("books", "chain", "--no-balances", "--json", may_fail=True)["block"]),
        )
        blocks = sorted([*self.rng.sample(range(first, last), min(samples - 1, last - first)), last])
        lines = run_alone(
            "tests.month.balances",
            self.demo.ready["chain_url"],
            ",".join(map(str, blocks)),
            given="\n".join(f"0x{a.hex()}" for a in ours),
        )
        for line in lines.splitlines():
            block, address, held = line.split()
            owner = bytes.fromhex(address[2:])
            if owner in dust and int(block) != last:
                continue
            booked = dust.get(owner, 0) + sum(
                amount * ((payee == owner) - (payer == owner))
                for payer, payee, amount, _, _, at in moved
                if at <= int(block)
            )
            self.check(booked == int(held), f"{address} held {held} after block {block}, and the book says {booked}")
        self.compared_blocks = len(blocks)

    def plant(self) -> None:
        """Plant two differences, one after the other: each must be found, and nothing else."""
        credited = self._rows(
            "SELECT tx_hash, payee FROM chain_transfer WHERE state = 'credited' AND amount >= 2000000 AND payee IN"
            " (SELECT payee FROM chain_transfer GROUP BY payee HAVING count(*) = 1) ORDER BY id"
        )
        (_, stray), (removed, loser) = self.rng.sample(credited, 2)
        ids = [id.hex()[:16] for id, tx in self._rows("SELECT id, tx_hash FROM chain_transfer") if tx == removed]
        taken = self.demo.pay(STRANGER, 1.5, **{"from": f"0x{stray.hex()}"})
        self._read_to_the_end()
        states = self._states()
        self.check(states.get(taken) == {"foreign"}, f"an operator's stray transfer is {states.get(taken)}")
        found = self.find_differences()
        self.check(len(found) == 1 and "1 deposits" in found[0], f"an operator's stray transfer was found as {found}")
        sent = self.read("books", "chain", "--no-balances", "--json")["states"]["foreign"]["sent_usd"]
        self.check(sent == "1.500000", f"what left by other means is {sent} USDC instead of 1.5")
        self._delete_row(removed)
        more = [line for line in self.find_differences() if line not in found]
        about = (loser.hex(), *ids, "chain_change to chain_transfer")
        self.check(
            any(loser.hex() in line.lower() for line in more)
            and all(any(name in line.lower() for name in about) for line in more),
            f"a deleted row was found as {more}",
        )

    def _delete_row(self, tx: bytes) -> None:
        """Delete a transfer from the book, as somebody could who has the file."""
        db = sqlite3.connect(self.ledger, timeout=30, isolation_level=None)
        (trigger,) = db.execute(
            "SELECT sql FROM sqlite_master WHERE name = 'chain_transfer_is_never_deleted'"
        ).fetchone()
        for sql in ("PRAGMA foreign_keys = OFF", "BEGIN IMMEDIATE", "DROP TRIGGER chain_transfer_is_never_deleted"):
            db.execute(sql)
        db.execute("DELETE FROM chain_transfer WHERE tx_hash = ?", (tx,))
        db.execute(trigger)
        db.execute("COMMIT")
        db.close()


def live_month(folder: Path, *, seed: int, steps: int, samples: int, chain: tuple[str, ...] = ()) -> Month:
    """Live through one month in a folder, and return it with everything that is wrong."""
    month = Month(Sandbox(folder, seed=seed, chain=chain), random.Random(seed))
    try:
        month.run(steps)
        month.compare()
        month.compare_blocks(samples)
        month.plant()
    finally:
        month.demo.stop()
    return month


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1, help="how many months")
    parser.add_argument("--first", type=int, default=1, help="seed of the first one")
    parser.add_argument("--steps", type=int, default=40, help="payments and failures in a month")
    parser.add_argument("--samples", type=int, default=100, help="blocks of a month after which balances are compared")
    parser.add_argument("--chain", choices=["simulated", "anvil"], default="simulated", help="of the demo")
    parser.add_argument("--anvil", help="the program, if it is not on PATH")
    given = parser.parse_args()
    chain = ("--chain", given.chain, *(("--anvil", given.anvil) if given.anvil else ()))
    kinds, blocks, kills, wrong = Counter[str](), 0, 0, 0
    for seed in range(given.first, given.first + given.seeds):
        with TemporaryDirectory() as folder:
            month = live_month(Path(folder), seed=seed, steps=given.steps, samples=given.samples, chain=chain)
        print(f"month {seed}: {len(month.transfers)} transfers, {len(month.wrong)} differences", flush=True)
        for line in month.wrong:
            print(f"  {line}", flush=True)
        kinds, blocks = kinds + month.kinds, blocks + month.compared_blocks
        kills, wrong = kills + month.demo.kills, wrong + len(month.wrong)
    print(json.dumps({"kinds": kinds, "blocks_compared": blocks, "kills": kills, "differences": wrong}, indent=2))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
