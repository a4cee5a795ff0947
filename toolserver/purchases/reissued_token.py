"""The token that replaces a lost one, until its operator has it: made before the old one ends, and not lost in between.

The seed of the token stands in a file beside the keys from before the replacement until the token was printed. The
token is made of it and of the reissue, so that neither the file nor the database alone tells it.
"""

import hmac
import json
import secrets
from contextlib import suppress
from pathlib import Path

from toolserver.core.private_file import write_private
from toolserver.errors import ToolserverError

SEED_BYTES = 32


class SeedBroken(ToolserverError):
    """The file that holds the seed of a token cannot be read as one. Nothing was changed."""


def ensure_reissued_token(data_dir: Path, id: str) -> str:
    """The token of a reissue that is carried out now, the same each time until `forget_reissued_token`.

    Raises SeedBroken, OSError.
    """
    path = _name_file(data_dir, id)
    with suppress(FileExistsError):
        write_private(path, json.dumps({"seed": secrets.token_hex(SEED_BYTES)}) + "\n", replacing=False)
    return _derive_token(path, id)


def find_reissued_token(data_dir: Path, id: str) -> str | None:
    """The token of a reissue, if it was not printed yet. Raises SeedBroken, OSError."""
    path = _name_file(data_dir, id)
    return _derive_token(path, id) if path.exists() else None


def forget_reissued_token(data_dir: Path, id: str) -> None:
    """Delete the seed: the token was printed, and nobody can make it again."""
    _name_file(data_dir, id).unlink(missing_ok=True)


def _name_file(data_dir: Path, id: str) -> Path:
    if not id.removeprefix("ri_").isalnum():
        raise ValueError(f"{id} names no reissue")
    return data_dir / "keys" / f"reissue-{id}.json"


def _derive_token(path: Path, id: str) -> str:
    try:
        seed = bytes.fromhex(json.loads(path.read_bytes())["seed"])
    except (ValueError, KeyError, TypeError):
        seed = b""
    if len(seed) != SEED_BYTES:
        raise SeedBroken(f"{path} does not hold the seed of a token")
    return f"svc_live_{hmac.digest(seed, f'reissued token {id}'.encode(), 'sha256').hex()}"
