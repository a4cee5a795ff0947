"""Defines allowances: tokens that spend the credits of another token, within caps."""

import json
import secrets
from dataclasses import dataclass, fields
from typing import Literal, NamedTuple

from toolserver.errors import InsufficientCredits, RevokedToken
from toolserver.money.ledger.owner_limits import DAY_MS, DailySpending

MOST_CREDITS, MOST_NAME, MOST_TOOLS = 10**9, 100, 100
MOST_LIVE = 100  # allowances of one token that are neither revoked nor expired
MOST_LIVE_OF_A_SISTER, MOST_LIVE_OF_SISTERS = 50, 75  # of them made through one sister service, and through all
SHOWN_ENDED = 100  # revoked and expired allowances in a list: the newest
MOST_YEARS_AHEAD, MOST_AHEAD_MS = 10, 3653 * DAY_MS  # from now to the end of an allowance
AllowanceState = Literal["active", "exhausted", "expired", "revoked"]


@dataclass(slots=True)
class Allowance(DailySpending):
    """An allowance as it is stored. `parent` is the hash of the token whose credits it spends. Times are in ms.

    `service` is the sister service through which it was made, for whose calls alone it pays;
    None: for every call. `tools` is a JSON object of tool names and their paths; None allows
    every tool. `spent_today` counts for the UTC day `day`, in days since 1970.
    """

    id: str
    hash: str
    ref: str
    parent: str
    name: str
    credits: int
    credits_per_day: int | None
    expires_at: int | None
    tools: str | None
    spent: int
    day: int
    spent_today: int
    created_at: int
    last_used_at: int | None = None
    revoked_at: int | None = None
    service: str | None = None

    @property
    def paths(self) -> frozenset[str] | None:
        """The paths of the only tools that it pays for; None if it pays for every tool."""
        return None if self.tools is None else frozenset(json.loads(self.tools).values())

    def is_live(self, now: int) -> bool:
        """Return True if it is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def find_room(self, now: int) -> int:
        """Return how many credits its own caps still allow it to spend now."""
        room, today = self.credits - self.spent, self.find_room_today(now)
        return max(0, room if today is None else min(room, today))

    def find_state(self, now: int) -> AllowanceState:
        """Return its state, as its owner sees it."""
        if self.revoked_at is not None:
            return "revoked"
        if not self.is_live(now):
            return "expired"
        return "exhausted" if self.spent >= self.credits else "active"

    def check(self, now: int) -> None:
        """Raise RevokedToken if it is revoked or expired."""
        if not self.is_live(now):
            raise RevokedToken(f"The allowance {'was revoked' if self.revoked_at is not None else 'expired'}.")

    def check_caps(self, credits: int, endpoint: str, now: int, service: str | None = None) -> None:
        """Raise InsufficientCredits, naming the `cap`, if a call at this price would cross one.

        `service` is the sister service that makes the call; None if this service does.
        """
        left, today = self.find_room(now), self.find_room_today(now)
        if self.service is not None and self.service != service:
            raise _crossed("This allowance pays only at the service where it was made.", "service", credits, left)
        if (paths := self.paths) is not None and endpoint not in paths:
            raise _crossed("This allowance does not cover this tool.", "tools", credits, left)
        if self.spent + credits > self.credits:
            detail = f"This call costs {credits} credits; the allowance has spent {self.spent} of {self.credits}."
            raise _crossed(detail, "credits", credits, left)
        if today is not None and credits > today:
            spent_today = self.spent_on(now // DAY_MS)
            detail = f"This call costs {credits} credits; {spent_today} of {self.credits_per_day} were spent today."
            raise _crossed(detail, "credits_per_day", credits, left)

    def take(self, credits: int, now: int) -> int:
        """Count credits that are reserved now, and return the day for which they count."""
        self.spent += credits
        self.last_used_at = now
        return self.count(credits, now)

    def give_back(self, credits: int, day: int | None) -> None:
        """Give back credits that were reserved on a day. `spent_today` changes only if that day is still counted."""
        self.spent -= credits
        self.uncount(credits, day)


@dataclass(frozen=True, slots=True)
class AllowanceTerms:
    """What an allowance may spend. `tools` maps names to paths (None allows every tool); `expires_at` is in ms.

    Raises ValueError if a cap, the name or the number of tools is out of range.
    """

    name: str
    credits: int
    credits_per_day: int | None = None
    expires_at: int | None = None
    tools: dict[str, str] | None = None

    def __post_init__(self) -> None:
        caps = (self.credits, 1 if self.credits_per_day is None else self.credits_per_day)
        if not all(1 <= cap <= MOST_CREDITS for cap in caps):
            raise ValueError(f"a cap must be from 1 to {MOST_CREDITS} credits")
        if not 1 <= len(self.name) <= MOST_NAME or len(self.tools or {}) > MOST_TOOLS:
            raise ValueError(f"a name must have 1 to {MOST_NAME} characters, and a list of tools at most {MOST_TOOLS}")


class AllowanceChange(NamedTuple):
    """New terms of an allowance: `changed` names those that change, `terms` holds their values."""

    changed: frozenset[str]
    terms: AllowanceTerms


TERMS = frozenset(field.name for field in fields(AllowanceTerms))


def check_end(expires_at: int | None, now: int) -> None:
    """Raise ValueError if an allowance would end before 1970 or too far ahead. Times are in ms."""
    if expires_at is not None and not 0 <= expires_at <= now + MOST_AHEAD_MS:
        raise ValueError(f"must be a time since 1970 and at most {MOST_YEARS_AHEAD} years ahead")


def draft_allowance(terms: AllowanceTerms, hash: str, now: int, service: str | None = None) -> Allowance:
    """Return a new allowance for the token with that hash. Its parent is set when it is stored."""
    tools = None if terms.tools is None else write_tools(terms.tools)
    id = f"alw_{secrets.token_hex(8)}"
    return Allowance(
        id,
        hash,
        ref=f"acct_{secrets.token_hex(16)}",
        parent="",
        name=terms.name,
        credits=terms.credits,
        credits_per_day=terms.credits_per_day,
        expires_at=terms.expires_at,
        tools=tools,
        spent=0,
        day=now // DAY_MS,
        spent_today=0,
        created_at=now,
        service=service,
    )


def write_tools(tools: dict[str, str]) -> str:
    """Return the tools of an allowance as they are stored."""
    return json.dumps(tools, sort_keys=True)


def _crossed(detail: str, cap: str, required: int, left: int) -> InsufficientCredits:
    return InsufficientCredits(detail, required=required, credits_remaining=left, cap=cap)
