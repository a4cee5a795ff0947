"""What the first pages carry of the style sheet, and that it is little."""

import gzip

import pytest

from rest_bridge.pages.style_sheet import FRAME, HOME, STYLE, TOOL, choose_sections, write_style
from rest_bridge.static_files import TOKENS, read_static_files


@pytest.mark.parametrize("names", [HOME, TOOL])
def test_a_page_carries_the_tokens_and_its_sections_and_no_others(names):
    style = write_style(names)
    assert style.startswith(":root{color-scheme:light dark;--ground:")
    assert ".hero{" in write_style(HOME)
    assert ".hero{" not in write_style(TOOL)
    assert ".headline{" in write_style(TOOL)
    assert ".with-side{" not in style
    assert "/*" not in style
    assert "\n" not in style


def test_less_space_changes_no_rule():
    assert write_style(FRAME).count("{") == choose_sections(FRAME).count("{")
    assert "font:1rem/1.5 system-ui,sans-serif;" in write_style(FRAME)
    assert "clamp(1.75rem,1.3rem + 2vw,2.5rem)" in write_style(FRAME)
    assert 'content:attr(data-label) ": ";' in write_style(FRAME), "strings stay as they are"
    assert ".top a:hover,.bottom a:hover,.top a[aria-current]" in write_style(FRAME)


def test_a_section_that_is_not_there_is_an_error():
    with pytest.raises(ValueError, match="no section"):
        choose_sections(("no such",))


def test_what_a_page_carries_is_little():
    files = read_static_files()
    assert files[STYLE].body.startswith(files[TOKENS].body)
    assert len(gzip.compress(write_style(HOME).encode())) < 4_800
    assert len(gzip.compress(write_style(TOOL).encode())) < 4_800
