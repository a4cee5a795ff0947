"""Sells nothing, and only tells the balance of a token."""

from datetime import UTC, datetime
from typing import Protocol

from toolserver.errors import MissingToken, RevokedToken
from toolserver.money.ledger.operations import AccountStanding, Who
from toolserver.money.purchases.credit_sales import Balance, NoCreditSales
from toolserver.money.purchases.sql_refunds import SqlReissues


class AccountReader(Protocol):
    """A ledger that returns the state of a token's account."""

    async def standing(self, who: Who) -> AccountStanding:
        """Return the state of a token's account. Raises invalid_token."""
        ...


class ClosedPurchases(NoCreditSales):
    """Sells nothing, and only returns the balance of a token."""

    def __init__(self, ledger: AccountReader, reissues: SqlReissues | None = None) -> None:
        self._ledger, self._reissues = ledger, reissues

    async def balance(self, token: str) -> Balance:
        account = await self._find_valid(token)
        due = None
        if self._reissues is not None and account.allowance is None:
            due = await self._reissues.find_due(account.payer)
        reissue_at = None if due is None else datetime.fromtimestamp(due // 1000, UTC)
        issued_at = datetime.fromtimestamp(int(account.issued_at), UTC)
        return Balance(account.credits, issued_at, reissue_at, is_allowance=account.allowance is not None)

    async def cancel_reissue(self, token: str) -> bool:
        account = await self._find_valid(token)
        if self._reissues is None or account.allowance is not None:
            return False
        return await self._reissues.cancel_own(account.payer)

    async def _find_valid(self, token: str | None) -> AccountStanding:
        if token is None:
            raise MissingToken("A transfer tops up the token that is sent along; payment_buy_credits sells a new one.")
        account = await self._ledger.standing(token)
        if account.revoked is not None:
            raise RevokedToken(f"The {'token' if account.allowance is None else 'allowance'} was revoked or expired.")
        return account
