"""`python -m tests.hostile.later VERB …`: toolserver when this machine's clock is LATER_S seconds ahead."""

import os
import time

from toolserver.cli.main import main
from toolserver.clock import SystemClock


def read_time(clock: SystemClock) -> float:
    return time.time() + float(os.environ["LATER_S"])


if __name__ == "__main__":
    SystemClock.time = read_time  # type: ignore[method-assign]
    main()
