"""The modules that a page starts: all that they import, each after those that it imports."""

import pytest

from rest_bridge.pages.modules import list_modules, read_module
from rest_bridge.static_files import static_path
from tests.rest_bridge.made import PROJECT, html_pages


def test_modules_are_listed_once_and_after_those_that_they_import():
    listed = list_modules(("page.js", "home.js"))
    assert len(listed) == len(set(listed))
    assert listed[-1] == "home.js"
    assert listed.index("dom.js") < listed.index("copy.js") < listed.index("page.js")


def test_what_is_loaded_only_when_it_is_needed_is_not_listed():
    assert 'import("./map.js")' in read_module("pictures.js")
    assert "map.js" not in list_modules(("tool.js",))


def test_a_module_that_is_not_there_is_an_error():
    with pytest.raises(KeyError):
        list_modules(("none.js",))


def test_the_home_page_names_every_module_it_needs():
    found = html_pages(PROJECT)["/"].scripts
    assert [src for src in found if src != "of its own"] == [
        static_path(f"js/{name}") for name in list_modules(("page.js", "home.js"))
    ]
