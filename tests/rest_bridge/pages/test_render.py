"""Templates and Markdown: everything is escaped, links are web addresses, tables are read on a narrow screen."""

import pytest
from jinja2 import UndefinedError

from rest_bridge.pages.render import is_easy, is_web_address, markdown_to_html, prose_to_html, render_page, render_text
from rest_bridge.static_files import static_path
from tests.catalog.tiny import FACTS, TINY
from tests.rest_bridge.markup import Page
from toolserver.registry.site_facts import SiteFacts


def page(facts: SiteFacts = FACTS, *, path="/changelog", title="T", text="# T\n\nwords", **more):
    return render_page("markdown.html", TINY, facts, path=path, title=title, text=text, **more).body.decode()


# --- templates ---


def test_values_are_escaped_in_pages():
    assert "<title>&lt;b&gt; &amp; c · toolserver</title>" in page(title="<b> & c")


def test_a_value_that_a_template_needs_and_does_not_get_is_an_error():
    with pytest.raises(UndefinedError):
        render_text("payments.md")


def test_the_page_that_is_shown_is_marked_in_the_navigation():
    assert page(path="/changelog").count("aria-current") == 1
    assert '<a href="/docs" aria-current="true">' in page(path="/docs/webhooks")
    assert page(path="/docs/webhooks").count("aria-current") == 1
    assert '<a href="/changelog" aria-current="page">' in page(path="/changelog")
    assert "aria-current" not in page(path="/elsewhere")


def test_the_home_page_is_titled_by_what_it_is_about():
    assert "<title>T</title>" in page(path="/")


def test_a_page_names_its_markdown_and_the_contact_where_there_are_any():
    assert 'type="text/markdown" href="/x.md"' in page(markdown_path="/x.md")
    assert "text/markdown" not in page()
    assert "Contact: ops@data.example" in page()
    assert "Contact:" not in page(SiteFacts("https://data.example", "data.example"))


def test_links_start_with_the_path_of_the_public_address():
    html = page(SiteFacts("https://data.example/live", "data.example"))
    assert f'<link rel="stylesheet" href="/live{static_path("css/style.css")}">' in html
    assert f'content="https://data.example/live{static_path("card.png")}"' in html
    assert '<html lang="en" data-base="/live">' in html
    assert '<link rel="canonical" href="https://data.example/live/changelog">' in html


def test_a_page_loads_the_scripts_of_every_page_and_its_own():
    html = page(scripts=["chart.js"])
    for name in ("page.js", "chart.js"):
        assert f'<script type="module" fetchpriority="low" src="{static_path(f"js/{name}")}"></script>' in html
    with pytest.raises(KeyError):
        page(scripts=["none.js"])


def test_structured_data_stay_data():
    html = page(structured={"name": "</script><b>"})
    assert '<script type="application/ld+json">{"name": "\\u003c/script\\u003e\\u003cb\\u003e"}</script>' in html


# --- Markdown ---


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "data:text/html,x", "//elsewhere.example", "/here", "ftp://x"]
)
def test_a_link_that_is_no_web_address_stays_text(address):
    assert str(markdown_to_html(f"[x]({address})")) == f"<p>[x]({address})</p>\n"


def test_a_web_address_becomes_a_link():
    assert '<a href="https://x.example/a">x</a>' in markdown_to_html("[x](https://x.example/a)")


def test_markup_in_markdown_is_escaped():
    html = markdown_to_html('# <script>\n\n<b onclick="x">y</b>\n\n```\n<i>\n```\n')
    assert Page(html.encode()).names == ["h1", "p", "pre", "code"]
    assert "&lt;script&gt;" in html


def test_each_cell_of_a_table_carries_its_heading_and_each_row_is_headed_by_its_first_cell():
    html = markdown_to_html("| A | B `x` |\n| --- | --- |\n| `1` | <b> |\n| 2 | |\n\n| C |\n| --- |\n| 3 |\n")
    assert '<th scope="col">A</th>' in html
    assert '<th scope="row"><code>1</code></th>\n<td data-label="B `x`">&lt;b&gt;</td>' in html
    assert '<th scope="row">2</th>\n<td data-label="B `x`"></td>' in html
    assert '<th scope="row">3</th>' in html
    assert Page(html.encode()).faults == []


def test_a_column_of_numbers_has_a_class_and_no_element_has_a_style():
    html = markdown_to_html("| row | cost | server |\n|--:|--:|:--|\n| 1 | 2.5 | a |\n")

    assert "style" not in html
    assert [part for part in html.split("<") if "number" in part] == [
        *['th class="number" scope="col">row', 'th class="number" scope="col">cost'],
        *['th class="number" scope="row">1', 'td class="number" data-label="cost">2.5'],
    ]


def test_a_column_without_a_heading_has_none():
    html = markdown_to_html("| A | |\n| --- | --- |\n| 1 | 2 |\n")
    assert html.count('<th scope="col">') == 1
    assert "<td></td>" in html
    assert Page(html.encode()).faults == []


def test_the_paragraph_below_the_title_leads_the_page_and_no_other():
    html = markdown_to_html("# T\n\none\n\ntwo\n\n## U\n\nthree\n")
    assert html.count('class="lead"') == 1
    assert '<p class="lead">one</p>' in html


def test_in_a_sentence_only_code_is_markup():
    assert prose_to_html("use `a<b` **so** <i> [x](https://x.example)") == (
        "use <code>a&lt;b</code> **so** &lt;i&gt; [x](https://x.example)"
    )


# --- tools ---


def test_a_tool_is_easy_when_a_plain_get_answers():
    assert {operation.name for operation in TINY if is_easy(operation)} == {"digest"}


def test_the_navigation_leads_to_the_pages_that_have_a_name_there():
    body = page(path="/elsewhere")
    top = Page(body.partition('<nav aria-label="Main">')[2].partition("</nav>")[0].encode())
    bottom = Page(body.partition('<nav aria-label="More">')[2].partition("</nav>")[0].encode())
    assert top.links == ["/docs", "/docs/payments", "/buy", "/account", "/receipts", "/changelog", "/status"]
    aside = ("/no-charge", "/openapi.json", "/llms.txt", "/api/meta", "/problems", "/sources", "/design")
    assert bottom.links == [*aside, "/docs#licence"]


def test_only_web_addresses_are_web_addresses():
    addresses = ("https://x", "http://x", "httpsx://", "ftp://x", "//x", " https://x", "HTTPS")
    assert [is_web_address(address) for address in addresses] == [True, True, *[False] * 5]


def test_only_a_paragraph_directly_below_the_title_is_its_lead():
    assert "lead" not in markdown_to_html("# T\n\n- entry\n\nwords\n")
    assert "lead" not in markdown_to_html("## T\n\nwords\n")


def test_what_a_page_is_about_is_told_to_search_engines():
    assert '<meta name="description" content="about &lt;it&gt;">' in page(about="about <it>")
    assert 'name="description"' not in page()


def test_text_in_markdown_templates_is_not_escaped_and_numbers_keep_their_column():
    html = markdown_to_html("| a | n |\n|---|--:|\n| x | 1 |\n| y | 2 |\n")
    assert html.count('class="number"') == 3
    assert '<table class="narrow">' in html


def test_a_date_stays_on_one_line_and_the_text_around_it_is_escaped():
    html = markdown_to_html("Read <b> 2026-11-28), `2026-11-28`, 12026-11-28")
    date = '<span class="short">2026-11-28</span>'
    assert html == f"<p>Read &lt;b&gt; {date}), <code>2026-11-28</code>, 12026-11-28</p>\n"
