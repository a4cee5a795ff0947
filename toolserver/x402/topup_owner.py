"""Whose top-up a stored payment is for."""

TOPUP, NEW = "topup ", "new"  # what such a payment pays for, as it is stored


def owner_of(request: str) -> str | None:
    """The token (a hash) that a top-up is for; None when it is for a new one, or no top-up."""
    whose = request.removeprefix(TOPUP)
    return None if whose in (request, NEW) else whose
