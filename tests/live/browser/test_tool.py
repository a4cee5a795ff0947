"""Pages of tools in Chromium: forms run, pictures have every point, hostile words stay words."""

import json
import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.live.browser.visitor import DESK, PHONE, Visitor, visiting
from tests.live.processes import Program

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

SOME = ("earthquakes", "btc_price", "premium_correlation_matrix", "weather", "webhook_subscribe", "service_status")
HOSTILE = '<script>document.title="broken"</script><img src=x onerror=alert(1)>\u202egnp.exe ' + "w" * 10_000


def filled(page: Page) -> None:
    page.wait_for_selector("#answer[data-filled]", timeout=60_000)


def run(page: Page) -> None:
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#answer-about")).to_contain_text("Your call", timeout=30_000)


def points(page: Page, kind: str) -> int:
    return int(page.locator(f"#as-picture {kind}[data-points]").first.get_attribute("data-points") or 0)


def answer_of(demo: Program, path: str, token: str | None = None) -> Any:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return httpx.get(demo.url + path, headers=headers, timeout=30).raise_for_status().json()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESK])
def test_pages_of_tools_fit_and_bar_nobody(browser: Browser, demo: Program, width: int, theme) -> None:
    with visiting(browser, demo.url, width=width, theme=theme) as window:
        for name in SOME:
            page = window.open(f"/t/{name}", settled=False)
            if page.locator('link[rel="alternate"][type="application/json"]').count():
                filled(page)
            window.check()
            window.check_accessibility()


def test_a_map_has_a_mark_for_every_row_with_a_place(visitor: Visitor, demo: Program) -> None:
    page = visitor.open("/t/earthquakes", settled=False)
    run(page)
    shown = json.loads(page.locator("#as-json code").text_content() or "")["data"]["earthquakes"]
    assert points(page, "svg.world") == page.locator("svg.world .mark").count() == len(shown) > 10
    page.get_by_role("tab", name="Table").click()
    expect(page.locator("#as-table tbody").last.locator("tr")).to_have_count(len(shown))
    visitor.check()


def test_a_form_runs_with_its_arguments_and_shows_exactly_that_call(visitor: Visitor, demo: Program) -> None:
    page = visitor.open("/t/earthquakes", settled=False)
    page.get_by_label("limit").fill("3")
    expect(page.locator("#code code").first).to_have_text(f"curl '{demo.url}/api/earthquake?limit=3'")
    page.get_by_role("tab", name="MCP").click()
    message = json.loads(page.locator("#code [role=tabpanel]:not([hidden]) code").text_content() or "")
    assert message["params"] == {"name": "earthquakes", "arguments": {"limit": 3}}
    run(page)
    expect(page.locator("#as-picture svg.world[data-points]")).to_have_attribute("data-points", "3")
    visitor.check()


def test_a_picture_that_is_late_does_not_stand_below_the_words_of_a_later_call(visitor: Visitor) -> None:
    held: list[Route] = []

    def give_a_line(route: Route) -> None:
        kept = route.fetch().json()
        points = [[1_767_225_600, 1.0], [1_767_229_200, 2.0]]
        kept["lines"] = [{"label": "Earthquakes", "unit": "M", "points": points, "week": [], "month": [], "seen": True}]
        route.fulfill(json=kept)

    visitor.page.route("**/t/earthquakes.json", give_a_line)
    visitor.page.route("**/js/series.js", lambda route: held.append(route))
    page = visitor.open("/t/earthquakes", settled=False)
    expect(page.locator("#answer-about")).to_contain_text("latest answer", timeout=60_000)
    page.wait_for_function("() => document.querySelector('#as-picture svg.world')")
    run(page)
    assert len(held) == 1, "the kept answer's line of the past day is still being loaded"
    held[0].continue_()
    filled(page)
    expect(page.locator("#as-picture figure")).to_have_count(1)
    expect(page.locator("#as-picture")).not_to_contain_text("seen here in the past day")
    visitor.check()


def test_the_chart_library_is_loaded_with_the_first_line_and_not_where_nothing_has_a_line(visitor: Visitor) -> None:
    asked: list[str] = []
    visitor.page.on("request", lambda request: asked.append(request.url.rsplit("/", 1)[-1]))
    page = visitor.open("/t/premium_correlation_matrix", settled=False)
    filled(page)
    assert not {"uPlot.js", "uPlot.css", "series.js"} & set(asked)
    page = visitor.open("/t/premium_macro", settled=False)
    filled(page)
    expect(page.locator("#as-picture .chart canvas").first).to_be_visible()
    assert [asked.count(name) for name in ("uPlot.js", "uPlot.css")] == [1, 1]
    visitor.check()


def test_an_answer_is_shown_without_its_line_when_the_library_does_not_load(browser: Browser, demo: Program) -> None:
    with visiting(browser, demo.url) as other:
        other.page.route("**/uPlot.js", lambda route: route.abort())
        page = other.open("/t/btc_price", settled=False)
        filled(page)
        expect(page.locator("#headline .value")).to_contain_text("$")
        expect(page.locator("#as-table")).to_be_visible()
        expect(page.locator("#as-picture .chart")).to_have_count(0)


def test_the_figure_says_how_it_changed_and_its_past_day_is_drawn_from_what_a_source_keeps(visitor: Visitor) -> None:
    page = visitor.open("/t/btc_price", settled=False)
    filled(page)
    shown = json.loads(page.locator("#as-json code").text_content() or "")["data"]
    headline = page.locator("#headline")
    expect(headline.locator(".value")).to_contain_text(f"${shown['price_usd']:,.2f}")
    word = "up" if shown["change_24h_percent"] > 0 else "down"
    expect(headline.locator(".change .unseen")).to_have_text(word)
    expect(headline).to_contain_text("Bitcoin, past 24 h")
    day = page.locator("#as-picture .chart")
    assert int(day.first.get_attribute("data-points") or 0) > 20, "a day of candles, on a server that has just begun"
    page.get_by_role("tab", name="Week").click()
    week = page.locator("#as-picture .days .chart:visible")
    assert int(week.first.get_attribute("data-points") or 0) > 5 * 24
    expect(week.first.locator("canvas")).to_be_visible()
    expect(page.locator("#as-picture figcaption").first).to_have_text("Bitcoin")
    visitor.check()


@pytest.mark.parametrize("name", ["forex", "economic_data", "fear_greed"])
def test_a_figure_that_is_published_once_a_day_has_its_past_month(visitor: Visitor, name: str) -> None:
    page = visitor.open(f"/t/{name}", settled=False)
    filled(page)
    month = page.locator("#as-picture .days .chart")
    assert 15 < int(month.first.get_attribute("data-points") or 0) <= 31
    expect(month.first.locator("canvas")).to_be_visible()
    expect(page.locator("#as-picture figcaption").first).to_contain_text("the past month")
    visitor.check()


def test_the_magnetic_field_of_the_earth_has_its_past_week(visitor: Visitor) -> None:
    page = visitor.open("/t/space_weather", settled=False)
    filled(page)
    page.get_by_role("tab", name="Week").click()
    week = page.locator("#as-picture .days .chart:visible")
    assert 48 < int(week.first.get_attribute("data-points") or 0) <= 57
    expect(week.first.locator("canvas")).to_be_visible()
    visitor.check()


def test_a_chart_says_its_newest_value_until_a_moment_is_pointed_at(visitor: Visitor) -> None:
    page = visitor.open("/t/fear_greed", settled=False)
    filled(page)
    shown = json.loads(page.locator("#as-json code").text_content() or "")["data"]
    said = page.locator("#as-picture .u-legend .u-value").last
    expect(said).to_have_text(str(shown["value"]))
    box = page.locator("#as-picture .u-over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 2, box["y"] + 20)
    first = page.locator("#as-picture .u-legend .u-value").first.inner_text()
    page.mouse.move(2, 2)
    expect(said).to_have_text(str(shown["value"]))
    assert page.locator("#as-picture .u-legend .u-value").first.inner_text() != first
    visitor.check()


def test_a_shortened_list_is_told_in_plain_words_and_not_as_trouble(visitor: Visitor) -> None:
    page = visitor.open("/t/earthquakes", settled=False)
    filled(page)
    note = page.locator("#answer-about p").last
    expect(note).to_have_text(re.compile(r"^Earthquakes: \d+ of \d+ are listed\.$"))
    expect(note).to_have_class("soft small")
    expect(page.locator("#meaning")).to_be_hidden()
    page.get_by_role("tab", name="Table").click()
    expect(page.locator("#meaning")).to_be_visible()
    visitor.check()


@pytest.mark.parametrize("path", ["/t/earthquakes", "/docs/webhooks", "/receipts"])
def test_no_button_covers_code_on_a_phone(browser: Browser, demo: Program, path: str) -> None:
    with visiting(browser, demo.url, width=PHONE) as window:
        page = window.open(path)
        frames = page.locator(".copied:visible").all()
        assert frames
        for frame in frames:
            code, button = frame.locator("pre").bounding_box(), frame.locator("button").bounding_box()
            assert code is not None
            assert button is not None
            assert code["x"] + code["width"] <= button["x"]
        window.check()


def test_a_field_says_what_it_means_in_the_table_and_in_the_json(visitor: Visitor) -> None:
    page = visitor.open("/t/earthquakes", settled=False)
    run(page)
    text = page.locator("#as-json code").text_content()
    page.get_by_role("tab", name="JSON").click()
    assert page.locator("#as-json code").text_content() == text, "colours change no letter"
    page.locator('#as-json [data-field="data.earthquakes[].magnitude"]').first.click()
    row = page.locator("#answer-fields tr", has=page.get_by_text("data.earthquakes[].magnitude", exact=True))
    meaning = row.locator("[data-label=Meaning]").text_content() or ""
    expect(page.locator("#meaning")).to_have_text(f"data.earthquakes[].magnitude {meaning}")
    page.get_by_role("tab", name="Table").click()
    page.locator('#as-table [data-field="data.earthquakes[].location"]').hover()
    expect(page.locator("#meaning")).to_contain_text("data.earthquakes[].location")
    assert page.locator("#as-json .code-number").count() > 10
    visitor.check()


def test_a_place_is_chosen_on_a_map_and_stands_in_the_call(visitor: Visitor) -> None:
    page = visitor.open("/t/weather", settled=False)
    page.get_by_text("Choose the place on a map").click()
    page.locator("svg.chooser").click(position={"x": 30, "y": 20})
    lat, lon = (float(page.get_by_label(name, exact=True).input_value()) for name in ("lat", "lon"))
    assert lat > 45
    assert lon < -90
    expect(page.locator("#code code").first).to_contain_text(f"lat={lat:g}&lon={lon:g}")
    page.get_by_role("tab", name="LangChain").click()
    code = page.locator("#code [role=tabpanel]:not([hidden]) code")
    expect(code).to_contain_text("langchain_mcp_adapters")
    expect(code).to_contain_text(f'ainvoke({{"lat": {lat:g}, "lon": {lon:g}}})')
    visitor.check()


def test_a_board_names_its_figures_as_people_write_them(visitor: Visitor) -> None:
    page = visitor.open("/t/premium_macro", settled=False)
    filled(page)
    names = page.locator("#as-picture ul.figures h3").all_inner_texts()
    assert {"GDP growth", "CPI", "Oil", "Natural gas", "VIX", "Fed rate"} <= set(names)


@pytest.mark.parametrize(
    ("name", "drawn"),
    [
        ("premium_macro", "ul.figures[data-points]"),
        ("premium_world_deltas", ".timeline[data-points]"),
        ("premium_whales", ".flows[data-points]"),
        ("premium_exchange_flows", ".flows .flow"),
        ("premium_correlation_matrix", ".matrix[data-points]"),
        ("premium_agent_context", "pre.prompt"),
    ],
)
def test_a_premium_tool_shows_one_sample_that_is_drawn_and_marked_as_such(
    visitor: Visitor, name: str, drawn: str
) -> None:
    page = visitor.open(f"/t/{name}", settled=False)
    filled(page)
    expect(page.locator("#answer-about")).to_contain_text("A fixed sample from the simulated world")
    expect(page.locator(f"#as-picture {drawn}").first).to_be_visible()
    assert json.loads(page.locator("#as-json code").text_content() or "")["stale"] is False
    expect(page.get_by_text(re.compile(r"A call costs \d credits?, US\$0\.0\d"))).to_be_visible()
    visitor.check()


def test_a_wrong_argument_is_explained_beside_the_form(visitor: Visitor) -> None:
    visitor.expected = {400}
    page = visitor.open("/t/weather", settled=False)
    page.get_by_label("lat", exact=True).fill("12")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#trouble .problem")).to_contain_text("invalid_arguments")
    visitor.check()


def test_a_premium_tool_shows_an_example_and_runs_with_a_token_of_the_page_alone(
    visitor: Visitor, demo: Program
) -> None:
    token = demo.ready["token"]
    page = visitor.open("/t/premium_macro", settled=False)
    expect(page.locator("#answer-about")).to_contain_text("A fixed sample from the simulated world")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#trouble")).to_contain_text("needs a token")
    page.get_by_label("Token").fill(token)
    page.get_by_label("history").select_option("30d")
    run(page)
    expect(page.locator("#answer-about")).to_contain_text(re.compile(r"\d+ credits left"))
    shown = json.loads(page.locator("#as-json code").text_content() or "")
    series = [one["series"] for one in shown["economic"].values() if one and one.get("series")]
    series += list(shown["forex"]["series"].values())
    charts = page.locator("#as-picture .chart")
    expect(charts).to_have_count(len(series))
    assert [int(one.get_attribute("data-points") or 0) for one in charts.all()] == [len(one) for one in series]
    expect(charts.first.locator("canvas")).to_be_visible()
    assert token not in page.content()
    assert page.evaluate("localStorage.length + sessionStorage.length") == 0
    assert token not in page.url
    visitor.check()


def test_a_heat_map_has_a_cell_for_every_pair(visitor: Visitor, demo: Program) -> None:
    page = visitor.open("/t/premium_correlation_matrix", settled=False)
    page.get_by_label("Token").fill(demo.ready["token"])
    run(page)
    matrix = json.loads(page.locator("#as-json code").text_content() or "")["matrix"]
    assert page.locator(".matrix tbody td").count() == len(matrix) ** 2 == points(page, "table.matrix")
    visitor.check()


def test_states_are_a_grid_and_figures_are_bars(visitor: Visitor) -> None:
    page = visitor.open("/t/service_status", settled=False)
    run(page)
    shown = json.loads(page.locator("#as-json code").text_content() or "")["data"]
    expect(page.locator(".states li")).to_have_count(len(shown))
    page = visitor.open("/t/forex", settled=False)
    run(page)
    shown = json.loads(page.locator("#as-json code").text_content() or "")["data"]
    expect(page.locator(".bar-row")).to_have_count(len(shown["change_percent"]))
    visitor.check()


def test_words_from_the_world_stay_words_on_every_kind_of_picture(visitor: Visitor) -> None:
    """The kept answer is replaced by one whose every text is hostile."""

    def spoil(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: spoil(member) for name, member in value.items()}
        if isinstance(value, list):
            return [spoil(member) for member in value]
        return HOSTILE if isinstance(value, str) and not re.match(r"\d{4}-|https", value) else value

    def answer(route: Route) -> None:
        told = route.fetch().json()
        body = told["answer"] or {}
        for name in ("data", "warning"):
            if name in body:
                body[name] = spoil(body[name])
        if isinstance(body.get("data"), list) and body["data"] and "url" in body["data"][0]:
            body["data"][0]["url"] = "javascript:alert(1)"
        route.fulfill(json=told)

    visitor.page.on("dialog", lambda dialog: visitor.faults.append("a dialog was opened"))
    visitor.page.route("**/t/*.json", answer)
    for name in ("earthquakes", "service_status", "predictions", "tech_news", "severe_weather", "disaster_alerts"):
        page = visitor.open(f"/t/{name}", settled=False)
        filled(page)
        title = page.title()
        for tab in ("Picture", "Table", "JSON"):
            page.get_by_role("tab", name=tab).click()
            visitor.check()
        assert page.title() == title != "broken"
        assert page.locator('#answer img, #answer script, #answer a[href^="javascript"]').count() == 0
        assert "onerror" in (page.locator("#answer").text_content() or "")


def test_a_tools_page_can_be_read_and_its_form_sent_without_javascript(browser: Browser, demo: Program) -> None:
    with visiting(browser, demo.url, scripts=False) as window:
        page = window.open("/t/earthquakes")
        text = page.locator("main").inner_text()
        assert "data.earthquakes[].magnitude" in text
        assert f"curl {demo.url}/api/earthquake" in text
        assert window.faults == []
