"""The changelog, as a page and as it is."""

from pathlib import Path

from rest_bridge.pages.render import markdown_to_html
from tests.catalog.tiny import TINY
from tests.requirements import proves
from tests.rest_bridge.made import CHANGES, made
from tests.rest_bridge.markup import Page
from toolserver.registry.deprecations import write_table


@proves("version.changelog")
def test_the_changelog_is_a_page_and_stays_markdown_for_who_wants_that():
    document = made(TINY)
    page = " ".join(document["/changelog"].body.decode().split())
    assert "<h2>[Unreleased]</h2>" in page
    assert "<li><code>sights</code>: &lt;new&gt; and high</li>" in page
    assert '<strong>more</strong> at <a href="https://more.example/">the page</a>' in page
    assert document["/changelog.md"].body.decode().replace(write_table(), "") == CHANGES
    assert document["/changelog.md"].content_type.startswith("text/markdown")


def test_the_project_s_own_changelog_reads_well_as_a_page():
    source = (Path(__file__).resolve().parents[3] / "CHANGELOG.md").read_text(encoding="utf-8")
    page = Page(markdown_to_html(source).encode())
    assert page.faults == []
    assert page.names.count("h1") == 1
    assert "**" not in page.text
    assert "](" not in page.text
