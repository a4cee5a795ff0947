"""A small disk of our own, and what may happen to it while a service runs on it."""

import errno
import functools
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

from toolserver.money.ledger.store import FILE
from toolserver.sql.migrate import migrate
from toolserver.sql.sqlite import name_file

SIZE_MB = 48


@functools.cache
def can_mount() -> bool:
    """Whether this process may mount a file system."""
    if shutil.which("unshare") is None:
        return False
    return (
        os.geteuid() == 0
        and subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0
    )


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system in memory, mounted on a folder that is made; the folder alone where nothing can be mounted."""
    folder.mkdir(mode=0o700)
    if not can_mount():
        yield folder
        return
    _mount("-t", "tmpfs", "-o", f"size={SIZE_MB}m,mode=0700", "tmpfs", str(folder))
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True, capture_output=True)


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """Nothing more can be written."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (65536, 1):
            try:
                while file.write(bytes(size)):
                    pass
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
    yield
    filler.unlink()


@contextmanager
def read_only(disk: Path) -> Iterator[None]:
    """The folder is mounted once more, for reading only."""
    _mount("--bind", str(disk), str(disk))
    _mount("-o", "remount,bind,ro", str(disk))
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


@contextmanager
def locked(disk: Path) -> Iterator[None]:
    """Another process writes and does not end."""
    with closing(sqlite3.connect(disk / FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


@contextmanager
def gone(disk: Path) -> Iterator[None]:
    """The ledger is moved away, and back."""
    (disk / FILE).rename(disk / "aside")
    yield
    (disk / "aside").rename(disk / FILE)


@contextmanager
def replaced(disk: Path) -> Iterator[None]:
    """Another ledger stands in its place."""
    with closing(sqlite3.connect(disk / "other", isolation_level=None)) as other:
        migrate(other)
        name_file(other)
    (disk / "aside").hardlink_to(disk / FILE)
    (disk / "other").replace(disk / FILE)
    yield
    (disk / "aside").replace(disk / FILE)


@contextmanager
def slow(disk: Path) -> Iterator[None]:
    """Nothing happens to the disk: the program itself is a slow one, see slow_disk.py."""
    yield


Fault = Callable[[Path], AbstractContextManager[None]]
OF_A_MOUNT: dict[str, Fault] = {"full": full, "read-only": read_only}
FAULTS: dict[str, Fault] = {
    **(OF_A_MOUNT if can_mount() else {}),
    "locked": locked,
    "gone": gone,
    "replaced": replaced,
    "slow": slow,
}
