"""Stores this machine owner's bearer tokens: a list per service, in a file that only the owner can read."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolserver.core.caller import TOKEN
from toolserver.core.private_file import write_private
from toolserver.errors import ToolserverError

try:
    import fcntl
except ImportError:  # Windows, where the last of two simultaneous writers wins
    fcntl = None  # type: ignore[assignment]

FILE = "credentials.json"
_TOKEN_AT_END = re.compile(rf"{TOKEN.pattern}\Z")


class CredentialsDamaged(ToolserverError):
    """The file does not have the form that this program writes. It is not changed."""


class CredentialsFile:
    """A JSON object of origin → tokens, the next one to spend first. Every call reads the file, which programs share.

    Tokens are added and reordered, but never removed or overwritten, because they may have credits.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read_tokens(self, origin: str) -> list[str]:
        """Return the tokens for a service, such as `https://data.example`. Raise CredentialsDamaged."""
        return self._read().get(origin, [])

    def add(self, origin: str, token: str) -> None:
        """Add a token after the existing ones. Raise CredentialsDamaged, OSError."""
        with self._locked():
            by_origin = self._read()
            tokens = by_origin.setdefault(origin, [])
            if token not in tokens:
                tokens.append(token)
                self._write(by_origin)

    def set_behind(self, origin: str, token: str) -> None:
        """Move a token to the end: other tokens of the service are spent first. Raise CredentialsDamaged, OSError."""
        with self._locked():
            by_origin = self._read()
            tokens = by_origin.get(origin, [])
            if token in tokens[:-1]:
                by_origin[origin] = [other for other in tokens if other != token] + [token]
                self._write(by_origin)

    def _read(self) -> dict[str, list[str]]:
        try:
            by_origin = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except ValueError:
            raise self._damaged() from None
        if not isinstance(by_origin, dict) or not all(_are_tokens(tokens) for tokens in by_origin.values()):
            raise self._damaged()
        if os.name == "posix" and self.path.stat().st_mode & 0o077:
            self.path.chmod(0o600)
        return by_origin

    def _damaged(self) -> CredentialsDamaged:
        return CredentialsDamaged(
            f"{self.path} contains tokens but is not valid JSON of origins and tokens; repair it or move it away"
        )

    def _write(self, by_origin: dict[str, list[str]]) -> None:
        """Replace the whole file atomically: readers see the old or the new file, even after a crash."""
        write_private(self.path, json.dumps(by_origin, indent=2))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Allow one writer at a time, so that simultaneous purchases by two hosts lose no token."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(self.path.with_name(f"{FILE}.lock"), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def _are_tokens(tokens: object) -> bool:
    return isinstance(tokens, list) and all(isinstance(token, str) and _TOKEN_AT_END.match(token) for token in tokens)
