"""The views of MCP Apps as text: small, whole, and without anything that would be loaded. tests/live has them drawn."""

import json
import re

import pytest

from rest_bridge.pages.views import SCHEME, Views, has_view, write_view
from rest_bridge.static_files import read_static_files
from tests.arranged import FACTS
from tests.requirements import proves
from tests.served import all_tools
from toolserver.registry.registry import Tier

MOST = 40_000  # bytes of a view
NAMED = {
    "briefing",
    "btc_price",
    "earthquakes",
    "forex",
    "premium_briefing",
    "premium_correlation_matrix",
    "premium_whales",
    "premium_world_deltas",
    "service_status",
    "stocks",
    "weather",
}
VIEWED = [operation for operation in all_tools() if has_view(operation)]


@proves("apps.views")
def test_tools_with_something_to_draw_have_a_view_and_no_others():
    names = {operation.name for operation in VIEWED}
    assert names >= NAMED
    assert not any(operation.tier not in (Tier.FREE, Tier.PREMIUM) for operation in VIEWED)
    views = Views(all_tools(), FACTS)
    assert {operation.name for operation in all_tools() if views.find_address(operation.name)} == names


@proves("apps.small")
@pytest.mark.parametrize("operation", VIEWED, ids=lambda operation: operation.name)
def test_a_view_is_small_loads_nothing_and_has_all_that_it_names(operation):
    text = write_view(operation, FACTS)
    assert len(text.encode()) < MOST
    assert not re.search(r"\bimport\b|\bexport\b|@import|url\(|\bsrc=|<link|fetch\(|XMLHttpRequest|innerHTML", text)
    assert text.count("<script") == text.count("</script>") == 2
    described = json.loads(re.search(r'id="tool">(.*)</script>', text)[1])
    assert described["name"] == operation.name
    made = re.findall(r'^modules\["([\w.]+)"\] = await', text, re.MULTILINE)
    assert len(made) == len(set(made))
    for index, name in enumerate(made):
        body = text.split(f'modules["{name}"] = await')[1].split("\nmodules[")[0]
        static = re.findall(r'^const \{ [^}]+ \} = modules\["([\w.]+)"\]', body, re.MULTILINE)
        assert set(static) <= set(made[:index]), name
    for picture in operation.pictures:
        assert {"series": "lines.js", "text": "prompt.js"}.get(picture.kind, f"{picture.kind}.js") in made


@proves("apps.one-code")
def test_the_code_that_draws_is_that_of_pages():
    text = write_view(all_tools()["premium_whales"], FACTS)
    for name in ("pictures.js", "flows.js", "timeline.js", "table.js", "format.js"):
        module = read_static_files()[f"js/{name}"].body.decode()
        for line in module.splitlines():
            if not line.startswith(("import", "//", "/**", "export")) and "import(" not in line and "*" not in line:
                assert line.strip() in text, line


def test_an_address_changes_with_the_text_and_older_ones_are_still_read():
    views = Views(all_tools(), FACTS)
    addresses = {name: views.find_address(name) for name in NAMED}
    assert len(set(addresses.values())) == len(NAMED)
    for name, address in addresses.items():
        assert re.fullmatch(rf"{SCHEME}{name}\.[0-9a-f]{{12}}\.html", address)
        assert views.read(address) == views.read(f"{SCHEME}{name}.000000000000.html")
    for unknown in ("ui://other/weather.0.html", f"{SCHEME}none.0.html", f"{SCHEME}payment_confirm.0.html", ""):
        assert views.read(unknown) is None
