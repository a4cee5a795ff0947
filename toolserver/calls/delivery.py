"""When an answer has left: only then is its call delivered, and only then may the charge stay for good."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_when_sent: ContextVar[list[Callable[[], None]] | None] = ContextVar("when_sent", default=None)


def when_sent(note: Callable[[], None]) -> None:
    """Call `note` when the answer that is being made has been sent: at once, where no `sending()` block says when."""
    notes = _when_sent.get()
    if notes is None:
        note()
    else:
        notes.append(note)


@contextmanager
def sending() -> Iterator[None]:
    """A block in which an answer is made and sent. After it, unless it raises, what `when_sent` was given is called."""
    notes: list[Callable[[], None]] = []
    before = _when_sent.set(notes)
    try:
        yield
    finally:
        _when_sent.reset(before)
    for note in notes:
        note()
