"""`python -m tests.month`: walk an operator's month on the demo, printing each command and what it shows.

--twice   run every command of the operator a second time
--killed  kill the service, and the command that collects the money, in the middle
--into    folder to work in, which stays [a temporary one]
"""

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.month.walk import Walk, check

WITHIN_S = 1800


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--twice", action="store_true")
    parser.add_argument("--killed", action="store_true")
    parser.add_argument("--into", type=Path)
    flags = parser.parse_args()
    with TemporaryDirectory() as folder:
        walk = Walk(flags.into or Path(folder), twice=flags.twice, killed=flags.killed)
        begun = time.monotonic()
        walk.run(within_s=WITHIN_S, show=True)
        check(walk)
        print(f"\nthe sums are as they must be, after {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
