"""A second network, which only a cable joins to the first: no route leads out of it, and no name is known in it.

`python -m tests.rehearsal.walled_net serve …` is our own program in that network, as behind the wall of a company.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.deploy.proxies import find_program

OUTSIDE, INSIDE = "10.99.0.1", "10.99.0.2"  # the two ends of the cable
WALLED = "WALLED_NET"  # the variable with the id of a process in that network
LONGEST_S = 30


@contextmanager
def walled_net(folder: Path) -> Iterator[str]:
    """Make the network, for the processes that are started in it. Yields the id of the process that keeps it."""
    words = [find_program("unshare"), "--net", "--mount", "sh", "-c", "echo ready; exec sleep infinity"]
    keeper = subprocess.Popen(words, stdout=subprocess.PIPE)
    try:
        assert keeper.stdout is not None
        assert keeper.stdout.readline() == b"ready\n"
        process = str(keeper.pid)
        (folder / "few-hosts").write_text("127.0.0.1 localhost\n")
        run("ip", "link", "add", "outside", "type", "veth", "peer", "name", "inside", "netns", process)
        run("ip", "address", "add", f"{OUTSIDE}/30", "dev", "outside")
        run("ip", "link", "set", "outside", "up")
        run_inside(process, "ip", "link", "set", "lo", "up")
        run_inside(process, "ip", "address", "add", f"{INSIDE}/30", "dev", "inside")
        run_inside(process, "ip", "link", "set", "inside", "up")
        run_inside(process, "mount", "--bind", str(folder / "few-hosts"), "/etc/hosts")
        yield process
    finally:
        keeper.kill()
        keeper.wait()
        assert keeper.stdout is not None
        keeper.stdout.close()


def run(*words: str) -> None:
    """Run a program of the system. Raises CalledProcessError if it fails."""
    subprocess.run([find_program(words[0]), *words[1:]], check=True, timeout=LONGEST_S)


def run_inside(process: str, *words: str) -> None:
    """Run a program of the system in the network of a process."""
    run(*enter(process), find_program(words[0]), *words[1:])


def enter(process: str) -> list[str]:
    """Return the words before those of a program that is to run in the network of a process."""
    return [find_program("nsenter"), "--target", process, "--net", "--mount"]


if __name__ == "__main__":
    entered = [*enter(os.environ.pop(WALLED)), sys.executable, "-m", "toolserver", *sys.argv[1:]]
    os.execv(entered[0], entered)
