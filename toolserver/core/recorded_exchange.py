"""Writes and reads one exchange with an upstream, as the two files that `doctor --record` keeps of each request.

DIR/Kraken.ticker/01.json        the request, and the status and headers of the response
DIR/Kraken.ticker/01.body.json   the body, decoded from its transfer encoding and otherwise unchanged
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from toolserver.core.private_file import write_private_bytes
from toolserver.errors import ToolserverError

FORMAT = 1
MOST_FILE = 64 * 1024 * 1024  # bytes; the largest body of an upstream has less than half of it
SUMMARY = "recording.json"
REMOVED = "sim-removed"
"""Replaces a secret. Simulated upstreams accept it as a key, and a replay accepts any key in its place."""

_SUFFIXES = {"json": ".json", "xml": ".xml", "rss": ".xml", "csv": ".csv", "html": ".html", "yaml": ".yaml"}


class NoRecording(ToolserverError):
    """A folder contains no recording, or one that this version cannot read."""


@dataclass(slots=True)
class RecordedExchange:
    """A request and its response. `status` is None if there was no response; `failure` then says why.

    `url` is the upstream's, even if the request went to the simulated world. `method` is
    CONNECT if only TCP connections were opened; the body is then the text that the source
    parses. `sent_at` is in Unix seconds. `is_cut` says that reading stopped at the source's
    limit of bytes.
    """

    source: str
    method: str
    url: str
    sent_headers: dict[str, str] = field(default_factory=dict)
    sent_json: Any = None
    sent_at: float = 0.0
    latency_ms: int = 0
    status: int | None = None
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    is_cut: bool = False
    failure: str = ""

    def get_header(self, name: str) -> str:
        """Return the first value of a response header by its lower-case name, or an empty string."""
        return next((value for key, value in self.headers if key.lower() == name), "")


def write_exchange(folder: Path, number: int, exchange: RecordedExchange) -> None:
    """Write the two files of an exchange into the folder of its source, readable only by their owner."""
    place = folder / exchange.source
    facts = {name: value for name, value in asdict(exchange).items() if name != "body"}
    if exchange.status is not None:
        body_file = f"{number:02}.body{_suffix_of(exchange)}"
        write_private_bytes(place / body_file, exchange.body)
        facts |= {"body_file": body_file, "body_bytes": len(exchange.body)}
    write_private_bytes(place / f"{number:02}.json", json.dumps(facts, indent=2, ensure_ascii=False).encode())


def read_exchanges(folder: Path) -> Iterator[RecordedExchange]:
    """Yield the exchanges of a recording, by source and number. Raise NoRecording."""
    for path in sorted(folder.glob("*/[0-9]*.json")):
        if ".body" in path.name:
            continue
        try:
            facts = json.loads(read_bounded(path))
            body_file = facts.pop("body_file", None)
            facts.pop("body_bytes", None)
            body = read_bounded(path.parent / Path(body_file).name) if body_file else b""
            headers = [(str(name), str(value)) for name, value in facts.pop("headers")]
            yield RecordedExchange(**facts, headers=headers, body=body)
        except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise NoRecording(f"{path} cannot be read: {type(error).__name__}") from error


def read_summary(folder: Path) -> dict[str, Any]:
    """Return the summary of a recording. Raise NoRecording."""
    try:
        summary: dict[str, Any] = json.loads(read_bounded(folder / SUMMARY))
        written_as = summary["format"]
    except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
        raise NoRecording(f"{folder} is not a recording made by `toolserver doctor --live --record`") from error
    if written_as != FORMAT:
        raise NoRecording(f"{folder} is a recording in format {written_as}; this version reads {FORMAT}")
    return summary


def read_bounded(path: Path) -> bytes:
    """Return the content of a file of a recording. Raises OSError, ValueError (it is no plain file, or too large)."""
    if path.is_symlink() or not path.is_file():
        raise ValueError(f"{path.name} is not a plain file")
    with path.open("rb") as file:
        content = file.read(MOST_FILE + 1)
    if len(content) > MOST_FILE:
        raise ValueError(f"{path.name} has more than {MOST_FILE} bytes")
    return content


def _suffix_of(exchange: RecordedExchange) -> str:
    said = exchange.get_header("content-type").lower()
    return next((suffix for word, suffix in _SUFFIXES.items() if word in said), ".txt" if "text" in said else ".bin")
