"""Compare by pairs: the sides of a comparison are measured one right after the other, so that both see the same load.

A side is measured for a short time, a "half". Each round measures the halves of every comparison, and every second
time in the opposite order, so that load that rises or falls favours nobody. Each pair of halves gives one figure. The
result of a comparison is the median of these figures. Its spread is the width of the interval that holds the true
median 19 times of 20, as a share of the median: the verdict can be off by so much, and more pairs narrow it.
"""

import inspect
import math
import statistics
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

MOST_SPREAD = 0.15
AGAIN = 2
FEWEST = 6  # with fewer figures, no interval holds the median 19 times of 20
PIECE_US = 2300.0

Sample = Mapping[str, float]
Samples = dict[str, list[Sample]]


@dataclass(frozen=True)
class Side:
    """One side of a comparison. `measure` does one half and returns its figures by name."""

    name: str
    measure: Callable[[], Sample | Awaitable[Sample]]


@dataclass(frozen=True)
class Spread:
    """The median of the figures of all pairs, and the interval around it."""

    median: float
    low: float
    high: float
    pairs: int
    again: int = 0

    @property
    def share(self) -> float:
        """The width of the interval as a share of the median."""
        return spread_of(self.median, self.low, self.high)


def spread_of(median: float, low: float, high: float) -> float:
    """Return the width of an interval as a share of the median."""
    if low == high:
        return 0.0
    return (high - low) / abs(median) if median else math.inf


def summarize(figures: Sequence[float], again: int = 0) -> Spread:
    """Return the median and the interval that holds the true median 19 times of 20, whatever the distribution.

    The interval is from the kth smallest to the kth largest figure. With few figures it is from the least to the most.
    """
    ordered, count = sorted(figures), len(figures)
    rank = max(0, math.floor((count - 1.96 * math.sqrt(count)) / 2)) if count >= FEWEST else 0
    return Spread(statistics.median(ordered), ordered[rank], ordered[-1 - rank], count, again)


@dataclass
class Pair:
    """A comparison: its sides, and how the figure of one round is formed of their samples.

    It is measured `often` times in each round. Without `is_judged` it is only shown, and never measured again.
    """

    name: str
    sides: Sequence[Side]
    figure: Callable[..., float]
    is_judged: bool = True
    often: int = 1
    figures: list[float] = field(default_factory=list)
    again: int = 0

    async def measure(self, samples: Samples) -> None:
        """Measure each side once, every second time in the opposite order, and keep the figure."""
        found: dict[int, Sample] = {}
        order = range(len(self.sides))
        for number in reversed(order) if len(self.figures) % 2 else order:
            made = self.sides[number].measure()
            found[number] = await made if inspect.isawaitable(made) else made
            samples[self.sides[number].name].append(found[number])
        self.figures.append(self.figure(*(found[number] for number in order)))

    def summarize(self) -> Spread:
        return summarize(self.figures, self.again)


async def measure_pairs(pairs: Sequence[Pair], count: int) -> Samples:
    """Measure each pair this often, in turn; as often again, at most twice, where it spreads. Return all samples.

    Pairs that are only shown are measured in half of the rounds.
    """
    samples: Samples = defaultdict(list)
    left = list(pairs)
    for turn in range(1 + AGAIN):
        for number in range(count):
            for pair in (each for each in left if each.is_judged or number % 2):
                for _ in range(pair.often):
                    await pair.measure(samples)
        left = [pair for pair in left if pair.is_judged and pair.summarize().share > MOST_SPREAD]
        if turn < AGAIN:
            for pair in left:
                pair.again += 1
        if not left:
            break
    return samples


def ratio_of(figure: str) -> Callable[[Sample, Sample], float]:
    """Return a function that divides a figure of the first side by that of the second."""
    return lambda first, second: first[figure] / second[figure]


def value_of(figure: str) -> Callable[[Sample], float]:
    """Return a function that takes a figure of the only side: an absolute one."""
    return lambda only: only[figure]


def reference_of(figure: str) -> Callable[[Sample, Sample], float]:
    """Return a function that restates a CPU time, measured beside a piece of work, for the reference machine."""
    return lambda piece, side: side[figure] * PIECE_US / piece["cpu_us"]


def do_piece() -> Sample:
    """Do a fixed piece of work. The reference machine needs `PIECE_US` of CPU time for it."""
    begun = time.thread_time()
    counts: dict[str, int] = {}
    for number in range(20_000):
        name = f"k{number % 100}"
        counts[name] = counts.get(name, 0) + len(name)
    return {"cpu_us": (time.thread_time() - begun) * 1e6}


PIECE = Side("a fixed piece of work", do_piece)
