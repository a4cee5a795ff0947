"""Measures the time that a source has for an exchange. The clock stops while the service itself makes it wait."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from toolserver.upstream.source_errors import SourceDown


class SendingTime:
    """A deadline that carries over from one attempt to the next and stops during pauses."""

    def __init__(self, seconds: float) -> None:
        self._seconds = self.left_s = seconds
        self._scope: anyio.CancelScope | None = None

    @property
    def is_mostly_over(self) -> bool:
        """True if more than half of the time has passed, which is too much for another attempt."""
        return self.left_s < self._seconds / 2

    @contextmanager
    def spend(self) -> Iterator[None]:
        """Let the time run while the block runs. Raise SourceDown (`timeout`) when it has run out."""
        try:
            with anyio.fail_after(self.left_s) as self._scope:
                try:
                    yield
                finally:
                    self.left_s = max(0.0, self._scope.deadline - anyio.current_time())
        except TimeoutError:
            raise SourceDown(f"no answer within {self._seconds:g} s", word="timeout") from None
        finally:
            self._scope = None

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Stop the time while the block waits for something that does not depend on the source."""
        scope = self._scope
        if scope is None:
            yield
            return
        left_s, scope.deadline = scope.deadline - anyio.current_time(), math.inf
        try:
            yield
        finally:
            scope.deadline = anyio.current_time() + left_s
