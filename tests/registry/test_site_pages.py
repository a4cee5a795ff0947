"""The list of pages."""

from tests.catalog.tiny import FREE, TINY
from toolserver.registry.site_pages import PAGES, pages


def test_pages_about_what_is_paid_for_are_there_only_where_something_is_sold():
    assert {page.path for page in pages(TINY)} - {page.path for page in pages(FREE)} == {
        page.path for page in PAGES if page.paid
    }


def test_paths_and_labels_stand_once():
    assert len({page.path for page in PAGES}) == len(PAGES)
    labels = [page.label for page in PAGES if page.label]
    assert len(set(labels)) == len(labels)


def test_what_the_navigation_has_at_the_top_is_a_page_for_people():
    assert all(page.media_type == "text/html" for page in PAGES if page.label and not page.aside)


def test_the_markdown_form_of_a_page_stands_beside_it():
    assert {page.markdown_path for page in PAGES if page.markdown} == {"/docs/payments.md", "/changelog.md"}
