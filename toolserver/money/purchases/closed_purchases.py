"""Sells nothing, and only tells the balance of a token."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from toolserver.errors import MissingToken, RevokedToken
from toolserver.money.ledger.operations import AccountStanding, Who
from toolserver.money.purchases.credit_sales import Balance, NoCreditSales

if TYPE_CHECKING:  # loaded with the first balance
    from toolserver.money.purchases.sql_refunds import SqlReissues


class AccountReader(Protocol):
    """A ledger that returns the state of a token's account."""

    async def standing(self, who: Who) -> AccountStanding:
        """Return the state of a token's account. Raises invalid_token."""
        ...


class ClosedPurchases(NoCreditSales):
    """Sells nothing, and only returns the balance of a token. `open_reissues` is called with the first balance."""

    def __init__(self, ledger: AccountReader, open_reissues: "Callable[[], SqlReissues] | None" = None) -> None:
        self._ledger, self._open_reissues = ledger, open_reissues

    async def balance(self, token: str) -> Balance:
        account = await self._find_valid(token)
        due = None
        if self._open_reissues is not None and account.allowance is None:
            due = await self._open_reissues().find_due(account.payer)
        reissue_at = None if due is None else datetime.fromtimestamp(due // 1000, UTC)
        issued_at = datetime.fromtimestamp(int(account.issued_at), UTC)
        return Balance(account.credits, issued_at, reissue_at, is_allowance=account.allowance is not None)

    async def cancel_reissue(self, token: str) -> bool:
        account = await self._find_valid(token)
        if self._open_reissues is None or account.allowance is not None:
            return False
        return await self._open_reissues().cancel_own(account.payer)

    async def _find_valid(self, who: Who | None) -> AccountStanding:
        if who is None:
            raise MissingToken("A transfer tops up the token that is sent along; payment_buy_credits sells a new one.")
        account = await self._ledger.standing(who)
        if account.revoked is not None:
            raise RevokedToken(f"The {'token' if account.allowance is None else 'allowance'} was revoked or expired.")
        return account
