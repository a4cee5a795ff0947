"""Refusals in the form that gateways and sites give them."""

import json

import pytest

from toolserver.world.error_replies import (
    barred_reply,
    challenge,
    error,
    error_in_200,
    limited_reply,
    reason_of,
    unauthorized_reply,
    unresolved_reply,
)


@pytest.mark.parametrize("code", [500, 502, 503, 504])
def test_a_gateway_answers_with_a_page(code):
    reply = error(code, retry_after_s=7)

    assert (reply.status, reply.headers) == (code, {"Retry-After": "7"})
    assert reply.content_type.startswith("text/html")
    assert f"{code} {reason_of(code)}" in reply.body.decode()


@pytest.mark.parametrize("code", [400, 404, 418])
def test_other_refusals_are_a_line_of_json(code):
    assert json.loads(error(code).body) == {"error": reason_of(code), "status": code}


@pytest.mark.parametrize("code", [204, 304])
def test_some_statuses_have_no_body(code):
    assert error(code).body == b""


def test_an_unknown_status_has_no_reason():
    assert reason_of(599) == ""


def test_pages_for_browsers_are_html_whatever_their_status():
    assert (challenge().status, barred_reply(451).status) == (200, 451)
    assert challenge().body.startswith(b"<!DOCTYPE html>")
    assert b"not available in your region" in barred_reply(451).body


def test_errors_that_hide_in_a_good_status_are_json():
    assert error_in_200().status == 200
    assert json.loads(error_in_200().body)["error"]["code"] == 400


def test_refusals_name_their_status():
    assert unauthorized_reply().status == 401
    assert (limited_reply(30).status, limited_reply(30).headers) == (429, {"Retry-After": "30"})
    assert unresolved_reply().status == 599
