"""A stored payment says whose top-up it is for."""

from toolserver.money.x402.records import NEW, TOPUP, owner_of


def test_a_top_up_of_a_known_token_has_an_owner_and_nothing_else_has():
    assert owner_of(f"{TOPUP}{'a' * 64}") == "a" * 64
    assert owner_of(f"{TOPUP}{NEW}") is None
    assert owner_of("GET /api/pro/x hash") is None
