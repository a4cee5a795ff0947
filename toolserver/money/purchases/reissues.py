"""Defines reissues: a new token replaces a lost one for the account that paid for all of its credits.

    asked ── proved ──▶ waiting ── 48 hours ──▶ done
      └───────────┬────────┘
                  ▼
              cancelled

While a reissue waits, the holder of the token sees it in the response about its balance and
can cancel it. So a thief of the payer's key cannot take the credits of somebody who still
uses them.
"""

import hmac
import json
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from toolserver.core.private_file import write_private
from toolserver.errors import ToolserverError
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.listing import show_time

PROVE_MS = 24 * 3_600_000  # how long the signature may take
WAIT_MS = 48 * 3_600_000  # how long the holder of the old token may object

ReissueState = Literal["asked", "waiting", "done", "cancelled"]


class ReissueRefused(ToolserverError):
    """The token is not replaced, and the text says why. Nothing was changed."""


class ReissueDraft(NamedTuple):
    """A reissue as it is requested. `token` is the hash of the lost token; `payer` is the
    account that has to sign; times are in epoch milliseconds.
    """

    id: str
    token: str
    payer: bytes
    asked_at: int

    @property
    def expires_at(self) -> int:
        return self.asked_at + PROVE_MS


class StoredReissue(NamedTuple):
    """A reissue as it is stored. `token` names the account; `fingerprint` is that of the token
    that opens it now; times are in epoch milliseconds.
    """

    id: str
    token: str
    payer: bytes
    state: ReissueState
    asked_at: int
    expires_at: int
    proved_at: int | None
    due_at: int | None
    ended_at: int | None
    fingerprint: str


def find_only_payer(payers: Sequence[frozenset[bytes]]) -> bytes:
    """Return the one account that paid for everything. Raises ReissueRefused if there is none or several."""
    accounts = frozenset().union(*payers)
    if len(accounts) != 1:
        paid_by = "several accounts" if accounts else "nobody"
        raise ReissueRefused(f"{paid_by} paid for this token: only a token that one account paid for is replaced")
    return next(iter(accounts))


def require_provable(reissue: StoredReissue, now: int) -> None:
    """Raise ReissueRefused unless a reissue still waits for its signature. `now` is in epoch milliseconds."""
    if reissue.state != "asked":
        raise ReissueRefused(f"{reissue.id} is {reissue.state}")
    if now > reissue.expires_at:
        raise ReissueRefused(f"the time to sign {reissue.id} ended at {show_time(reissue.expires_at)}: ask again")


def require_due(reissue: StoredReissue, now: int) -> None:
    """Raise ReissueRefused unless a reissue was proved and its waiting time has ended."""
    if reissue.state != "waiting" or reissue.due_at is None:
        raise ReissueRefused(f"{reissue.id} is {reissue.state}")
    if now < reissue.due_at:
        raise ReissueRefused(f"the holder of the token may object until {show_time(reissue.due_at)}")


def require_open(reissue: StoredReissue) -> None:
    """Raise ReissueRefused unless a reissue can still be cancelled."""
    if reissue.state not in ("asked", "waiting"):
        raise ReissueRefused(f"{reissue.id} is {reissue.state}")


def show_reissue(reissue: StoredReissue) -> dict[str, Any]:
    """Return a reissue as JSON."""
    return {
        "id": reissue.id,
        "state": reissue.state,
        "token_fp": reissue.fingerprint,
        "payer": checksum_address(reissue.payer),
        "asked": show_time(reissue.asked_at),
        "due": None if reissue.due_at is None else show_time(reissue.due_at),
        "ended": None if reissue.ended_at is None else show_time(reissue.ended_at),
    }


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
