"""Check that the file behind an open database is still the one that was opened, and that there is room to write.

SQLite continues to write to a file that was deleted or replaced, and the data it acknowledges is then lost. So the file
is checked before every group of operations, which takes a few microseconds.
"""

import os
from pathlib import Path

from toolserver.sql.errors import StorageFailed

MAGIC = b"SQLite format 3\0"
_OWNER = slice(60, 72)  # user_version, which identifies one file, the vacuum counter, and application_id

_UNNAMED = bytes(4)


class FileGuard:
    """Watches one file. Keeps a descriptor open, as closing one would drop the locks that SQLite holds in this process.

    `least_free` is the number of bytes that must be free on the disk for a write.
    """

    def __init__(self, path: Path, *, least_free: int = 0) -> None:
        self._path, self._least_free = path, least_free
        self._file = os.open(path, os.O_RDONLY)
        opened = os.fstat(self._file)
        self._identity = opened.st_dev, opened.st_ino
        self._owner = self._read_owner()

    def close(self) -> None:
        """Close the descriptor. Call this only after SQLite has closed the file."""
        os.close(self._file)

    def check_file(self) -> None:
        """Raise StorageFailed if the file was deleted, replaced or overwritten."""
        try:
            found = os.stat(self._path)
        except OSError:
            raise StorageFailed(
                f"{self._path} is gone: put it back, or stop the service and restore a backup"
            ) from None
        if (found.st_dev, found.st_ino) != self._identity or not self._is_ours():
            raise StorageFailed(f"{self._path} is not the file that was opened: stop the service and restore a backup")

    def check_room(self) -> None:
        """Raise StorageFailed if the file cannot be written, or the disk is nearly full."""
        if not os.access(self._path, os.W_OK):
            raise StorageFailed(f"{self._path} cannot be written: it or its disk is read-only")
        if (free := free_bytes(self._path)) < self._least_free:
            raise StorageFailed(f"the disk of {self._path} is full: {free} bytes are free")

    def _is_ours(self) -> bool:
        """Return True if the file has its number, which another process may have kept off the disk during opening."""
        found = self._read_owner()
        if found is not None and self._owner is not None and self._owner.startswith(_UNNAMED):
            self._owner = found
        return found == self._owner

    def _read_owner(self) -> bytes | None:
        head = os.pread(self._file, 100, 0)
        return head[_OWNER] if head.startswith(MAGIC) else None


def free_bytes(path: Path) -> int:
    """Return the number of bytes that an ordinary user can still write to the disk of a path."""
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize
