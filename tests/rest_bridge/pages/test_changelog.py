"""The changelog, as a page and as it is."""

from pathlib import Path

from rest_bridge.documents import documents
from rest_bridge.pages.render import markdown_to_html
from tests.catalog.tiny import FACTS, TINY
from tests.requirements import proves
from tests.rest_bridge.made import CHANGES, made
from tests.rest_bridge.markup import Page
from toolserver.registry.deprecations import write_table
from toolserver.registry.site_facts import CODE_HISTORY

USERS = """\
# What changed

The [history](../CHANGELOG.md).

## 2026-11-28

- A field more, see [limits](limits.md#keys) and [gone](gone.md).
"""


@proves("version.changelog")
def test_the_changelog_is_a_page_and_stays_markdown_for_who_wants_that():
    document = made(TINY)
    page = " ".join(document["/changelog"].body.decode().split())
    assert "<h2>[Unreleased]</h2>" in page
    assert "<li><code>sights</code>: &lt;new&gt; and high</li>" in page
    assert '<strong>more</strong> at <a href="https://more.example/">the page</a>' in page
    assert document["/changelog.md"].body.decode().replace(write_table(), "") == CHANGES
    assert document["/changelog.md"].content_type.startswith("text/markdown")


def test_the_changes_for_users_are_apart_from_the_history_of_the_code():
    listed = "# Docs\n\n## Users\n\n- [Changes](api-changes.md)\n- [Limits](limits.md)\n"
    guides = {"README": listed, "api-changes": USERS, "limits": "# Limits\n"}
    written = documents(TINY, FACTS, changes=CHANGES, guides=guides)
    page, history = Page(written["/changelog"].body), Page(written[CODE_HISTORY].body)
    assert "A field more" in page.text
    assert "new" not in page.text.partition("2026-11-28")[2]
    assert FACTS.url(CODE_HISTORY) in page.links
    assert FACTS.url("/docs/limits#keys") in page.links
    assert "see limits and gone." in page.text
    assert "[Unreleased]" in history.text
    assert written["/changelog.md"].body.decode().replace(write_table(), "") == USERS
    assert f'href="{CODE_HISTORY}"' in written["/docs/api-changes"].body.decode()


def test_the_project_s_own_changelog_reads_well_as_a_page():
    source = (Path(__file__).resolve().parents[3] / "CHANGELOG.md").read_text(encoding="utf-8")
    page = Page(markdown_to_html(source).encode())
    assert page.faults == []
    assert page.names.count("h1") == 1
    assert "**" not in page.text
    assert "](" not in page.text
