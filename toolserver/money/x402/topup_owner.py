"""Names the owner of a top-up in a stored payment."""

TOPUP, NEW = "topup ", "new"  # the parts of a top-up's stored `request`


def owner_of(request: str) -> str | None:
    """Return the SHA-256 (hex) of the token that a top-up is for, or None if it is for a new token or not a top-up."""
    whose = request.removeprefix(TOPUP)
    return None if whose in (request, NEW) else whose
