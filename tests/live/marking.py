"""`python -m tests.live.marking VERB …`: toolserver, which notes each delivery it marks, and each commit.

The file of MARKS gets a line for each: `mark LANE CALL AT` when an answer was sent, and `commit LANE BEGAN ENDED CALL…`
with the marks that it carried; what failed as a whole is none. Times are those of the machine's monotonic clock, in
seconds. A line outlives a kill.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from toolserver.cli.main import main
from toolserver.sql.group_commit import Lane, PendingOperation

MODULE = "tests.live.marking"
AT_HAND = 1  # the commit that a thread was just given begins after a mark, and without it


class Commit(NamedTuple):
    """A group of a lane, and the calls whose deliveries it marked."""

    lane: str
    began: float
    ended: float
    calls: frozenset[str]


class Mark(NamedTuple):
    """When the mark of a call was asked for, and of which lane."""

    lane: str
    at: float


class Marks(NamedTuple):
    """All marks, by call, and all commits."""

    asked: dict[str, Mark]
    commits: list[Commit]

    def has_missed(self, call: str) -> bool:
        """Whether more commits than the one at hand went without a call's mark, after it was asked for."""
        mark = self.asked.get(call)
        if mark is None:
            return False
        later = [each for each in self.commits if each.lane == mark.lane and each.began > mark.at]
        first = next((number for number, each in enumerate(later) if call in each.calls), len(later))
        return first > AT_HAND

    def measure_longest(self) -> float:
        """The seconds of the longest commit."""
        return max((each.ended - each.began for each in self.commits), default=0.0)


def read_marks(file: Path) -> Marks:
    """What services have noted in a file."""
    asked, commits = dict[str, Mark](), list[Commit]()
    for kind, lane, *words in map(str.split, file.read_text().splitlines()):
        if kind == "mark":
            asked.setdefault(words[0], Mark(lane, float(words[1])))  # it is asked for again after a failure
        else:
            commits.append(Commit(lane, float(words[0]), float(words[1]), frozenset(words[2:])))
    return Marks(asked, commits)


def note_marks(file: str) -> None:
    """Let each lane of this process note its marks and commits."""
    noted, names = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), dict[int, str]()
    ask, prepare = Lane.ask, Lane.__init__

    def note(*words: object) -> None:
        os.write(noted, (" ".join(map(str, words)) + "\n").encode())

    def ask_noted(lane: Lane, run: Any, argument: Any, *, rides: bool = False, room: str = "") -> Any:
        if rides:
            note("mark", names[id(lane)], argument, time.monotonic())
        return ask(lane, run, argument, rides=rides, room=room)

    def prepare_noted(lane: Lane, name: str, serve: Callable[[list[PendingOperation]], list[Any]], finish: Any) -> None:
        own = names[id(lane)] = f"{os.getpid()}:{name.replace(' ', '-')}"  # several processes may note in a file

        def serve_noted(group: list[PendingOperation]) -> list[Any]:
            began = time.monotonic()
            outcomes = serve(group)
            done = [one for one, outcome in zip(group, outcomes, strict=True) if not isinstance(outcome, Exception)]
            if done:
                calls = [one.argument for one in done if isinstance(one.argument, str)]
                note("commit", own, began, time.monotonic(), *calls)
            return outcomes

        prepare(lane, name, serve_noted, finish)

    Lane.ask, Lane.__init__ = ask_noted, prepare_noted  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    note_marks(os.environ["MARKS"])
    main()
