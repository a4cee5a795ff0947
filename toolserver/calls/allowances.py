"""Manages allowances for account tools: with names of tools instead of paths, and times instead of milliseconds."""

import json
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from toolserver.clock import Clock
from toolserver.core.caller import token_hash
from toolserver.core.similar_names import find_similar
from toolserver.core.visible_text import require_visible
from toolserver.errors import InvalidArguments, NotSupported
from toolserver.money.ledger.allowance import (
    Allowance,
    AllowanceChange,
    AllowanceState,
    AllowanceTerms,
    check_end,
)
from toolserver.money.ledger.owner_limits import DAY_MS
from toolserver.money.ledger.protocol import AllowanceLedger, Who
from toolserver.registry.registry import Registry, Tier

LAST_MS = 253_402_300_799_000  # 9999-12-31T23:59:59Z
ALLOWANCE_PATH = "/api/payment/allowances"


@dataclass(frozen=True, slots=True)
class AllowanceWish:
    """The terms that a caller requests for an allowance. None means unchanged or, for a new one, no cap.

    To remove a cap: 0 for `credits_per_day`, `datetime.max` for `expires_at`, an empty list for `tools`.
    """

    name: str | None = None
    credits: int | None = None
    credits_per_day: int | None = None
    expires_at: datetime | None = None
    tools: list[str] | None = None


class AllowanceDetails(NamedTuple):
    """An allowance as its owner sees it. `token` is set only in the answer that creates it.

    `service` names the sister service through which it was made and for whose calls alone it pays.
    """

    id: str
    name: str
    credits: int
    spent: int
    spent_today: int
    credits_per_day: int | None
    expires_at: datetime | None
    tools: list[str] | None
    state: AllowanceState
    created_at: datetime
    last_used_at: datetime | None
    service: str | None = None
    token: str | None = None


class Allowances:
    """The allowances of all tokens, each managed with the token whose credits it spends.

    `ledger` is None if the service cannot keep allowances. Every method raises
    PaymentRequired, AllowanceConflict for a token that is itself an allowance, and
    NotSupported.
    """

    def __init__(self, ledger: AllowanceLedger | None, registry: Registry, clock: Clock) -> None:
        self._kept_in, self._clock = ledger, clock
        self._paths = {operation.name: operation.path for operation in registry if operation.tier is Tier.PREMIUM}

    async def create(self, who: Who, wish: AllowanceWish) -> AllowanceDetails:
        """Create an allowance with its own token. Raise InvalidArguments, and AllowanceConflict for the 101st."""
        _check_name(wish.name)
        own = f"svc_live_{secrets.token_hex(32)}"
        terms = self._terms(wish)
        if terms.expires_at is not None and terms.expires_at <= self._clock.time() * 1000:
            raise _refuse("expires_at", "must be in the future")
        allowance = await self._ledger.create_allowance(who, token_hash(own).hex(), terms)
        return self._show(allowance)._replace(token=own)

    async def list_all(self, who: Who) -> list[AllowanceDetails]:
        """Return the live allowances of a token, oldest first, then the most recent of the ended ones."""
        return [self._show(allowance) for allowance in await self._ledger.list_allowances(who)]

    async def change(self, who: Who, id: str, wish: AllowanceWish) -> AllowanceDetails:
        """Change the terms of an allowance; a member that is None does not change. Raise InvalidArguments, NotFound."""
        _check_name(wish.name)
        names = ("name", "credits", "credits_per_day", "expires_at", "tools")
        changed = frozenset(name for name in names if getattr(wish, name) is not None)
        change = AllowanceChange(changed, self._terms(wish))
        return self._show(await self._ledger.change_allowance(who, id, change))

    async def revoke(self, who: Who, id: str) -> AllowanceDetails:
        """End an allowance permanently. Raise NotFound."""
        return self._show(await self._ledger.revoke_allowance(who, id))

    @property
    def _ledger(self) -> AllowanceLedger:
        if self._kept_in is None:
            raise NotSupported("This server does not support allowances.")
        return self._kept_in

    def _terms(self, wish: AllowanceWish) -> AllowanceTerms:
        ends = _milliseconds(wish.expires_at)
        try:
            check_end(ends, int(self._clock.time() * 1000))
        except ValueError as error:
            raise _refuse("expires_at", str(error)) from None
        return AllowanceTerms(
            wish.name or "unnamed",
            wish.credits or 1,
            wish.credits_per_day or None,
            ends,
            self._find_paths(wish.tools) if wish.tools else None,
        )

    def _find_paths(self, tools: list[str]) -> dict[str, str]:
        """Return the paths of premium tools, by name. Raise InvalidArguments for a tool that costs no credits."""
        for name in tools:
            if name not in self._paths:
                near = find_similar(name, self._paths, most=1)
                meant = f"; did you mean {near[0]}?" if near else ""
                raise _refuse("tools", f"{name} is not a tool that costs credits{meant}")
        return {name: self._paths[name] for name in tools}

    def _show(self, allowance: Allowance) -> AllowanceDetails:
        now = int(self._clock.time() * 1000)
        return AllowanceDetails(
            allowance.id,
            allowance.name,
            allowance.credits,
            allowance.spent,
            allowance.spent_on(now // DAY_MS),
            allowance.credits_per_day,
            _time(allowance.expires_at),
            None if allowance.tools is None else list(json.loads(allowance.tools)),
            allowance.find_state(now),
            datetime.fromtimestamp(allowance.created_at / 1000, UTC),
            _time(allowance.last_used_at),
            allowance.service,
        )


def _milliseconds(at: datetime | None) -> int | None:
    return None if at is None or at.replace(tzinfo=None) == datetime.max else int(at.timestamp() * 1000)


def _time(at: int | None) -> datetime | None:
    """Return a stored time. One outside the calendar, as earlier versions and other services
    stored, is shown as the nearest that can be written.
    """
    return None if at is None else datetime.fromtimestamp(min(max(at, 0), LAST_MS) / 1000, UTC)


def _check_name(name: str | None) -> None:
    """Raise InvalidArguments for a name with characters that cannot be seen."""
    try:
        require_visible(name or "")
    except ValueError as hidden:
        raise _refuse("name", str(hidden)) from None


def _refuse(name: str, what: str) -> InvalidArguments:
    return InvalidArguments(f"{name}: {what}", errors=[{"loc": name, "msg": what, "type": "value_error"}])
