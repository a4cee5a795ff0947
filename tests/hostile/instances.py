"""`python -m tests.hostile.instances [--kills N] [--seconds S]`: faults under three instances while all of them serve.

Real servers of both kinds on one PostgreSQL and one Redis, which they reach through small proxies. Free and paid calls,
over REST and MCP, with and without keys, and webhooks go on all the time. One fault comes after the other: instances
are killed N times, PostgreSQL and Redis are restarted, stopped, emptied and hung, their connections are cut and slowed,
for S seconds each. The table says what clients saw, and how long it took until all was well again, by itself. In the
end every answer that was paid for is charged, once, and nothing else is.
"""

import argparse
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.hostile.instances_audit import Audit
from tests.hostile.instances_load import CUT, KINDS, Call, Callers
from tests.hostile.instances_scene import Scene, set_scene
from tests.tcp_proxy import TcpProxy

CALM_S, RECOVERS_S, WELL_S = 1.0, 30.0, 1.0
SLOW_S, TOO_SLOW_S = 0.02, 0.3  # each way; the second is more than anybody waits for
REFUSALS = frozenset(f"{what} {code}" for what, code in [
    ("402", "billing_unavailable"), ("error", "billing_unavailable"),
    ("503", "storage_unavailable"), ("error", "storage_unavailable"),
])  # fmt: skip


def _nothing(scene: Scene) -> None:
    """What needs no end, or no beginning."""


@dataclass(frozen=True)
class Fault:
    """How it begins and ends. `refuses` says that paid calls may be refused while it lasts, `must_refuse` that it lasts
    until one was."""

    name: str
    begin: Callable[[Scene], None]
    end: Callable[[Scene], None] = _nothing
    refuses: bool = False
    must_refuse: bool = False


def _crash_postgres(scene: Scene) -> None:
    scene.postgres.stop(signal.SIGQUIT)


def _cut_for_a_while(proxy: TcpProxy) -> None:
    for _ in range(10):
        proxy.cut_all()
        time.sleep(0.1)


def _empty_redis(scene: Scene) -> None:
    scene.redis.command("flushall")


def _slow(*, postgres: float = 0.0, redis: float = 0.0) -> Callable[[Scene], None]:
    def change(scene: Scene) -> None:
        scene.to_postgres.delay_s, scene.to_redis.delay_s = postgres, redis

    return change


def _hang(proxy: str) -> tuple[Callable[[Scene], None], Callable[[Scene], None]]:
    """How the way to a server begins and ends to hang."""
    return lambda s: getattr(s, proxy).hangs.set(), lambda s: getattr(s, proxy).hangs.clear()


FAULTS = (
    Fault("nothing", _nothing),
    Fault("PostgreSQL is restarted", lambda s: s.postgres.stop(), lambda s: s.postgres.start(), refuses=True),
    Fault("PostgreSQL crashes", _crash_postgres, lambda s: s.postgres.start(), refuses=True),
    Fault(
        "PostgreSQL hangs", lambda s: s.postgres.hang(), lambda s: s.postgres.go_on(), refuses=True, must_refuse=True
    ),
    Fault("the way to PostgreSQL hangs", *_hang("to_postgres"), refuses=True, must_refuse=True),
    Fault("connections to PostgreSQL are cut", lambda s: _cut_for_a_while(s.to_postgres), refuses=True),
    Fault(f"PostgreSQL is {SLOW_S * 2000:.0f} ms away", _slow(postgres=SLOW_S), _slow(), refuses=True),
    Fault(f"PostgreSQL is {TOO_SLOW_S * 2000:.0f} ms away", _slow(postgres=TOO_SLOW_S), _slow(), refuses=True),
    Fault("Redis is emptied", _empty_redis),
    Fault("Redis is stopped", lambda s: s.redis.stop(), lambda s: s.redis.start()),
    Fault("Redis hangs", lambda s: s.redis.hang(), lambda s: s.redis.go_on()),
    Fault("the way to Redis hangs", *_hang("to_redis")),
    Fault("connections to Redis are cut", lambda s: _cut_for_a_while(s.to_redis)),
    Fault(f"Redis is {SLOW_S * 2000:.0f} ms away", _slow(redis=SLOW_S), _slow()),
    Fault(f"Redis is {TOO_SLOW_S * 2000:.0f} ms away", _slow(redis=TOO_SLOW_S), _slow()),
)


@dataclass
class Row:
    """What came of a fault, each time that it was there."""

    name: str
    times: int = 0
    calls: list[Call] = field(default_factory=list)
    recovered_s: list[float] = field(default_factory=list)

    def cells(self) -> list[str]:
        """A row of the table."""
        told = [_count(Counter(call.said for call in self.calls if call.kind == kind)) for kind in KINDS]
        slowest = [
            max((call.took_s for call in self.calls if call.kind.startswith(kind)), default=0)
            for kind in ("free", "paid")
        ]
        return [self.name, str(self.times), *told, *(f"{each:.1f}" for each in slowest), f"{max(self.recovered_s):.1f}"]


def _count(said: Counter[str]) -> str:
    """The answers, and each thing that was none, with how often it was said."""
    others = (f"{count} {what}" for what, count in sorted(said.items()) if what != "200")
    return ", ".join([str(said["200"]), *others])


@dataclass
class Run:
    """A whole run."""

    rows: dict[str, Row] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    answers: int = 0
    given_back: int = 0
    tracebacks: list[str] = field(default_factory=list)

    def print(self) -> None:
        """The table, and what is wrong."""
        print("| fault | times | " + " | ".join(KINDS) + " | slowest free s | slowest paid s | well again after s |")
        print("|" + "---|" * (len(KINDS) + 5))
        for row in self.rows.values():
            print("| " + " | ".join(row.cells()) + " |")
        print(f"{self.answers} answers were charged for; {self.given_back} arrived and were given back all the same")
        print("\n".join(self.tracebacks))
        print("\n".join(self.wrong) or "every answer is charged once, and nothing else is", flush=True)


class Judge:
    """Puts faults into a scene, one after the other, and looks at what clients were told."""

    def __init__(self, scene: Scene, callers: Callers, *, seconds: float, recovers_s: float, run: Run) -> None:
        self._scene, self._callers, self._seconds, self._run = scene, callers, seconds, run
        self._recovers_s = recovers_s

    def try_fault(self, fault: Fault) -> None:
        """Let a fault last for its time, and wait until all is well again."""
        self._scene.fire()
        began = time.monotonic()
        fault.begin(self._scene)
        time.sleep(max(0.0, began + self._seconds - time.monotonic()))
        while fault.must_refuse and not self._was_refused(began):
            if time.monotonic() > began + self._seconds + self._recovers_s:
                self._run.wrong.append(f"{fault.name}: nobody was refused, so it was not there")
                break
            time.sleep(0.05)
        ended = time.monotonic()
        fault.end(self._scene)
        row = self._run.rows.setdefault(fault.name, Row(fault.name))
        row.times += 1
        row.recovered_s.append(self._wait_until_well(fault, ended))
        calls = self._callers.record.between(began, time.monotonic())
        row.calls += calls
        print(
            f"{row.times} times {fault.name}: {len(calls)} calls, well again {row.recovered_s[-1]:.1f} s later",
            flush=True,
        )
        self._run.wrong += [f"{fault.name}: {text}" for text in self.judge(fault, calls)]

    def kill(self, rng: random.Random) -> None:
        """Kill an instance at a random moment and start it again at once."""
        instance = rng.choice(self._scene.instances)
        pause_s = rng.uniform(0.0, 0.3)

        def begin(scene: Scene) -> None:
            time.sleep(pause_s)
            instance.kill()

        self.try_fault(Fault("an instance is killed", begin, lambda scene: instance.start()))

    def _was_refused(self, since: float) -> bool:
        """Whether a paid call was since then."""
        return any(call.said in REFUSALS for call in self._callers.record.between(since, time.monotonic()))

    def _wait_until_well(self, fault: Fault, ended: float) -> float:
        """Seconds until the first second in which every instance was ready and answered every call."""
        since = ended
        while (now := time.monotonic()) < ended + self._recovers_s:
            bad = [call for call in self._callers.record.between(since, now) if not call.is_good]
            if bad:
                since = max(call.began + call.took_s for call in bad) + 1e-6
            elif not self._scene.is_well():
                since = time.monotonic()
            elif now - since >= WELL_S and self._all_were_answered(since):
                return since - ended
            time.sleep(0.05)
        self._run.wrong.append(f"{fault.name}: not well again within {self._recovers_s:.0f} s")
        return self._recovers_s

    def _all_were_answered(self, since: float) -> bool:
        """Whether calls of each kind to each instance were begun and answered since then."""
        calls = self._callers.record.between(since, time.monotonic())
        found = {(call.kind, call.at) for call in calls if call.is_good and call.began >= since}
        return len(found) == len(KINDS) * len(self._scene.instances)

    def judge(self, fault: Fault, calls: Sequence[Call]) -> list[str]:
        """What clients must not be told, and how often they were."""
        bad = [call for call in calls if not call.is_good and not self._is_excused(fault, call)]
        counted = Counter(f"{call.kind} was told {call.said}" for call in bad)
        return [f"{count} times {what}" for what, count in counted.items()]

    def _is_excused(self, fault: Fault, call: Call) -> bool:
        if call.said in CUT:
            return self._scene.instances[call.at].was_gone(call)
        return fault.refuses and call.kind.startswith("paid") and call.said in REFUSALS


def try_faults(
    folder: Path,
    *,
    kills: int,
    seconds: float,
    faults: Sequence[Fault] = FAULTS,
    seed: int = 1,
    patience_s: float | None = None,
) -> Run:
    """Run it. Each fault lasts so many seconds; `kills` times one of the instances is killed.

    On a machine that others use too, servers need some seconds of patience with a PostgreSQL which is well, and twice
    the time to be well again.
    """
    recovers_s = RECOVERS_S if patience_s is None else 2 * RECOVERS_S
    run, rng = Run(), random.Random(seed)
    with set_scene(folder, patience_s=patience_s) as scene:
        callers = Callers(scene.instances, scene.buyers, seed=seed)
        callers.start()
        time.sleep(CALM_S)  # later each fault is followed by as much in which all is well
        try:
            judge = Judge(scene, callers, seconds=seconds, recovers_s=recovers_s, run=run)
            for step in (*(partial(judge.try_fault, fault) for fault in faults), *([partial(judge.kill, rng)] * kills)):
                step()
                if callers.record.has_spent_all():
                    run.wrong.append("a buyer has nothing left to pay with, so the rest was left out: sell more")
                    break
        finally:
            callers.end()
        audit = Audit(scene, callers.record)
        run.wrong += audit.check()
        run.given_back = len(audit.given_back)
        run.answers = sum(1 for credits in callers.record.whole.values() if credits)
        run.tracebacks = [line for each in scene.instances for line in each.said if "Traceback" in line][:20]
    return run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print; 0 when nothing is wrong."""
    parser = argparse.ArgumentParser(prog="tests.hostile.instances")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="an empty folder for the instances, whose logs stay there")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        run = try_faults(given.keep or Path(folder), kills=given.kills, seconds=given.seconds, seed=given.seed)
        run.print()
    return bool(run.wrong)


if __name__ == "__main__":
    sys.exit(main())
