"""The page in place of problem+json."""

from rest_bridge.pages.failure import failure_page, is_for_people
from tests.catalog.tiny import FACTS, TINY
from tests.rest_bridge.markup import Page

PROBLEM = {"title": "Not found", "detail": "Nothing.", "error": "not_found", "status": 404, "request_id": "req_1"}


def test_the_page_says_what_failed_and_where_the_code_is_explained():
    page = Page(failure_page(TINY, FACTS, PROBLEM).body)
    assert page.names.count("h1") == 1
    assert "/problems/not_found" in page.links
    assert "Perhaps you meant" not in page.text


def test_people_are_those_who_accept_html_outside_of_the_api():
    def asks(accept, path="/x", method="GET"):
        return is_for_people({"path": path, "method": method, "headers": [(b"accept", accept)]})

    assert asks(b"text/html")
    assert asks(b"text/html", method="HEAD")
    assert not asks(b"text/html", path="/api/x")
    assert not asks(b"text/html", method="POST")
    assert not asks(b"*/*")


def test_what_may_have_been_meant_is_a_link_unless_a_part_of_its_path_is_missing():
    near = PROBLEM | {"did_you_mean": ["/docs", "/api/x/{id}", "/status"]}
    body = failure_page(TINY, FACTS, near).body
    main = Page(body.partition(b"<main")[2])
    assert [link for link in main.links if link in ("/docs", "/status")] == ["/docs", "/status", "/docs"]
    assert "{id}" not in main.text
    assert "Perhaps you meant" not in Page(failure_page(TINY, FACTS, near | {"did_you_mean": ["/x/{id}"]}).body).text


def test_a_page_of_the_well_known_addresses_is_for_programs_and_one_header_among_others_is_enough():
    scope = {"path": "/.well-known/x", "method": "GET", "headers": [(b"accept", b"text/html")]}
    assert not is_for_people(scope)
    headers = [(b"x-other", b"text/html"), (b"accept", b"application/xml, text/html")]
    assert is_for_people(scope | {"path": "/wellknown", "headers": headers})
    assert not is_for_people(scope | {"path": "/x", "headers": headers[:1]})
