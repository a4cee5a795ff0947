"""Read and write the archive of a closed month: a file of JSON lines, compressed by gzip, that standard tools read.

    {"archive": "toolserver month", "v": 1, "month": "2027-01", …}
    {"table": "transfer", "columns": ["seq", "kind", …]}      then a line for each row, an array in that order
    {"statement": "<JWS>", "keys": […]}                       the signed statement, and the public half of its key

Bytes are base64url without padding, as in a JWS: a receipt's core and signature are unchanged
parts of its JWS. The digest of a table is SHA-256 over the lines of its rows, line ends
included.
"""

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from toolserver.core.models import iso
from toolserver.core.private_file import sync_folder
from toolserver.errors import ToolserverError
from toolserver.money.receipts.keys import Key, b64
from toolserver.money.receipts.month_statement import MonthSpan, MonthStatement, RowDigest, sign_month
from toolserver.sql.sqlite import private

ENDING = ".jsonl.gz"
MOST_LINE = 16 * 1024 * 1024  # bytes; a row has a few kilobytes
_LEVEL = 6  # compression level: 9 takes three times as long to save one per cent
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class ArchiveBroken(ToolserverError):
    """A file is not the archive of a month, or is incomplete."""


def name_archive(folder: Path, month: str) -> Path:
    """Return the path of a month's archive in the folder of archives."""
    return folder / f"ledger-{month}{ENDING}"


class ArchiveWriter:
    """Writes one archive, table by table, as a draft."""

    def __init__(self, file: io.BufferedIOBase | gzip.GzipFile) -> None:
        self._file = file
        self.digests: dict[str, RowDigest] = {}

    def begin(self, span: MonthSpan, service: str) -> None:
        """Write the first line."""
        times = {"from": iso_of(span.since), "to": iso_of(span.until)}
        self._write({"archive": "toolserver month", "v": 1, "service": service, "month": span.name, **times})

    def write_table(self, name: str, columns: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> None:
        """Write a table."""
        self._write({"table": name, "columns": list(columns)})
        digest, count = hashlib.sha256(), 0
        for row in rows:
            line = encode_row(row)
            digest.update(line)
            self._file.write(line)
            count += 1
        self.digests[name] = RowDigest(count, digest.hexdigest())

    def finish(self, statement: MonthStatement, key: Key) -> str:
        """Write the last line. Returns the signed statement."""
        text = sign_month(statement, key)
        self._write({"statement": text, "keys": [key.jwk()]})
        return text

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(_encode(line) + b"\n")


def encode_row(row: Iterable[Any]) -> bytes:
    """Return a row as a line."""
    return _encode([b64(value) if isinstance(value, bytes) else value for value in row]) + b"\n"


@contextmanager
def open_draft(path: Path) -> Iterator[ArchiveWriter]:
    """Open a draft that only its owner can read. When the block is left, the draft is synced to disk."""
    path.unlink(missing_ok=True)
    private(path)
    with gzip.open(path, "wb", _LEVEL) as file:
        yield ArchiveWriter(file)
    sync_folder(path)


def read_lines(path: Path) -> Iterator[tuple[bytes, Any]]:
    """Yield each line of an archive and its parsed value. Raises ArchiveBroken."""
    number = 0
    try:
        with gzip.open(path, "rb") as file:
            while line := file.readline(MOST_LINE + 1):
                number += 1
                if len(line) > MOST_LINE:
                    raise ValueError(f"line {number} has more than {MOST_LINE} bytes")
                yield line, _decode(line)
    except (ValueError, RecursionError) as error:
        raise ArchiveBroken(f"{path} is not the archive of a month; line {number} cannot be read: {error}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise ArchiveBroken(f"{path} is not the archive of a month, or is incomplete: {error}") from None


def iso_of(ms: int) -> str:
    """Write a time in epoch milliseconds as ISO 8601."""
    return iso(datetime.fromtimestamp(ms / 1000, UTC))
