"""What stands at which path: operations before pages, pages before what stands above them."""

from dataclasses import replace

import pytest

from rest_bridge.routes import Endpoint, PathTemplates, RouteTable
from tests.catalog.tiny import TINY

TEMPLATES = PathTemplates(["/a/{id}", "/a/{id}/b", "/a", "/x.y/{one}/{two}"])


async def page(scope, found):
    raise AssertionError("routes never run a page")


async def under(scope, found):
    raise AssertionError("routes never run a page")


async def mounted(scope, receive, send):
    raise AssertionError("routes never run a mounted app")


PAGES = {"/docs": page, "/api/*": under, "/docs/*": under}
ROUTES = RouteTable(TINY, PAGES, {"/api/mcp": mounted})


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/api/sights", ["GET", "HEAD", "OPTIONS"]),
        ("/api/payment/buy-credits", ["POST", "OPTIONS"]),
        ("/api/pro/subscribe/{id}", ["DELETE", "OPTIONS"]),
        ("/docs", ["GET", "HEAD", "OPTIONS"]),
        ("/docs/below", ["GET", "HEAD", "OPTIONS"]),
        ("/nothing", []),
    ],
)
def test_a_path_answers_the_methods_of_what_stands_there(path, methods):
    assert ROUTES.methods(path) == methods


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/docs", page),
        ("/docs/a", under),
        ("/docs/a/b", under),
        ("/docs/", None),
        ("/docsx", None),
        ("/api/sights", None),
        ("/api/payment/buy-credits", None),
        ("/api/other", under),
    ],
)
def test_a_page_above_answers_only_longer_paths_that_nothing_else_answers(path, found):
    assert ROUTES.page(path) is found


@pytest.mark.parametrize(
    ("path", "method", "name"),
    [
        ("/api/sights", "GET", "sights"),
        ("/api/sights", "HEAD", "sights"),
        ("/api/payment/buy-credits", "POST", "payment_buy_credits"),
        ("/api/pro/subscribe/{id}", "DELETE", "webhook_unsubscribe"),
    ],
)
def test_an_operation_is_found_by_path_and_method(path, method, name):
    assert ROUTES.operation(path, method).name == name


def test_arguments_in_a_path_lead_to_its_template():
    assert ROUTES.match("/api/pro/subscribe/wh_1") == ("/api/pro/subscribe/{id}", {"id": "wh_1"})
    assert ROUTES.match("/api/sights") == ("/api/sights", {})


def test_paths_of_every_kind_are_suggested_for_a_wrong_one():
    assert ROUTES.similar("/api/sigths")[0] == "/api/sights"
    assert "/api/mcp" in ROUTES.similar("/api/mpc")
    assert "/docs" in ROUTES.similar("/dcs")
    assert ROUTES.similar("/zzzzzzzzzzzzzzz" * 50) == []


def test_what_stands_below_a_page_is_no_path_that_could_be_suggested():
    assert not any("*" in near for path in ("/docs/x", "/api/x", "/docs/*") for near in ROUTES.similar(path))
    assert ROUTES.page("/docs/*") is under


def test_a_path_with_operations_of_two_methods_answers_both():
    get, delete = TINY["digest"], TINY["webhook_unsubscribe"]
    routes = RouteTable([replace(get, path="/api/x"), replace(delete, path="/api/x")], {}, {})
    assert routes.methods("/api/x") == ["GET", "HEAD", "DELETE", "OPTIONS"]
    assert (routes.operation("/api/x", "HEAD").name, routes.operation("/api/x", "DELETE").name) == (
        *("digest", "webhook_unsubscribe"),
    )


def test_an_operation_at_the_path_of_a_page_leaves_the_page_where_it_is():
    routes = RouteTable(TINY, {"/api/digest": page, "/api/*": under}, {})
    assert routes.page("/api/digest") is page
    assert routes.methods("/api/digest") == ["GET", "HEAD", "OPTIONS"]


def test_a_path_that_fits_a_template_is_looked_up_by_it_with_its_arguments():
    assert TEMPLATES.match("/a/1") == ("/a/{id}", {"id": "1"})
    assert TEMPLATES.match("/a/1/b") == ("/a/{id}/b", {"id": "1"})
    assert TEMPLATES.match("/x.y/1/2") == ("/x.y/{one}/{two}", {"one": "1", "two": "2"})


def test_every_other_path_stands_for_itself():
    for path in ("/a", "/a/", "/a/1/c", "/xzy/1/2", "/a//b", "/a/{id}/c", "/"):
        assert TEMPLATES.match(path) == (path, {})


def test_an_argument_in_a_path_is_decoded_and_never_empty_or_of_two_parts():
    assert TEMPLATES.match("/a/1%202%2Fb") == ("/a/{id}", {"id": "1 2/b"})
    assert TEMPLATES.match("/x.y/%61/{one}").arguments == {"one": "a", "two": "{one}"}
    assert TEMPLATES.match("/x.y//2") == ("/x.y//2", {})
    assert TEMPLATES.match("/x.y/1") == ("/x.y/1", {})


def test_the_key_of_the_default_answer_is_there_only_where_no_argument_is_needed():
    keys = {operation.name: Endpoint(operation).default_key is not None for operation in TINY}
    assert keys["digest"]
    assert not keys["sights"]


def test_only_answers_that_are_kept_and_need_no_argument_are_found_without_reading_one():
    assert {operation.name for operation in TINY if Endpoint(operation).default_key is not None} == {
        *("digest", "premium_deep")
    }
    for operation in TINY:
        endpoint = Endpoint(operation)
        assert (endpoint.arguments is None) == (endpoint.default_key is None)
