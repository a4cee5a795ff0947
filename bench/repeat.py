"""`python -m bench --runs 3`, or `python -m bench.repeat`: run the bench several times, and say whether it repeats.

A bench that gives another result tomorrow judges nothing. Each value of each run is compared with the median of the
runs. A row of which one is further away than 6 % is run again, as often, and the later runs count. The exit code is 1
where a row is still further away, was not judged in a run, or was not measured.
"""

import statistics
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from bench.judge import Bar

WITHIN = 0.06
Key = tuple[int, str, int]
Run = Callable[[Collection[int]], Sequence[Bar]]


@dataclass(frozen=True)
class Repeated:
    """One row over the runs. `first` is the largest distance of the runs before it was run again."""

    bars: Sequence[Bar]
    runs: int
    first: float | None = None

    @property
    def median(self) -> float:
        return statistics.median(bar.value for bar in self.bars)

    @property
    def distance(self) -> float:
        """The largest distance of a run from the median of the runs, as a share of it."""
        most = max(abs(bar.value - self.median) for bar in self.bars)
        if not most:
            return 0.0
        return most / abs(self.median) if self.median else float("inf")

    @property
    def is_complete(self) -> bool:
        return len(self.bars) == self.runs

    @property
    def is_judged(self) -> bool:
        return self.is_complete and all(bar.is_judged for bar in self.bars)

    @property
    def holds(self) -> bool:
        return self.is_complete and self.distance <= WITHIN

    @property
    def verdict(self) -> str:
        """What the runs say about the bar together: nothing, where one of them was not judged."""
        if not self.is_judged:
            return "not judged"
        missed = sum(bar.is_missed for bar in self.bars)
        return {0: "reached", self.runs: "missed"}.get(missed, f"missed in {missed} of {self.runs}")


def key_bars(bars: Sequence[Bar]) -> dict[Key, Bar]:
    """Return bars by row, server and place in the row: some names say what was found, and differ between runs."""
    found: dict[Key, Bar] = {}
    for bar in bars:
        server, place = bar.server or "", 0
        while (bar.row, server, place) in found:
            place += 1
        found[bar.row, server, place] = bar
    return found


def gather(made: Sequence[Sequence[Bar]], before: Mapping[Key, Repeated] | None = None) -> dict[Key, Repeated]:
    """Return each row of these runs, over all of them."""
    keyed = [key_bars(bars) for bars in made]
    found = {}
    for key in dict.fromkeys(key for run in keyed for key in run):
        first = before[key].distance if before and key in before else None
        found[key] = Repeated([run[key] for run in keyed if key in run], len(made), first)
    return found


def repeat(run: Run, rows: Collection[int], runs: int) -> dict[Key, Repeated]:
    """Run all rows this often, and those that do not hold again as often."""
    first = gather([run(rows) for _ in range(runs)])
    loose = {key for key, found in first.items() if not found.holds}
    if not loose:
        return first
    again = sorted({row for row, *_ in loose})
    later = gather([run(again) for _ in range(runs)], first)
    return first | {key: found for key, found in later.items() if key in loose}


def show_runs(found: Mapping[Key, Repeated], rows: Collection[int]) -> bool:
    """Print the rows, the least steady first. Return whether all rows were measured, judged, and hold."""
    print(f"\n{'row':>3}  {'median':>10}  {'distance':>8}  {'runs':32}  what")
    for key, one in sorted(found.items(), key=lambda item: -item[1].distance):
        bar = one.bars[0]
        values = ", ".join(f"{each.value:,.3g}" for each in one.bars)
        where = f", {bar.server}" if bar.server else ""
        unit = f" {bar.unit}" if bar.unit else ""
        print(
            f"{key[0]:3}  {one.median:10,.3g}  {one.distance:8.1%}  {values:32}  {bar.what}{where}{unit}: {_say(one)}"
        )
    for row in sorted(set(rows) - {key[0] for key in found}):
        print(f"{row:3}  not measured in any run")
    held = sum(one.holds for one in found.values())
    print(f"\n{held} of {len(found)} are within {WITHIN:.0%} of their median in every run")
    return set(rows) == {key[0] for key in found} and all(one.holds and one.is_judged for one in found.values())


def _say(one: Repeated) -> str:
    said = [one.verdict]
    if one.first is not None:
        said.append(f"measured again, {one.first:.1%} before")
    if not one.is_complete:
        said.append(f"measured in {len(one.bars)} of {one.runs} runs")
    elif not one.holds:
        said.append(f"NOT within {WITHIN:.0%}")
    return ", ".join(said)


if __name__ == "__main__":
    from bench.__main__ import main

    given = sys.argv[1:]
    sys.exit(main(given if any(word.startswith("--runs") for word in given) else ["--runs", "3", *given]))
