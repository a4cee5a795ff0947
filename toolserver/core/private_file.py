"""Writes small files that only their owner can read, atomically and flushed to disk before the call returns."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_private(path: Path, text: str, *, replacing: bool = True) -> None:
    """Write a text atomically, and create its folder. Raise FileExistsError if it exists and must not be replaced."""
    write_private_bytes(path, text.encode(), replacing=replacing)


def write_private_bytes(path: Path, content: bytes, *, replacing: bool = True) -> None:
    """Write a file atomically, and create its folder. Raise FileExistsError if it exists and must not be replaced."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if replacing:
            draft.replace(path)
        else:
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(path.parent)


def ensure_random_file(path: Path, size: int) -> bytes:
    """Return the content of a key file, which is made of `size` random bytes if it is missing.

    If several processes start together, one of them makes it. Raise OSError if it cannot be made or read.
    """
    if not path.exists():
        try:
            write_private_bytes(path, secrets.token_bytes(size), replacing=False)
        except FileExistsError:
            pass
    return path.read_bytes()


def sync_folder(path: Path) -> None:
    """Flush a folder or file to disk. Before that, a crash may lose a new name or new bytes."""
    if os.name == "nt":  # Windows does not open folders
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def hold_folder(path: Path) -> Iterator[None]:
    """Lock a folder while the block runs; other processes wait. The lock ends with the process."""
    if os.name == "nt":  # no fcntl on Windows: only one process at a time
        yield
        return
    import fcntl

    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
