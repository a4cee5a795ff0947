"""`python -m tests.deploy.fault_matrix [--proxy caddy|nginx] [--seconds S] [--fault WORD]…`: faults behind the proxies.

Three instances serve free and paid calls, over REST and MCP, behind the shipped file of a proxy. One fault comes after
the other, each for S seconds at least and until it has paged. For each, the table says what clients were told, which
shipped alert fired after how many seconds (its `for` counts 60 times as fast), what `toolserver doctor` and the
operators' page name it, and which part `/readyz` lists as degraded. Free calls are all answered, except that of those
under way at an instance which is killed, answers that have begun are cut. Paid calls are answered, or refused by name
while the ledger cannot be written; of those under way at an instance that is killed, what must not be sent twice (POST)
fails.
In the end each answer that was paid for is charged once, and nothing else is. The clock of an instance is put wrong on
a stage of its own, where each instance has its machine's clock: what it then sells has the database's time in each row.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.deploy.clock_rows import check_rows
from tests.deploy.fault_stage import OFF_S, Stage, set_stage
from tests.deploy.proxies import PROXIES, REPEATS, caddy_version
from tests.hostile.instances import REFUSALS
from tests.hostile.instances_audit import Audit
from tests.hostile.instances_load import KINDS, Call, Callers

CALM_S, PAGES_S, WELL_S, RECOVERS_S = 3.0, 120.0, 2.0, 120.0
FULL = 0.95
SENT_ONCE = ("paid, MCP",)  # a proxy must not send it to a second instance


@dataclass(frozen=True)
class Fault:
    """How it begins and ends, and what it is called.

    `alert` is the shipped alert that it sets off. `doctor` are words that `toolserver doctor` says at the instance
    `at`, and `page` is the code of the advice on its operators' page, or None where no page can be read. `lacks` is the
    part that its `/readyz` lists as degraded, if it goes on without one. `refuses`: paid calls may be refused
    meanwhile. `cuts`: what had reached an instance may be lost. `live`: doctor has to ask the net. `own_clocks`: the
    instances have their machines' clocks, not the world's. `prove` lists what else is wrong meanwhile.
    """

    name: str
    begin: Callable[[Stage], None]
    end: Callable[[Stage], None]
    alert: str
    doctor: str
    page: str | None
    lacks: str | None = None
    at: int = 0
    refuses: bool = False
    cuts: bool = False
    live: bool = False
    own_clocks: bool = False
    prove: Callable[[Stage], list[str]] = lambda stage: []


def _set_read_only(stage: Stage) -> None:
    stage.scene.postgres.set_read_only(True)


def _end_read_only(stage: Stage) -> None:
    stage.scene.postgres.set_read_only(False)


def _crash_postgres(stage: Stage) -> None:
    stage.scene.postgres.stop(signal.SIGQUIT)


def _redis(*words: str) -> Callable[[Stage], None]:
    def run(stage: Stage) -> None:
        assert stage.scene.redis.command(*words) == "OK"

    return run


def _kill(stage: Stage) -> None:
    stage.scene.instances[1].kill()


def _drain(stage: Stage) -> None:
    stage.scene.instances[1].stop()


def _start(stage: Stage) -> None:
    stage.scene.instances[1].start()


def _fill_disk(stage: Stage) -> None:
    """Write until so large a part of the third instance's disk is in use."""
    disk = os.statvfs(stage.disk)
    size = disk.f_frsize * int(disk.f_bavail - (1 - FULL) * disk.f_blocks)
    with (stage.disk / "filler").open("wb") as file:
        file.write(bytes(size))


def _free_disk(stage: Stage) -> None:
    (stage.disk / "filler").unlink()


def _lose_chain(stage: Stage) -> None:
    """Nobody buys meanwhile: the instances find out by themselves."""
    stage.sim.fault("Base.rpc", "reset")


def _find_chain(stage: Stage) -> None:
    stage.sim.heal()


LEDGER, REDIS = "ToolserverLedgerLost", "ToolserverRedisLost"
FAULTS = (
    Fault(
        "PostgreSQL is stopped", lambda s: s.scene.postgres.stop(), lambda s: s.scene.postgres.start(),
        LEDGER, "(cannot_start)", "ledger_lost", "ledger", refuses=True,
    ),
    Fault(
        "PostgreSQL is read-only", _set_read_only, _end_read_only,
        LEDGER, "read-only", "ledger_lost", "ledger", refuses=True,
    ),
    Fault(
        "PostgreSQL fails over", _crash_postgres, lambda s: s.fail_over(),
        LEDGER, "(cannot_start)", "ledger_lost", "ledger", refuses=True,
    ),
    Fault(
        "Redis is killed", lambda s: s.scene.redis.stop(), lambda s: s.scene.redis.start(),
        REDIS, "(redis_lost)", "redis_lost", "redis",
    ),
    Fault(
        "Redis is stopped (SIGSTOP)", lambda s: s.scene.redis.hang(), lambda s: s.scene.redis.go_on(),
        REDIS, "did not answer in time", "redis_lost", "redis",
    ),
    Fault(
        "Redis is read-only", _redis("replicaof", "127.0.0.1", "1"), _redis("replicaof", "no", "one"),
        REDIS, "read-only replica", "redis_lost", "redis",
    ),
    Fault(
        "Redis is full", _redis("config", "set", "maxmemory", "1"), _redis("config", "set", "maxmemory", "0"),
        REDIS, "memory of the server is full", "redis_lost", "redis",
    ),
    Fault(
        "an instance is killed", _kill, _start,
        "ToolserverDown", "does not answer: it was killed", None, at=1, cuts=True,
    ),
    Fault(
        "an instance is drained", _drain, _start,
        "ToolserverDown", "no server runs on this data directory", None, at=1,
    ),
    Fault(
        "the clock of an instance is off",
        lambda s: s.restart(2, CLOCK_OFF_S=str(OFF_S)), lambda s: s.restart(2, CLOCK_OFF_S="0"),
        "ToolserverClockOff", "(clock_lost)", "clock_lost", "clock", at=2,
        own_clocks=True, prove=lambda s: check_rows(s, 2),
    ),
    Fault(
        "a disk is 95 % full", _fill_disk, _free_disk,
        "ToolserverDiskFilling", "(disk_filling)", "disk_filling", at=2,
    ),
    Fault(
        "both RPC servers are down", _lose_chain, _find_chain,
        "ToolserverChainLost", "(chain_lost)", "chain_lost", "chain", live=True,
    ),
)  # fmt: skip


@dataclass
class Row:
    """What came of a fault. Seconds are -1 for what did not happen."""

    fault: Fault
    calls: list[Call] = field(default_factory=list)
    paged_s: float = -1.0
    quiet_s: float = -1.0
    named: str = ""
    shown: str = ""
    lacked: str = ""
    others: list[str] = field(default_factory=list)  # alerts that fired beside it

    def cells(self) -> list[str]:
        """A row of the table."""
        said = {part: Counter(c.said for c in self.calls if c.kind.startswith(part)) for part in ("free", "paid")}
        alert = f"{self.fault.alert} {self.paged_s:.0f} s" if self.paged_s >= 0 else f"{self.fault.alert} MISSING"
        quiet = f"{self.quiet_s:.0f} s" if self.quiet_s >= 0 else "NOT"
        shown = self.shown or ("no page to read" if self.fault.page is None else "MISSING")
        lacked = self.lacked or ("ready" if self.fault.lacks is None else "MISSING")
        return [self.fault.name, *map(_count, said.values()), alert, self.named or "MISSING", shown, lacked, quiet]


def _count(said: Counter[str]) -> str:
    others = (f"{count} {what}" for what, count in sorted(said.items()) if what != "200")
    return ", ".join([f"{said['200']} answered", *others])


@dataclass
class Run:
    """A whole run behind one proxy."""

    proxy: str
    rows: list[Row] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    charged: int = 0
    given_back: int = 0

    def print(self) -> None:
        """The table, and what is wrong."""
        print(f"\nbehind {self.proxy}")
        print("| fault | free calls | paid calls | paged by, after | doctor | operators' page | /readyz | well again |")
        print("|" + "---|" * 8)
        for row in self.rows:
            print("| " + " | ".join(row.cells()) + " |")
        others = sorted({name for row in self.rows for name in row.others})
        print(f"beside them fired {', '.join(others) or 'none'}")
        print(f"{self.charged} answers were charged for; {self.given_back} arrived and were given back all the same")
        print("\n".join(self.wrong) or "every answer is charged once, and nothing else is", flush=True)


class Judge:
    """Puts faults onto a stage, one after the other."""

    def __init__(self, stage: Stage, callers: Callers, run: Run, seconds: float) -> None:
        self._stage, self._callers, self._run, self._seconds = stage, callers, run, seconds

    def try_fault(self, fault: Fault) -> None:
        """Let a fault last until it is named everywhere, and wait until all is well again."""
        row = Row(fault)
        self._run.rows.append(row)
        began = time.monotonic()
        fault.begin(self._stage)
        row.paged_s = self._wait_until_paged(fault, began)
        row.named = self._ask_doctor(fault)
        row.shown = self._read_page(fault)
        row.lacked = self._read_ready(fault)
        self._run.wrong += [f"{fault.name}: {text}" for text in fault.prove(self._stage)]
        time.sleep(max(0.0, began + self._seconds - time.monotonic()))
        ended = time.monotonic()
        fault.end(self._stage)
        row.quiet_s = self._wait_until_well(fault, ended)
        row.calls = self._callers.record.between(began, time.monotonic())
        self._run.wrong += [f"{fault.name}: {text}" for text in judge(row, list_sent_once(self._run.proxy))]
        print("| " + " | ".join(row.cells()) + " |", flush=True)

    def _wait_until_paged(self, fault: Fault, began: float) -> float:
        while (now := time.monotonic()) < began + PAGES_S:
            if fault.alert in (firing := self._stage.pager.list_firing()):
                self._run.rows[-1].others = sorted(firing - {fault.alert})
                return now - began
            time.sleep(0.5)
        return -1.0

    def _ask_doctor(self, fault: Fault) -> str:
        lines = self._stage.say_doctor(fault.at, live=fault.live).splitlines()
        line = next((line.strip() for line in lines if fault.doctor in line), "")
        if not line:
            self._run.wrong.append(f"{fault.name}: doctor said {lines[-4:]}")
        return line if len(line) < 160 else f"{line[:100]} … {line[-40:]}"

    def _read_page(self, fault: Fault) -> str:
        """The code of the advice, as soon as the page of the instance has it: another one may have paged before."""
        until = time.monotonic() + PAGES_S
        while fault.page is not None and time.monotonic() < until:
            codes = [each["code"] for each in self._stage.read_operators(fault.at).get("advice", [])]
            if fault.page in codes:
                return fault.page
            time.sleep(1)
        return ""

    def _read_ready(self, fault: Fault) -> str:
        """The part that the instance goes on without, as soon as its readiness lists it."""
        until = time.monotonic() + PAGES_S
        while fault.lacks is not None and time.monotonic() < until:
            if fault.lacks in self._stage.scene.instances[fault.at].list_degraded():
                return fault.lacks
            time.sleep(0.5)
        return ""

    def _wait_until_well(self, fault: Fault, ended: float) -> float:
        """Seconds until for two of them every instance was ready, without a loss, each call answered, no page sent."""
        since = ended
        while (now := time.monotonic()) < ended + RECOVERS_S:
            bad = [call for call in self._callers.record.between(since, now) if not call.is_good]
            if bad or not self._stage.scene.is_well():
                since = time.monotonic()
            elif now - since >= WELL_S and fault.alert not in self._stage.pager.list_firing():
                return now - ended
            time.sleep(0.1)
        return -1.0


def list_sent_once(proxy: str) -> tuple[str, ...]:
    """The kinds of calls that a proxy sends to one instance only: an old Caddy cannot repeat a body."""
    return (*SENT_ONCE, "free, MCP") if proxy == "caddy" and caddy_version() < REPEATS else SENT_ONCE


def judge(row: Row, sent_once: Sequence[str] = SENT_ONCE) -> list[str]:
    """What must not have come of a fault, and did."""
    fault, wrong = row.fault, []
    for kind in KINDS:
        said = Counter(call.said for call in row.calls if call.kind == kind and not call.is_good)
        for what, count in said.items():
            is_refusal = kind.startswith("paid") and fault.refuses and what in REFUSALS
            is_lost = fault.cuts and (what == "cut" or (kind in sent_once and what == "502"))
            if not is_refusal and not is_lost:
                wrong.append(f"{count} times {kind} was told {what}")
    answered = {call.kind for call in row.calls if call.is_good}
    wrong += [f"no call was answered: {kind}" for kind in KINDS if kind not in answered]
    if row.paged_s < 0:
        wrong.append(f"{fault.alert} did not fire within {PAGES_S:.0f} s")
    if not row.named:
        wrong.append("doctor does not name it")
    if fault.page is not None and not row.shown:
        wrong.append("the operators' page does not name it")
    if fault.lacks is not None and not row.lacked:
        wrong.append(f"/readyz does not list {fault.lacks}")
    if row.quiet_s < 0:
        wrong.append(f"not well again within {RECOVERS_S:.0f} s")
    return wrong


def try_faults(folder: Path, proxy: str, *, seconds: float, faults: Sequence[Fault] = FAULTS) -> Run:
    """Run it behind one proxy, on a stage for each kind of clocks that the faults need."""
    run = Run(proxy)
    for own_clocks in sorted({fault.own_clocks for fault in faults}):
        place = folder / ("own-clocks" if own_clocks else "one-clock")
        place.mkdir()
        chosen = [fault for fault in faults if fault.own_clocks is own_clocks]
        with set_stage(place, proxy, own_clocks=own_clocks) as stage:
            _play(stage, run, seconds, chosen)
    return run


def _play(stage: Stage, run: Run, seconds: float, faults: Sequence[Fault]) -> None:
    """Try faults on a stage, and compare in the end what was charged with what callers hold."""
    callers = Callers([stage.front], stage.scene.buyers, each=2, verify=stage.front.authority)
    callers.start()
    time.sleep(CALM_S)
    try:
        judge_of_run = Judge(stage, callers, run, seconds)
        for fault in faults:
            judge_of_run.try_fault(fault)
    finally:
        callers.end()
    audit = Audit(stage.scene, callers.record)
    run.wrong += audit.check()
    run.given_back += len(audit.given_back)
    run.charged += sum(1 for credits in callers.record.whole.values() if credits)


def choose_faults(words: Sequence[str]) -> list[Fault]:
    """Return the faults whose name has one of the words; all without words. A failover, not undone, comes last."""
    chosen = [fault for fault in FAULTS if not words or any(word in fault.name for word in words)]
    return sorted(chosen, key=lambda fault: "fails over" in fault.name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print; 0 when nothing is wrong."""
    parser = argparse.ArgumentParser(prog="tests.deploy.fault_matrix")
    parser.add_argument("--proxy", choices=PROXIES, action="append", help="both by default")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each fault lasts at least")
    parser.add_argument("--fault", action="append", default=[], help="only faults whose name has this word")
    parser.add_argument("--keep", type=Path, help="an empty folder for the instances, whose logs stay there")
    given = parser.parse_args(arguments)
    runs = []
    for proxy in given.proxy or PROXIES:
        with tempfile.TemporaryDirectory() as folder:
            place = (given.keep or Path(folder)) / proxy
            place.mkdir(parents=True)
            runs.append(try_faults(place, proxy, seconds=given.seconds, faults=choose_faults(given.fault)))
    for run in runs:
        run.print()
    return int(any(run.wrong for run in runs))


if __name__ == "__main__":
    sys.exit(main())
