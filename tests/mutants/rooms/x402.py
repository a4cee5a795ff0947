"""Faults of payments by signature: fit, settlement, finality, and what is given again."""

from tests.mutants.faults import fault

ROOM = "toolserver/money/x402"

FAULTS = (
    fault(
        f"{ROOM}/records.py",
        "credits that were partly spent move to a new token",
        "if taken != credit.credits:",
        "if taken > credit.credits:",
    ),
    fault(
        f"{ROOM}/offers.py",
        "an authorisation that ends too soon is taken",
        "if payment.valid_before < now + LEFT_S:",
        "if payment.valid_before < now:",
        "tests/money/x402/test_offers.py",
    ),
    fault(
        f"{ROOM}/settlement.py",
        "a payment that the chain contradicts is settled",
        'if outcome.state == "settled" and outcome.tx is not None and await self._is_confirmed(payment, since):',
        'if outcome.state == "settled" and outcome.tx is not None:',
        "tests/money/x402/test_settlement.py",
    ),
    fault(
        f"{ROOM}/facilitator.py",
        "a settlement with another network counts",
        "if tx is None or said.network != NETWORK or _is_other(said.payer, payer):",
        "if tx is None or _is_other(said.payer, payer):",
        "tests/money/x402/test_facilitator.py",
    ),
    fault(
        f"{ROOM}/chain_lookup.py",
        "a transfer to anybody pays us",
        'and [topic.lower() for topic in entry["topics"]] == wanted',
        'and [topic.lower() for topic in entry["topics"]][:2] == wanted[:2]',
        "tests/money/x402/test_chain_lookup.py",
    ),
)
