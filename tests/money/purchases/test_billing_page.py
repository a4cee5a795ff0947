"""docs/billing.md and the pages for sellers: examples are answers of these tools, and figures those of the settings."""

import json
import re
from typing import get_args

import pytest

from tests.catalog.tiny import FACTS
from tests.json_schemas import validate
from tests.test_docs import FENCE, ROOT, read
from tools.payment.buy_credits import BuyCredits
from tools.payment.confirm import ConfirmPayment
from toolserver.money.ledger.protocol import NoCharge
from toolserver.money.purchases.quotes import commitment, payment_uri
from toolserver.money.purchases.records import Reason
from toolserver.registry.error_codes import PROBLEMS, example
from toolserver.settings import PaymentSettings, SourceSettings

DOCUMENTS = ("billing", "selling-credits", "books", "paying-in-chat")
PAGE, SELLING, BOOKS, CHATS = (read(ROOT / "docs" / f"{name}.md") for name in DOCUMENTS)
IN_CHATS = {"purchase"}  # what a refusal has only there
EXAMPLES = [json.loads(text) for text in re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)]


def the_example(member):
    (found,) = [example for example in EXAMPLES if member in example]
    return found


@pytest.mark.parametrize(("member", "model"), [("wallet", BuyCredits), ("token", ConfirmPayment)])
def test_an_answer_is_shown_as_the_tool_gives_it(member, model):
    shown = the_example(member)

    validate(shown, model.model_json_schema(mode="serialization"))
    assert list(shown) == list(model.model_fields)


def test_the_quote_that_is_shown_fits_together():
    shown = the_example("wallet")

    assert shown["memo_commitment"] == f"0x{commitment(shown['memo']).hex()}"
    assert shown["payment_uri"] == payment_uri(shown["wallet"], shown["amount_atomic"])
    assert shown["wallet"] in shown["instructions"]


@pytest.mark.parametrize("code", ["payment_pending", "missing_token"])
def test_a_refusal_is_shown_with_the_members_it_has(code):
    (shown,) = [example for example in EXAMPLES if example.get("error") == code]

    assert example(PROBLEMS[code], facts=FACTS, request_id="r").keys() <= shown.keys()
    assert set(PROBLEMS[code].members) - IN_CHATS <= shown.keys()
    assert all(f"`{member}`" in CHATS for member in IN_CHATS)


def test_the_figures_are_the_defaults():
    said = PaymentSettings()

    assert f"| below {said.safe_from_usd} USD | {said.confirmations} blocks on top | 6 s |" in PAGE
    assert f"| from {said.finalized_from_usd:,} USD | a finalized block |" in PAGE
    assert f"From {said.agree_from_usd:,} USD on two independent servers" in PAGE
    assert f"later than {said.grace_minutes} minutes after `expires_at`" in PAGE


def test_every_reason_not_to_charge_and_every_case_is_named():
    assert [reason for reason in get_args(NoCharge) if f"\n| `{reason}` |" not in PAGE] == []
    assert [reason for reason in get_args(Reason) if f"`{reason}` | " not in BOOKS] == []


def test_every_event_that_is_to_be_watched_is_one_that_is_logged():
    table = SELLING.partition("| event in the log |")[2].partition("\n\n")[0]
    events = [event for row in table.splitlines()[2:] for event in re.findall(r"`([^`]+)`", row.split("|")[1])]
    code = "\n".join(read(path) for path in (ROOT / "toolserver").rglob("*.py"))

    assert len(events) > 10
    assert [event for event in events if event.removeprefix("… ") not in code] == []


def test_every_setting_that_is_named_is_one():
    named = re.findall(r"^([a-z_]+) = ", "".join(FENCE.findall(SELLING)), re.MULTILINE)

    assert named
    assert set(named) <= PaymentSettings.model_fields.keys() | SourceSettings.model_fields.keys()
