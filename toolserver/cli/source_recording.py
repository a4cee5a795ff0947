"""Record the exchanges with every source, for `doctor --live --record DIR`, as plain files without secrets."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from toolserver import __version__
from toolserver.core.private_file import write_private_bytes
from toolserver.core.recorded_exchange import FORMAT, SUMMARY, RecordedExchange, write_exchange
from toolserver.errors import ToolserverError
from toolserver.upstream.secret_removal import SecretRemover
from toolserver.upstream.source import Keys, Request, Source


class FolderInUse(ToolserverError):
    """The folder of a recording is not empty: two recordings are never mixed."""


class Recorded(NamedTuple):
    """An exchange without its secrets, and the request of the source's plan that it belongs to."""

    request: Request
    exchange: RecordedExchange


_COLLECTED: ContextVar[list[Recorded] | None] = ContextVar("exchanges of the probe that runs", default=None)


class SourceRecording:
    """Writes each exchange to a folder as soon as it has ended. Raises FolderInUse if the folder is not empty."""

    def __init__(self, folder: Path, keys: Keys) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if any(folder.iterdir()):
            raise FolderInUse(f"{folder} is not empty: a recording needs a new folder")
        folder.chmod(0o700)
        self.folder = folder
        self._secrets = SecretRemover(keys)
        self._numbers: Counter[str] = Counter()

    @property
    def count(self) -> int:
        """The number of recorded exchanges."""
        return self._numbers.total()

    @contextmanager
    def collect(self) -> Iterator[list[Recorded]]:
        """Yield a list of the exchanges that the block makes, oldest first."""
        exchanges: list[Recorded] = []
        token = _COLLECTED.set(exchanges)
        try:
            yield exchanges
        finally:
            _COLLECTED.reset(token)

    def record(self, source: Source[Any, Any], request: Request, exchange: RecordedExchange) -> None:
        """Write an exchange to the folder, without its secrets."""
        clean = self._secrets.clean(exchange)
        self._numbers[source.name] += 1
        write_exchange(self.folder, self._numbers[source.name], clean)
        collected = _COLLECTED.get()
        if collected is not None:
            collected.append(Recorded(request, clean))

    def finish(self, recorded_at: float, **findings: Any) -> None:
        """Write the summary: the time and the findings. `recorded_at` is in Unix seconds."""
        summary: dict[str, Any] = {"format": FORMAT, "version": __version__}
        summary |= {"recorded_at": recorded_at, "exchanges": self.count, **findings}
        text = self._secrets.clean_text(msgspec.json.format(msgspec.json.encode(summary), indent=2).decode())
        write_private_bytes(self.folder / SUMMARY, text.encode())
