"""Defines reissues: a new token replaces a lost one for the account that paid for all of its credits.

    asked ── proved ──▶ waiting ── 48 hours ──▶ done
      └───────────┬────────┘
                  ▼
              cancelled

While a reissue waits, the holder of the token sees it in the response about its balance and can cancel it. So a thief
of the payer's key cannot take the credits of somebody who still uses them.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol

from toolserver.errors import ToolserverError
from toolserver.money.purchases.deposit import checksum_address
from toolserver.money.purchases.listing import show_time

PROVE_MS = 24 * 3_600_000  # how long the signature may take
WAIT_MS = 48 * 3_600_000  # how long the holder of the old token may object

ReissueState = Literal["asked", "waiting", "done", "cancelled"]


class ReissueRefused(ToolserverError):
    """The token is not replaced, and the text says why. Nothing was changed."""


class ReissueDraft(NamedTuple):
    """A reissue as it is requested. `token` is the hash of the lost token; `payer` is the account that has to sign;
    times are in epoch milliseconds.
    """

    id: str
    token: str
    payer: bytes
    asked_at: int

    @property
    def expires_at(self) -> int:
        return self.asked_at + PROVE_MS


class StoredReissue(NamedTuple):
    """A reissue as it is stored. `token` names the account; `fingerprint` is that of the token that opens it now; times
    are in epoch milliseconds.
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


class WaitingReissues(Protocol):
    """Shows the holders of tokens the reissues that wait, and lets them cancel."""

    async def find_due(self, token: str) -> int | None:
        """Return the time at which the token with this SHA-256 (hex) will be replaced, in epoch milliseconds, or None
        if no reissue waits.
        """
        ...

    async def cancel_own(self, token: str) -> bool:
        """Cancel the reissue in the name of the token's holder. Return False if none waits."""
        ...


def find_only_payer(payers: Sequence[frozenset[bytes]]) -> bytes:
    """Return the one account that paid for everything. Raises ReissueRefused if there is none or several."""
    accounts = frozenset().union(*payers)
    if len(accounts) != 1:
        found = "several accounts" if accounts else "nobody"
        raise ReissueRefused(f"{found} paid for this token: only a token that one account paid for is replaced")
    return next(iter(accounts))


def require_provable(found: StoredReissue, now: int) -> None:
    """Raise ReissueRefused unless a reissue still waits for its signature. `now` is in epoch milliseconds."""
    if found.state != "asked":
        raise ReissueRefused(f"{found.id} is {found.state}")
    if now > found.expires_at:
        raise ReissueRefused(f"the time to sign {found.id} ended at {show_time(found.expires_at)}: ask again")


def require_due(found: StoredReissue, now: int) -> None:
    """Raise ReissueRefused unless a reissue was proved and its waiting time has ended."""
    if found.state != "waiting" or found.due_at is None:
        raise ReissueRefused(f"{found.id} is {found.state}")
    if now < found.due_at:
        raise ReissueRefused(f"the holder of the token may object until {show_time(found.due_at)}")


def require_open(found: StoredReissue) -> None:
    """Raise ReissueRefused unless a reissue can still be cancelled."""
    if found.state not in ("asked", "waiting"):
        raise ReissueRefused(f"{found.id} is {found.state}")


def show_reissue(found: StoredReissue) -> dict[str, Any]:
    """Return a reissue as JSON."""
    return {
        "id": found.id,
        "state": found.state,
        "token_fp": found.fingerprint,
        "payer": checksum_address(found.payer),
        "asked": show_time(found.asked_at),
        "due": None if found.due_at is None else show_time(found.due_at),
        "ended": None if found.ended_at is None else show_time(found.ended_at),
    }
