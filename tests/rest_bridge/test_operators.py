"""The operators' page is for this machine alone: whatever may come from another one is refused, with a reason."""

import pytest

from rest_bridge.operators import OperatorsFace
from rest_bridge.static_files import static_path
from tests.arranged import FACTS, client_of
from tests.calls.parts import START
from tests.catalog.tiny import TINY
from tests.rest_bridge.reports import report_of
from toolserver.clock import ManualClock

HERE = "http://127.0.0.1:9464"


def face(**more):
    async def read():
        return report_of(TINY)

    return OperatorsFace(FACTS, read, ManualClock(START), **({"bound_to": "127.0.0.1", "is_private": True} | more))


async def ask(path="/", method="GET", base_url=HERE, app=None, **headers):
    async with client_of(app or face(), base_url) as client:
        return await client.request(method, path, headers=headers)


async def test_the_page_and_its_json_are_never_kept_and_load_only_what_is_here():
    page, data = await ask(), await ask("/operators.json")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert (page.headers["cache-control"], data.headers["cache-control"]) == ("no-store", "no-store")
    assert data.json()["money"]["day"] == "2027-01-15"
    assert "access-control-allow-origin" not in page.headers
    style = await ask(static_path("css/style.css"))
    assert (style.status_code, style.headers["content-type"]) == (200, "text/css; charset=utf-8")


@pytest.mark.parametrize("name", ["http://localhost:1", "http://127.0.0.1", "http://[::1]:9464"])
async def test_names_of_this_machine_are_answered(name):
    assert (await ask(base_url=name)).status_code == 200


@pytest.mark.parametrize(
    "name", ["http://data.example", "http://127.0.0.1.evil.example:9464", "http://localhost.evil.example"]
)
async def test_a_name_that_somebody_pointed_here_is_refused(name):
    found = await ask(base_url=name)
    assert (found.status_code, "5.00" in found.text) == (421, False)


@pytest.mark.parametrize("name", ["x-forwarded-for", "forwarded", "via", "x-forwarded-host"])
@pytest.mark.parametrize("path", ["/", "/operators.json"])
async def test_a_proxy_does_not_make_it_public(name, path):
    found = await ask(path, **{name: "192.0.2.1"})
    assert (found.status_code, "5.00" in found.text) == (403, False)


@pytest.mark.parametrize("path", ["/", "/operators.json", static_path("css/style.css")])
async def test_on_an_address_that_others_reach_there_is_only_the_reason(path):
    found = await ask(path, app=face(bound_to="0.0.0.0", is_private=False))
    assert found.status_code == 403
    assert "metrics.host is 0.0.0.0" in found.text


async def test_it_is_only_read():
    assert (await ask(method="POST")).status_code == 405
    head = await ask(method="HEAD")
    assert (head.status_code, head.content, int(head.headers["content-length"]) > 1000) == (200, b"", True)
    again = await ask(**{"if-none-match": (await ask()).headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", ["/operators", "/api/btc-price", "/static/x/none.css"])
async def test_nothing_else_is_here(path):
    found = await ask(path)
    assert found.status_code == 404
    assert "/metrics" in found.text
