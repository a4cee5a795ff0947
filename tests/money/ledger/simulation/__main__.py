"""Many seeds: `python -m tests.money.ledger.simulation --seeds 10000 [--first N] [--mutant NAME] [--jobs N]`."""

import argparse
import os
import sys
import time
from collections import Counter
from functools import partial
from multiprocessing import get_context

from tests.money.ledger.simulation.mutants import MUTANTS, mutated
from tests.money.ledger.simulation.world import History, history

SHOWN = 10


def lived(mutant: str | None, seed: int) -> History:
    with mutated(mutant) as options:
        return history(seed, options)


def main() -> int:
    """0 when nothing is wrong; with a mutant, when it was caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.money.ledger.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many histories")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--mutant", choices=sorted(MUTANTS), help="with this fault built in")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    given = parser.parse_args()
    begun, total, kinds, bad = time.monotonic(), Counter[str](), Counter[str](), 0
    with get_context("fork").Pool(given.jobs) as pool:
        seeds = range(given.first, given.first + given.seeds)
        for found in pool.imap_unordered(partial(lived, given.mutant), seeds, chunksize=10):
            for name in ("calls", "answered", "charged", "crashes", "messages", "given_back"):
                total[name] += getattr(found, name)
            kinds.update(wrong.what for wrong in found.wrong)
            bad += bool(found.wrong)
            if found.wrong and bad <= SHOWN:
                print(f"seed {found.seed}: {found.wrong[0].what}: {found.wrong[0].detail}")
    print(
        f"{given.seeds} seeds in {time.monotonic() - begun:.0f} s: " + ", ".join(f"{v} {k}" for k, v in total.items())
    )
    print(f"{bad} histories with something wrong" + (f": {dict(kinds)}" if kinds else ""))
    return int(bad > 0) if given.mutant is None else int(bad == 0)


sys.exit(main())
