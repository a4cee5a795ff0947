"""/account: the page is the same for everybody, and nothing of a token stands in it."""

from dataclasses import replace

from rest_bridge.pages.account import account_page
from tests.calls.toy import REGISTRY
from tests.catalog.tiny import FACTS
from tests.rest_bridge.markup import Page
from toolserver.registry.registry import Tier
from toolserver.registry.site_facts import Sales


def test_an_allowance_can_be_for_every_paid_tool_and_a_webhook_for_those_without_required_arguments():
    body = account_page(REGISTRY, FACTS).body.decode()
    paid = [one for one in REGISTRY if one.tier is Tier.PREMIUM]
    assert all(f'value="{one.name}"' in body for one in paid)
    listed = body.partition('id="webhook-endpoint"')[2].partition("</select>")[0]
    free_of_arguments = [one for one in paid if not one.input_schema.get("required")]
    assert listed.count("<option") == len(free_of_arguments)


def test_the_token_is_asked_for_in_a_field_that_is_in_no_form_data():
    body = account_page(REGISTRY, FACTS).body.decode()
    field = body.partition('<input id="token"')[2].partition(">")[0]
    assert 'type="password"' in field
    assert "name=" not in field


def test_it_leads_to_buying_only_where_something_is_sold_and_to_the_guide_where_that_is_served():
    assert "/buy" not in Page(account_page(REGISTRY, FACTS).body.partition(b"<main")[2]).links
    selling = account_page(REGISTRY, replace(FACTS, sales=Sales()), guide=True).body.partition(b"<main")[2]
    assert {"/buy", "/docs/webhooks#conditions"} <= set(Page(selling).links)


def test_without_javascript_it_says_how_to_ask_by_http():
    assert "GET /api/payment/statement" in Page(account_page(REGISTRY, FACTS).body).text
