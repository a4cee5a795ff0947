"""/account: the page is the same for everybody, and nothing of a token stands in it."""

import re
from dataclasses import replace

from rest_bridge.pages.account import account_page
from tests.calls.toy import REGISTRY
from tests.catalog.tiny import FACTS, TINY
from tests.rest_bridge.markup import Page
from toolserver.registry.registry import Registry, Tier
from toolserver.registry.site_facts import Sales


def test_an_allowance_can_be_for_every_paid_tool_and_a_webhook_for_those_without_required_arguments():
    body = account_page(REGISTRY, FACTS).body.decode()
    paid = [one for one in REGISTRY if one.tier is Tier.PREMIUM]
    assert all(f'value="{one.name}"' in body for one in paid)
    listed = body.partition('id="webhook-endpoint"')[2].partition("</select>")[0]
    free_of_arguments = [one for one in paid if not one.input_schema.get("required")]
    assert listed.count("<option") == len(free_of_arguments) + 1, "and alerts about the token's credits"


def test_limits_and_alerts_of_the_token_are_set_by_a_script_and_hidden_until_they_are_known():
    section = account_page(REGISTRY, FACTS).body.decode().partition('id="limits"')[2].partition("</section>")[0]
    assert '<form id="limit-form" hidden>' in section
    assert re.findall(r'<input id="limit-([a-z]+)"', section) == ["day", "below", "percent"]
    assert 'id="freeze" hidden' in section


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


def test_a_webhook_is_not_offered_for_a_paid_tool_that_needs_an_argument():
    needy = replace(TINY["sights"], name="premium_sights", path="/api/pro/sights", tier=Tier.PREMIUM, credits=2)
    body = account_page(Registry([needy, *TINY]), FACTS).body.decode()
    listed = body.partition('id="webhook-endpoint"')[2].partition("</select>")[0]
    assert re.findall(r'value="([^"]*)"', listed) == ["deep", "credit-alerts"]
    assert re.findall(r'name="tool" value="([^"]*)"', body) == ["premium_sights", "premium_deep"]


def test_where_the_guide_is_not_served_the_page_leads_to_payments_instead():
    links = Page(account_page(TINY, FACTS).body.partition(b"<main")[2]).links
    assert "/docs/payments" in links
    assert "/docs/webhooks#conditions" not in links
    guided = Page(account_page(TINY, FACTS, guide=True).body.partition(b"<main")[2]).links
    assert "/docs/payments" not in guided
    assert any(src.endswith("/js/account.js") for src in Page(account_page(TINY, FACTS).body).scripts)


def test_a_visitor_token_is_offered_by_a_script_of_ours_and_not_in_a_form():
    body = account_page(REGISTRY, FACTS).body.decode()
    section = body.partition('<section id="visitor"')[2].partition("</section>")[0]
    assert '<button type="button" id="get-visitor">' in section
    assert "<form" not in section
