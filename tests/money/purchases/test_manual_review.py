"""How operators see what needs a person."""

from toolserver.money.purchases.listing import ReviewCase, show_case

ADDRESS = bytes.fromhex("833589fcd6edb6e08f4c7c32d4f71b54bda02913")
UNAPPLIED = ReviewCase("unapplied", bytes([2]) * 32, ADDRESS, 500_000, "below_minimum", None, 1_800_000_000_000)


def test_money_that_bought_nothing_says_why():
    assert show_case(UNAPPLIED) == {
        "kind": "unapplied",
        "tx": "0x" + "02" * 32,
        "wallet": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
        "amount_usd": "0.500000",
        "reason": "below_minimum",
        "lost": None,
        "at": "2027-01-15T08:00:00Z",
    }


def test_an_undone_payment_says_how_many_credits_were_lost():
    shown = show_case(UNAPPLIED._replace(kind="undone", reason=None, lost=10))
    assert (shown["kind"], shown["reason"], shown["lost"]) == ("undone", None, 10)
