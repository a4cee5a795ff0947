"""The tokens of calls, checked before the ledger is asked: there, well formed, and not one of many inventions."""

from collections.abc import Callable

from cachetools import LRUCache

from toolserver.calls.quotas import KEYS, Bucket, LimitState, Quota
from toolserver.core.caller import Caller, token_hash, well_formed
from toolserver.errors import InsufficientCredits, InvalidToken, MissingToken, RateLimited
from toolserver.ledger.protocol import Ledger
from toolserver.registry.registry import Operation

TRIES = Quota("unknown tokens", 30, 60)
GOOD = 10_000  # tokens remembered as good, so that a neighbour's attempts do not shut out a customer


class TokenChecks:
    """Counts the tokens that the ledger did not know by the address they came from, and refuses more of them."""

    def __init__(self, *, monotonic: Callable[[], float], enabled: bool = True, keys: int = KEYS) -> None:
        self._enabled = enabled
        self._tries = Bucket(TRIES, monotonic=monotonic, keys=keys)
        self._good: LRUCache[bytes, bool] = LRUCache(GOOD)

    def require(self, operation: Operation, caller: Caller) -> str:
        """The caller's token. Raises PaymentRequired, RateLimited."""
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
        """Whether the address has tried too many tokens, and this one was never seen to be good."""
        if not self._enabled or not caller.limited or caller.token is None:
            return False
        return not self._tries.look(caller.client).allowed and token_hash(caller.token) not in self._good

    def check(self, caller: Caller) -> None:
        """Raises RateLimited when the caller is suspect."""
        if self.is_suspect(caller):
            verdict = self._tries.look(caller.client)
            wait = max(1, int(verdict.retry_after_s + 0.999))
            raise RateLimited(
                f"Too many unknown tokens came from this address. Try again in {wait} s.",
                headers={"Retry-After": str(wait), "RateLimit": LimitState(TRIES, verdict).header},
                retry_after_seconds=wait,
                limit=TRIES.name,
            )

    async def check_funds(self, operation: Operation, token: str, caller: Caller, ledger: Ledger) -> int:
        """The credits of a token that can pay for a call. Raises PaymentRequired."""
        try:
            left = await ledger.balance(token)
        except InvalidToken:
            self.record(caller, known=False)
            raise
        self.record(caller, known=True)
        if left < operation.credits:
            raise InsufficientCredits(
                f"This call costs {operation.credits} credits and {left} are left.",
                required=operation.credits,
                credits_remaining=left,
            )
        return left

    def record(self, caller: Caller, *, known: bool) -> None:
        """Remember what the ledger said about the caller's token."""
        if caller.token is None:
            return
        if known:
            self._good[token_hash(caller.token)] = True
        elif caller.limited:
            self._tries.take(caller.client)
