"""Creates, changes and revokes allowances: operations that a ledger applies in one transaction, by pure rules.

Allowances are managed with the token whose credits they spend. For any other token they do not exist.
"""

from dataclasses import dataclass, replace

from toolserver.errors import AllowanceConflict, NotFound
from toolserver.money.ledger.allowance import (
    MOST_LIVE,
    MOST_LIVE_OF_A_SISTER,
    MOST_LIVE_OF_SISTERS,
    Allowance,
    AllowanceChange,
    write_tools,
)
from toolserver.money.ledger.operations import LedgerOperation, Needs
from toolserver.money.ledger.state import LedgerState, Token


@dataclass(slots=True)
class CreateAllowance(LedgerOperation[Allowance]):
    """Store a new allowance of a token. Repeating it returns the allowance that has this hash.

    The hash comes from a sister service, and may be that of a token that it has seen: its bearer would be cut off.

    Raises:
        PaymentRequired, AllowanceConflict
    """

    key: str
    draft: Allowance

    def needs(self) -> Needs:
        return Needs(self.key, allowance=self.draft.hash, family=True)

    def on(self, books: LedgerState) -> Allowance:
        owner = find_owner(books, self.key)
        before = books.allowances.get(self.draft.hash)
        if self.draft.hash in books.tokens or (before is not None and before.parent != owner.hash):
            raise AllowanceConflict("This hash is that of another token. Make a new token for the allowance.")
        if before is not None:
            return replace(before)
        self._check_share(books, owner)
        made = replace(self.draft, parent=owner.hash)
        books.keep_allowance(made)
        return replace(made)

    def _check_share(self, books: LedgerState, owner: Token) -> None:
        """Raise AllowanceConflict if there are too many. No sister service can take all the places of a token."""
        live = {a.id: a for a in books.allowances.values() if a.parent == owner.hash and a.is_live(books.now)}
        made_by = [each.service for each in live.values()]
        if len(live) >= MOST_LIVE:
            raise AllowanceConflict(f"A token can have at most {MOST_LIVE} live allowances. Revoke one first.")
        if self.draft.service is None:
            return
        if made_by.count(self.draft.service) >= MOST_LIVE_OF_A_SISTER:
            most = f"{MOST_LIVE_OF_A_SISTER} live allowances that were made at this service"
            raise AllowanceConflict(f"A token can have at most {most}. Revoke one first.")
        if len(live) - made_by.count(None) >= MOST_LIVE_OF_SISTERS:
            most = f"{MOST_LIVE_OF_SISTERS} live allowances that were made at services that share its credits"
            raise AllowanceConflict(f"A token can have at most {most}. Revoke one first.")


@dataclass(slots=True)
class ChangeAllowance(LedgerOperation[Allowance]):
    """Change the terms of an allowance. Spent credits stay counted. Raises NotFound, AllowanceConflict.

    A sister service, if `service` names one, changes only what was made through it.
    """

    key: str
    id: str
    change: AllowanceChange
    service: str | None = None

    def needs(self) -> Needs:
        return Needs(self.key, allowance=self.id)

    def on(self, books: LedgerState) -> Allowance:
        found = find_allowance(books, self.key, self.id)
        if found.revoked_at is not None:
            raise AllowanceConflict("A revoked allowance cannot be changed. Create a new one.")
        if self.service is not None and self.service != found.service:
            raise AllowanceConflict("This allowance was made at another service. Change it there, or revoke it.")
        for name in self.change.given:
            value = getattr(self.change.terms, name)
            setattr(found, name, write_tools(value) if name == "tools" and value is not None else value)
        books.keep_allowance(found)
        return replace(found)


@dataclass(slots=True)
class RevokeAllowance(LedgerOperation[Allowance]):
    """End an allowance for good. Repeating it changes nothing. Raises NotFound."""

    key: str
    id: str

    def needs(self) -> Needs:
        return Needs(self.key, allowance=self.id)

    def on(self, books: LedgerState) -> Allowance:
        found = find_allowance(books, self.key, self.id)
        books.revoke_allowance(found)
        return replace(found)


def find_owner(books: LedgerState, key: str) -> Token:
    """Return the token that manages allowances. Raises PaymentRequired, or AllowanceConflict for an allowance."""
    token, _ = books.valid(key)
    if books.find_allowance(key) is not None:
        raise AllowanceConflict("This token is an allowance, so it cannot create, list or change allowances.")
    return token


def find_allowance(books: LedgerState, key: str, id: str) -> Allowance:
    """Return an allowance of a token. Raises PaymentRequired, NotFound, AllowanceConflict."""
    owner, found = find_owner(books, key), books.allowances.get(id)
    if found is None or found.parent != owner.hash:
        raise NotFound("This token has no such allowance.")
    return found
