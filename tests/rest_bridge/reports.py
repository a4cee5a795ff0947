"""An operators' report, for tests of what is written from it."""

from tests.rest_bridge.statuses import source_of, status_of, summed

BOOKED = (
    "owed_before sold_by_transfer sold_by_x402 granted other taken_back refunded used given_back owed owed_now "
    "calls_charged calls_given_back calls_released"
)
WAYS = "by_transfer by_x402_topup by_x402_call uncredited_x402 unapplied undone_on_chain paid_back to_pay_back"
CASE = {
    "kind": "unapplied",
    "tx": "0x" + "ab" * 32,
    "wallet": "0x" + "11" * 20,
    "amount_usd": "0.500000",
    "reason": "below_minimum",
    "lost": None,
    "at": "2027-01-15T07:00:00Z",
}


def money_of(**more):
    """The money of a day on which 5 USD bought 250 credits."""
    credits = dict.fromkeys(BOOKED.split(), 0) | {"sold_by_transfer": 250, "used": 12, "owed_now": 1238}
    usdc = {way: {"payments": 0, "usd": "0.000000"} for way in WAYS.split()}
    usdc |= {"received_usd": "5.000000", "by_transfer": {"payments": 1, "usd": "5.000000"}}
    told = {"day": "2027-01-15", "credits": credits, "usdc": usdc, "agrees": True, "problems": []}
    return told | {"quotes": {"number": 2, "usd": 7.5, "more": False}, "cases": [], "unsettled": []} | more


def report_of(registry, **more):
    """A report in which nothing is wrong."""
    status = status_of(registry)
    log = {"trouble": None, "note": "data.example/log\n7\nroot\n", "size": 7, "signed_at": "2027-01-15T07:00:30Z"}
    told = {name: status[name] for name in ("generated_at", "service", "checks", "counts")}
    told |= {"advice": [], "money": money_of(), "sources": [source_of("A.one", "up", past_day=summed(5))]}
    told |= {"left_alone": [], "announced": [], "log": log | {"waiting": 1, "uncharged_today": 3}}
    hooks = {"active": 4, "failing": 1, "paused": 1, "next_due_at": "2027-01-15T08:05:00Z", "unwell": []}
    reserved = {"calls": 2, "credits": 3, "first_ends_at": "2027-01-15T08:00:30Z"}
    return told | {"pending": {"webhooks": hooks, "reserved": reserved}} | more
