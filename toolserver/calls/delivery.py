"""Tracks when an answer has been sent. Only then is its call delivered, and only then does the charge become final."""

from collections.abc import Callable
from contextvars import ContextVar, Token

_when_sent: ContextVar[list[Callable[[], None]] | None] = ContextVar("when_sent", default=None)


def when_sent(note: Callable[[], None]) -> None:
    """Call `note` when the current answer has been sent, or at once outside a `sending()` block."""
    notes = _when_sent.get()
    if notes is None:
        note()
    else:
        notes.append(note)


class sending:  # written like contextlib.suppress, and used like it
    """A block in which one answer is made and sent. When it ends without an exception, it calls what `when_sent` got.

    It is a class because every request enters it, and a generator takes longer to create and to leave.
    """

    __slots__ = ("_before", "_notes")

    _before: Token[list[Callable[[], None]] | None]

    def __init__(self) -> None:
        self._notes: list[Callable[[], None]] = []

    def __enter__(self) -> None:
        self._before = _when_sent.set(self._notes)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        _when_sent.reset(self._before)
        if kind is None:
            for note in self._notes:
                note()
