"""Checks the tokens of calls before the ledger does: present, well formed, and not one of many guesses."""

import logging
from collections.abc import Callable

from cachetools import LRUCache

from toolserver.calls.rate_limit import KEYS, TOKEN_CLIENT, Bucket, LimitState, Quota
from toolserver.core.caller import Caller, token_hash, well_formed
from toolserver.errors import InsufficientCredits, InvalidToken, MissingToken, PaymentRequired, RateLimited
from toolserver.money.ledger.protocol import Ledger
from toolserver.registry.registry import Operation

log = logging.getLogger(__name__)

TRIES = Quota("unknown tokens", 30, 60)
CLIENT_S = 1.0  # how long the ledger's answer about whose credits a token spends is reused
GOOD = 10_000  # tokens remembered as good, so that other guesses from the same address do not lock out a customer


_NOBODY = ("", 0.0)


class TokenChecks:
    """Counts unknown tokens by the address they came from, and refuses more of them."""

    def __init__(
        self, ledger: Ledger, *, monotonic: Callable[[], float], enabled: bool = True, keys: int = KEYS
    ) -> None:
        self._ledger, self._enabled = ledger, enabled
        self._tries = Bucket(TRIES, monotonic=monotonic, keys=keys)
        self._good: LRUCache[bytes, bool] = LRUCache(GOOD)
        self._monotonic = monotonic
        self._clients: LRUCache[bytes, tuple[str, float]] = LRUCache(GOOD)

    def find_client(self, token: str) -> str | None:
        """Return the name that limits count by for a token, if the ledger just gave it."""
        name, until = self._clients.get(token_hash(token), _NOBODY)
        return name if self._monotonic() < until else None

    async def identify_client(self, caller: Caller) -> str:
        """Return the name that limits count by: the paying token of a valid token, otherwise the caller's address."""
        if caller.token and well_formed(caller.token) and not self.is_suspect(caller):
            try:
                payer = await self._ledger.find_payer(caller.token)
                self.record(caller, is_valid=payer is not None)
                if payer is not None:
                    name = f"{TOKEN_CLIENT}{payer}"
                    self._clients[token_hash(caller.token)] = name, self._monotonic() + CLIENT_S
                    return name
            except PaymentRequired:
                log.info("the ledger is unavailable, so a free call is counted by address")
        return caller.client

    def require(self, operation: Operation, caller: Caller) -> str:
        """Return the caller's token. Raise PaymentRequired, RateLimited."""
        if caller.token is None:
            why = "acts for the owner of a token"
            if operation.credits:
                why = f"costs {operation.credits} credit{'s' if operation.credits > 1 else ''}"
            raise MissingToken(f"{operation.name} {why}: send a bearer token.")
        if not well_formed(caller.token):
            raise InvalidToken("The token is malformed or unknown.")
        self.check(caller)
        return caller.token

    def is_suspect(self, caller: Caller) -> bool:
        """Return True if the address has tried too many tokens and this one is not known to be good."""
        if not self._enabled or not caller.limited or caller.token is None:
            return False
        return not self._tries.look(caller.client).allowed and token_hash(caller.token) not in self._good

    def check(self, caller: Caller) -> None:
        """Raise RateLimited if the caller is suspect."""
        if self.is_suspect(caller):
            verdict = self._tries.look(caller.client)
            wait = max(1, int(verdict.retry_after_s + 0.999))
            raise RateLimited(
                f"Too many unknown tokens came from this address. Try again in {wait} s.",
                headers={"Retry-After": str(wait), "RateLimit": LimitState(TRIES, verdict.reset_s).header},
                retry_after_seconds=wait,
                limit=TRIES.name,
            )

    async def check_funds(self, operation: Operation, token: str, caller: Caller) -> int:
        """Return the credits of a token that can pay for a call. Raise PaymentRequired."""
        try:
            left = await self._ledger.balance(token)
        except InvalidToken:
            self.record(caller, is_valid=False)
            raise
        self.record(caller, is_valid=True)
        if left < operation.credits:
            raise InsufficientCredits(
                f"This call costs {operation.credits} credits, but only {left} are left.",
                required=operation.credits,
                credits_remaining=left,
            )
        return left

    def record(self, caller: Caller, *, is_valid: bool) -> None:
        """Record the ledger's verdict on the caller's token."""
        if caller.token is None:
            return
        if is_valid:
            self._good[token_hash(caller.token)] = True
        elif caller.limited:
            self._tries.take(caller.client)
