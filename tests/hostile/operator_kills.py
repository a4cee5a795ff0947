"""`python -m tests.hostile.operator_kills [ROUNDS] [SEED]`: kills an operator's commands between their steps.

Refunds (ask, book, plan, sign, submit), reissues (ask, prove, complete) and sweeps (plan, sign, submit) on a chain of
one's own (anvil). Each command is killed at a random moment or at a request to the chain, the operator looks at the
list and goes on. In the end everything was paid once, taken once, booked, and stands in the books.
"""

import asyncio
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cli.test_refund import BUYER, TREASURY, final, signature
from tests.live.forking import Process, start_program
from tests.live.processes import environment
from tests.money.purchases.anvil import Anvil
from tests.money.purchases.fake_rpc import Fake, fake_rpc
from tests.money.purchases.onchain import confirmed, wallet
from tests.money.purchases.parts import Desk, desk
from tests.money.purchases.wallet import DEPOSITS, MNEMONIC, XPUB, private_key
from tests.money.x402.chain import anvil
from toolserver.clock import SystemClock
from toolserver.core.caller import token_hash
from toolserver.money.ledger.store import FILE, open_ledger
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.chain.node import ChainNode
from toolserver.money.purchases.sql_sweeps import read_swept

ELSEWHERE, HOME = bytes([0x55]) * 20, bytes([0x66]) * 20
USD, BACK, HOURS_49 = 10, 100, 49 * 3600
MOST_S = 2.5
NAMED = {"TREASURY_KEY": "44" * 32, "RELAY_KEY": private_key(3, 0).hex(), "OPERATOR_KEY": MNEMONIC}


@dataclass
class Report:
    """How often each command was killed while it ran, and everything that is wrong."""

    kills: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


class Operator:
    """Runs commands on one folder, some of which are killed."""

    def __init__(self, folder: Path, rpc: Fake, rng: random.Random, report: Report) -> None:
        self.folder, self.rpc, self.rng, self.report = folder, rpc, rng, report
        self.later_s = 0

    async def run(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        """A command that is left alone."""
        return await asyncio.to_thread(finish, self._begin(words))

    async def kill(self, *words: str) -> bytes:
        """A command that is killed: at a request to the chain, or at some moment. It may have ended before.

        Returns what it printed.
        """
        process, asks = self._begin(words), len(self.rpc.asked)
        at = asks + self.rng.randint(1, 9) if "submit" in words and self.rng.random() < 0.7 else None
        until = time.monotonic() + (60 if at else self.rng.uniform(0.3, MOST_S))
        while process.poll() is None and time.monotonic() < until and (at is None or len(self.rpc.asked) < at):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        if process.poll() is None:
            process.kill()
            self.report.kills[" ".join(words[:2])] += 1
        return (await asyncio.to_thread(finish, process)).stdout

    def _begin(self, words: tuple[str, ...]) -> Process:
        given = {"PAYMENTS__RPC_URLS": json.dumps([self.rpc.url]), "PAYMENTS__XPUB": XPUB}
        given |= {"BASE_URL": "https://data.example", "DATA_DIR": str(self.folder)}
        more = {f"TOOLSERVER_{name}": value for name, value in given.items()} | NAMED | {"LATER_S": str(self.later_s)}
        command, pipe = [sys.executable, "-m", "tests.hostile.later", *words], subprocess.PIPE
        env = environment(more, self.folder)
        return start_program(command, env=env, cwd=self.folder, stdout=pipe, stderr=pipe)

    async def told(self, *words: str) -> Any:
        """What a command prints as JSON. Raises RuntimeError when it fails."""
        done = await self.run(*words)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words[:2])}: {done.stderr.decode()}")
        return json.loads(done.stdout)

    # --- what an operator does

    async def refund(self, fingerprint: str) -> None:
        """One refund, each of whose commands is killed once."""
        before = len(await self.told("refund", "list", "--json"))
        ask = ("refund", "ask", fingerprint, str(BACK), "--to", checksum_address(ELSEWHERE), "--reason", "x", "--json")
        await self.kill(*ask)
        for left in (await self.told("refund", "list", "--json"))[before:]:
            await self.run("refund", "cancel", left["id"])
        asked = await self.told(*ask)
        given = ("--signature", signature(asked["text"], BUYER), "--from", TREASURY.address, "--json")
        await self.kill("refund", "book", asked["id"], *given)
        if (await self.find("refund", asked["id"]))["state"] == "asked":
            await self.told("refund", "book", asked["id"], *given)
        await self.kill("refund", "plan")
        await self.pay("refund", ("refund", "plan"), ("--key-env", "TREASURY_KEY"), ELSEWHERE)
        state = (await self.find("refund", asked["id"]))["state"]
        if state != "paid":
            self.report.wrong.append(f"the refund {asked['id']} is {state}")

    async def pay(self, verb: str, plan: tuple[str, ...], key: tuple[str, ...], to: bytes) -> None:
        """Plan, sign and submit; submitting is killed, and done again until it says how each payment ended."""
        document = self.folder / f"{verb}.json"
        for words in (plan, ("sweep", "sign", str(document), *key, "--to", checksum_address(to))):
            done = await self.run(*words)
            if done.returncode:
                raise RuntimeError(f"{' '.join(words[:2])}: {done.stderr.decode()}")
            document.write_bytes(done.stdout)
        submit = (verb, "submit", str(document), "--key-env", "RELAY_KEY", "--json")
        for _ in range(self.rng.randint(1, 3)):
            await self.kill(*submit)
        await self.run(*submit)
        await asyncio.sleep(1.2)  # a block
        await self.run(*submit)

    async def reissue(self, fingerprint: str) -> str:
        """One reissue, each of whose commands is killed once; the fingerprint of the token that holds now."""
        ask = ("reissue", "ask", fingerprint, "--json")
        await self.kill(*ask)
        for left in await self.told("reissue", "list", "--json"):
            if left["state"] == "asked":
                await self.run("reissue", "cancel", left["id"])
        asked = await self.told(*ask)
        given = ("--signature", signature(asked["text"], BUYER), "--json")
        await self.kill("reissue", "prove", asked["id"], *given)
        if (await self.find("reissue", asked["id"]))["state"] == "asked":
            await self.told("reissue", "prove", asked["id"], *given)
        self.later_s += HOURS_49
        printed = await self.kill("reissue", "complete", asked["id"], "--json")
        printed += (await self.run("reissue", "complete", asked["id"], "--json")).stdout
        found = await self.find("reissue", asked["id"])
        if found["state"] != "done":
            self.report.wrong.append(f"the reissue {asked['id']} is {found['state']}")
        tokens = re.findall(r"svc_live_[0-9a-f]{64}", printed.decode())
        if {token_hash(token).hex()[:16] for token in tokens} != {found["token_fp"]}:
            self.report.wrong.append(f"the reissue {asked['id']} printed {len(tokens)} tokens, not the one that holds")
        return str(found["token_fp"])

    async def find(self, verb: str, id: str) -> Any:
        return next(one for one in await self.told(verb, "list", "--json") if one["id"] == id)


def finish(process: Process) -> "subprocess.CompletedProcess[bytes]":
    out, errors = process.communicate(timeout=120)
    return subprocess.CompletedProcess(process.args, process.wait(), out, errors)


async def buy(d: Desk, chain: Anvil) -> tuple[str, bytes]:
    """A purchase that BUYER paid; the token, and the address that it was paid to."""
    quote = await d.quote(str(USD))
    tx = chain.pay(wallet(quote), USD, bytes.fromhex(BUYER.address[2:]))
    return (await confirmed(d, chain, tx, quote.memo)).token, wallet(quote)


async def kill_operators(rounds: int, folder: Path, *, seed: int = 1) -> Report:
    """Run it."""
    report, rng = Report(), random.Random(seed)
    with anvil() as chain:
        chain.rpc("anvil_impersonateAccount", BUYER.address)
        chain.rpc("anvil_setBalance", BUYER.address, hex(10**20))
        chain.rpc("anvil_setBalance", checksum_address(relayer()), hex(10**20))
        chain.pay(bytes.fromhex(BUYER.address[2:]), 100 * rounds)
        chain.pay(bytes.fromhex(TREASURY.address[2:]), 100 * rounds)
        async with desk(folder, [ChainNode(chain.url, timeout_s=15)], clock=SystemClock()) as d:
            bought = [await buy(d, chain) for _ in range(rounds)]
        for _ in range(2):
            chain.mine(3)
        await final_all(folder)
        chain.rpc("evm_setIntervalMining", 1)
        async with fake_rpc(before=chain.url) as rpc:
            operator = Operator(folder, rpc, rng, report)
            for token, _ in bought:
                fingerprint = token_hash(token).hex()[:16]
                await operator.refund(fingerprint)
                held = await operator.reissue(fingerprint)
                operator.later_s = 0
                await check_token(folder, token, held, report)
            plan = ("sweep", "plan", "--to", checksum_address(HOME), "--eth-usd", "3000")
            await operator.kill(*plan)
            await operator.pay("sweep", plan, ("--key-env", "OPERATOR_KEY", "--account", str(DEPOSITS)), HOME)
            await audit(operator, chain, bought, report)
    return report


def relayer() -> bytes:
    from eth_account import Account

    return bytes.fromhex(Account.from_key(private_key(3, 0)).address[2:])


async def final_all(folder: Path) -> None:
    async with open_ledger(folder / FILE) as ledger:
        rows = await ledger.file.read(lambda db: db.execute("SELECT tx_hash FROM tx_credit").fetchall())
    for (tx,) in rows:
        await final(folder, tx)


async def check_token(folder: Path, token: str, held: str, report: Report) -> None:
    """The credits are on one token: the one that the reissue names. The old one buys nothing."""
    async with open_ledger(folder / FILE) as ledger:
        sql = """SELECT a.credits - a.debits FROM token t JOIN account a ON a.id = t.account
          WHERE coalesce(t.successor, t.hash) LIKE ?"""
        ((left,),) = await ledger.file.read(lambda db: db.execute(sql, (f"{held}%",)).fetchall())
        if left != 50 * USD - BACK:
            report.wrong.append(f"{left} credits are left of {50 * USD - BACK}")
        try:
            await ledger.balance(token)
            report.wrong.append("the replaced token still buys")
        except Exception as refused:
            if type(refused).__name__ != "RevokedToken":
                raise


async def audit(operator: Operator, chain: Anvil, bought: list[tuple[str, bytes]], report: Report) -> None:
    """Whether the money is where it belongs, once, and the books say so."""
    refunds = await operator.told("refund", "list", "--json")
    paid = sum(one["state"] == "paid" for one in refunds)
    facts = {
        "refunded": (chain.balance(ELSEWHERE), len(bought) * BACK * 20_000),
        "refunds that are paid": (paid, len(bought)),
        "swept": (chain.balance(HOME), len(bought) * USD * 10**6),
        "swept by the table": (sum(read_swept(operator.folder / FILE).values()), len(bought) * USD * 10**6),
    }
    report.wrong += [
        f"{name}: {found} instead of {wanted}" for name, (found, wanted) in facts.items() if found != wanted
    ]
    done = await operator.run("books", "check", "--json")
    checks = json.loads(done.stdout)["checks"]
    print("  books check:", ", ".join(f"{one['name']} {one['compared']}" for one in checks))
    report.wrong += [f"{one['name']}: {text}" for one in checks for text in one["differences"]]
    unread = {"balances": "not compared: no service has read the chain yet"}  # services read it, and none runs here
    report.wrong += [f"{one['name']}: {one['note']}" for one in checks if one["note"] != unread.get(one["name"])]


def main(rounds: int, seed: int) -> int:
    with tempfile.TemporaryDirectory() as place:
        report = asyncio.run(kill_operators(rounds, Path(place), seed=seed))
    print(
        f"{report.kills.total()} kills:", ", ".join(f"{count} {name}" for name, count in sorted(report.kills.items()))
    )
    print("\n".join(report.wrong) or "everything was paid once, taken once, and stands in the books")
    return bool(report.wrong)


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    sys.exit(main(*(given + [8, 1][len(given) :])))
