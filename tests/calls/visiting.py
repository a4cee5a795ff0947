"""What a visitor does to get a token: solve the challenge of a refusal, as the page and the documentation say."""

import itertools

from toolserver.calls.visitor_tokens import VisitorIssuer, VisitorToken, count_zero_bits
from toolserver.errors import RateLimited


def solve(challenge: str, bits: int) -> str:
    """The first number that solves a challenge."""
    return next(text for text in map(str, itertools.count()) if count_zero_bits(challenge, text) >= bits)


async def read_work(issuer: VisitorIssuer, client: str) -> tuple[str, int] | None:
    """The challenge and the bits for an address's next token. None: it gets no more today, whatever it does.

    An address that needs no work gets tokens until it does.
    """
    while True:
        try:
            await issuer.issue(client)
        except RateLimited as refusal:
            work = refusal.extra.get("work")
            return None if work is None else (work["challenge"], work["bits"])


async def work_for_token(issuer: VisitorIssuer, client: str) -> VisitorToken | None:
    """One more token for an address, after whatever work it takes; None if it gets no more today."""
    try:
        return await issuer.issue(client)
    except RateLimited as refusal:
        if (work := refusal.extra.get("work")) is None:
            return None
        return await issuer.issue(client, work["challenge"], solve(work["challenge"], work["bits"]))
