"""Mark a data directory whose ledger is being moved to a server, or was moved, so that its file is not served.

Without the mark, a service that is started as before would sell from a file of which a server
has a copy, and the same credits would be spent twice.
"""

import json
import secrets
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from toolserver.core.private_file import write_private
from toolserver.errors import ToolserverError

MARK_FILE = "ledger-move.json"  # in the data directory
COPYING, COMPLETE = "copying", "complete"
RETURNING = "returning"  # from the server to the data directory


class LedgerMoved(ToolserverError):
    """The ledger of a data directory is being moved to a server, or was moved. Nothing was opened."""


@dataclass(frozen=True, slots=True)
class MoveMark:
    """The move's id, its server (without a password), and its state: `copying`, `complete` or `returning`."""

    id: str
    to: str
    state: str = COPYING

    @classmethod
    def begin(cls, url: str) -> "MoveMark":
        """Return a new move to the server of a URL."""
        return cls(secrets.token_hex(8), show_server(url))

    def go_to(self, url: str) -> "MoveMark":
        """Return the same move with the server of a URL as its target."""
        return replace(self, to=show_server(url))

    @classmethod
    def begin_return(cls, url: str) -> "MoveMark":
        """Return a new move from the server of a URL to the data directory."""
        return replace(cls.begin(url), state=RETURNING)

    def complete(self) -> "MoveMark":
        """Return the same move as complete."""
        return replace(self, state=COMPLETE)


def read_move(data_dir: Path) -> MoveMark | None:
    """Read the mark of a data directory; None if its ledger is not moved. Raises LedgerMoved if it is unreadable."""
    path = data_dir / MARK_FILE
    try:
        return MoveMark(**json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise LedgerMoved(f"{path} cannot be read: {error}") from None


def write_move(data_dir: Path, mark: MoveMark) -> None:
    """Write the mark to disk."""
    write_private(data_dir / MARK_FILE, json.dumps(asdict(mark), indent=2) + "\n")


def forget_move(data_dir: Path) -> None:
    """Remove the mark, so that the file is served again."""
    (data_dir / MARK_FILE).unlink(missing_ok=True)


def require_not_moved(data_dir: Path) -> None:
    """Raise LedgerMoved if the ledger of a data directory must not be opened, and say what to do."""
    mark = read_move(data_dir)
    if mark is None:
        return
    if mark.state == COMPLETE:
        raise LedgerMoved(f"the ledger of {data_dir} was moved to {mark.to}: set database_url to that database")
    if mark.state == RETURNING:
        raise LedgerMoved(
            f"a ledger is being moved from {mark.to} to {data_dir}: run `toolserver db move --to-file` again to finish,"
            " or with `--cancel` to keep using the database"
        )
    raise LedgerMoved(
        f"the ledger of {data_dir} is being moved to {mark.to}: run `toolserver db move` again to finish, or"
        " `toolserver db move --cancel` to keep using the file"
    )


def show_server(url: str) -> str:
    """Return the URL of a database without user, password and parameters."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"
