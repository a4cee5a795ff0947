"""A mark in a data directory whose ledger is being moved to a server, or was: the file is not served meanwhile.

Without it a service that is started as before would sell from a file that a server has a copy of, and the same credits
would be spent twice.
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


class LedgerMoved(ToolserverError):
    """The ledger of a data directory is being moved to a server, or was. Nothing was opened."""


@dataclass(frozen=True, slots=True)
class MoveMark:
    """Which move it is, where to (without a password), and whether it is `copying` or `complete`."""

    id: str
    to: str
    state: str = COPYING

    @classmethod
    def begin(cls, url: str) -> "MoveMark":
        """A new move to the server of a URL."""
        return cls(secrets.token_hex(8), show_server(url))

    def go_to(self, url: str) -> "MoveMark":
        """The same move, to the server of a URL."""
        return replace(self, to=show_server(url))

    def complete(self) -> "MoveMark":
        """The same move, done."""
        return replace(self, state=COMPLETE)


def read_move(data_dir: Path) -> MoveMark | None:
    """The mark of a data directory; None when its ledger stays. Raises LedgerMoved: the mark cannot be read."""
    path = data_dir / MARK_FILE
    try:
        return MoveMark(**json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise LedgerMoved(f"{path} cannot be read: {error}") from None


def write_move(data_dir: Path, mark: MoveMark) -> None:
    """Leave the mark, on the disk."""
    write_private(data_dir / MARK_FILE, json.dumps(asdict(mark), indent=2) + "\n")


def forget_move(data_dir: Path) -> None:
    """Take the mark away, so that the file is served again."""
    (data_dir / MARK_FILE).unlink(missing_ok=True)


def require_not_moved(data_dir: Path) -> None:
    """Raises LedgerMoved where the ledger of a data directory must not be opened, and says what to do."""
    mark = read_move(data_dir)
    if mark is None:
        return
    if mark.state == COMPLETE:
        raise LedgerMoved(f"the ledger of {data_dir} was moved to {mark.to}: set database_url to that database")
    raise LedgerMoved(
        f"the ledger of {data_dir} is being moved to {mark.to}: run `toolserver db move` again to finish, or"
        " `toolserver db move --cancel` to go on with the file"
    )


def show_server(url: str) -> str:
    """The URL of a database without user, password and parameters."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"
