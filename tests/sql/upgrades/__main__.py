"""`python -m tests.sql.upgrades --kills 200`: kills upgrades of old ledgers, and checks what the next start finds.

The rows of `version_21.json` and `version_28.json` were written by the software of commits d5b8471 and f47ee7d3: its
demo sold to two buyers, one of whom paid on the simulated chain, gave an allowance, signed in to a host, and subscribed
to two webhooks, of which one refuses what it is sent; then the log took the hour. The software of 709ce2e3 upgraded
the later ledger and noted the names of 42 removed calls: `version_31.json`. Their tables are made by the migrations of
their time. The first version has the rows of those tables that it knew.

An upgrade runs in a process of its own, which dies before one of its statements, or after a time. Some upgrades die
again. Then a new process opens the ledger as a start does, checks every rule and each row's seal, and sells a call.
"""

import argparse
import json
import sys

from tests.sql.upgrades.matrix import ENGINES, VERSIONS, run_matrix


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="in all, over engines and versions")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=ENGINES, help="only this engine")
    words = parser.parse_args()
    tally = run_matrix(words.kills, words.seed, (words.engine,) if words.engine else ENGINES, VERSIONS)
    print(json.dumps(tally, indent=2))
    return 1 if tally["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
