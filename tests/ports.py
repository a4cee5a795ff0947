"""Reserve ports that must be known before a program binds them: a proxy's, or that of a service that comes back.

They are below those that the system hands out for port 0 and for outgoing connections, and each is locked until this
process ends: no other test process gets it, also while nobody listens on it. A program that can say which port it has
is given 0 instead.
"""

import fcntl
import os
import random
import socket
import tempfile
from contextlib import ExitStack
from pathlib import Path

RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
LEAST, COUNT = 1024, 12_000


def reserve_port(among: range | None = None) -> int:
    """Return a port that nobody listens on and that no other test process is given."""
    return reserve_ports(1, among)


def reserve_ports(count: int, among: range | None = None) -> int:
    """Return the first of so many such ports in a row."""
    ports = find_ports() if among is None else among
    begins = range(ports.start, ports.stop - count + 1)
    first = random.SystemRandom().randrange(len(begins))  # not that of another process, nor that of the last run
    for begin in (*begins[first:], *begins[:first]):
        with ExitStack() as locks:
            if all(lock(port, locks) and is_free(port) for port in range(begin, begin + count)):
                locks.pop_all()  # until the end of the process: whoever connects late must meet nobody else
                return begin
    raise AssertionError(f"no {count} ports in a row are free")


def find_ports(range_of_system: Path = RANGE) -> range:
    """Return the ports below those that the system hands out by itself."""
    lowest = int(range_of_system.read_text().split()[0]) if range_of_system.exists() else 32_768
    assert lowest > LEAST + 1000, f"the system hands out ports from {lowest} on, and leaves none to reserve"
    return range(max(LEAST, lowest - COUNT), lowest)


def lock(port: int, locks: ExitStack) -> bool:
    """Whether the lock of a port is ours now. It is given back when `locks` is closed."""
    folder = Path(tempfile.gettempdir()) / f"toolserver-test-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    file = os.open(folder / str(port), os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return False
    locks.callback(os.close, file)
    return True


def is_free(port: int) -> bool:
    """Whether no program listens on the port; connections of one that is gone do not count."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
