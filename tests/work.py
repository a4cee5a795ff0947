"""Count the functions that a piece of work calls, Python's and those in C: a busy machine does not change that."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Work:
    """What was counted so far, on this thread and on those that were started meanwhile."""

    def __init__(self, left_out: tuple[str, ...] = ()) -> None:
        self._marks: list[None] = []  # to append is atomic: several threads count
        self._left_out = left_out

    @property
    def calls(self) -> int:
        return len(self._marks)

    def note(self, frame: Any, event: str, argument: Any) -> None:
        if event in ("call", "c_call") and not (self._left_out and frame.f_code.co_filename.startswith(self._left_out)):
            self._marks.append(None)


@contextmanager
def counted(*, left_out: tuple[str, ...] = ()) -> Iterator[Work]:
    """Count while the block runs, but for what the code in these files or folders calls and is called for."""
    work, before = Work(left_out), sys.getprofile()
    threading.setprofile(work.note)
    sys.setprofile(work.note)
    try:
        yield work
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
