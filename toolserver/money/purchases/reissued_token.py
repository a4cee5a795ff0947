"""Makes the token that replaces a lost one, before the old token ends, and keeps it recoverable until it was printed.

The seed of the token is in a file beside the keys, from before the replacement until the token was printed. The token
is derived from the seed and the id of the reissue, so that the content of neither file nor database alone reveals it.
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
    """The file of a token's seed does not contain one. Nothing was changed."""


def ensure_reissued_token(data_dir: Path, id: str) -> str:
    """Return the token of a reissue that is being carried out: the same one each time until `forget_reissued_token`.

    Raises SeedBroken, OSError.
    """
    path = _name_file(data_dir, id)
    with suppress(FileExistsError):
        write_private(path, json.dumps({"seed": secrets.token_hex(SEED_BYTES)}) + "\n", replacing=False)
    return _derive_token(path, id)


def find_reissued_token(data_dir: Path, id: str) -> str | None:
    """Return the token of a reissue, or None if it was printed or never made. Raises SeedBroken, OSError."""
    path = _name_file(data_dir, id)
    return _derive_token(path, id) if path.exists() else None


def forget_reissued_token(data_dir: Path, id: str) -> None:
    """Delete the seed, because the token was printed. After that it cannot be derived again."""
    _name_file(data_dir, id).unlink(missing_ok=True)


def _name_file(data_dir: Path, id: str) -> Path:
    if not id.removeprefix("ri_").isalnum():
        raise ValueError(f"{id} is not the id of a reissue")
    return data_dir / "keys" / f"reissue-{id}.json"


def _derive_token(path: Path, id: str) -> str:
    try:
        seed = bytes.fromhex(json.loads(path.read_bytes())["seed"])
    except (ValueError, KeyError, TypeError):
        seed = b""
    if len(seed) != SEED_BYTES:
        raise SeedBroken(f"{path} does not hold the seed of a token")
    return f"svc_live_{hmac.digest(seed, f'reissued token {id}'.encode(), 'sha256').hex()}"
