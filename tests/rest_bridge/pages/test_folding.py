"""Long tables and older changes stand in parts to open, and nothing of them is lost."""

import re

import pytest

from rest_bridge.pages.folding import MANY, MOST_ROWS, NEWEST, ROWS, fold_changes, fold_tables
from rest_bridge.pages.render import markdown_to_html
from tests.rest_bridge.markup import Page


def table(rows):
    return "\n".join(["| a | b |", "|---|---|", *(f"| `x.{row}`, more | row {row} |" for row in range(rows))])


def release(name, entries):
    return f"## [{name}]\n\n### Added\n\n" + "\n".join(f"- {name} entry {entry}\n  - below" for entry in range(entries))


def folded(source):
    """The document with so many other rows that its long tables are folded."""
    others = [f"| c |\n|---|\n| other {row} |" for row in range(MANY)]
    return str(markdown_to_html("\n\n".join([source, *others]), fold_tables)).partition(" other ")[0]


def test_a_document_with_few_rows_stays_as_it_is():
    assert "details" not in str(markdown_to_html(table(MANY), fold_tables))
    assert "details" in str(markdown_to_html(table(MANY + 1), fold_tables))


@pytest.mark.parametrize(
    ("rows", "parts"),
    [(1, []), (MOST_ROWS, []), (MOST_ROWS + 1, [8]), (ROWS, [20]), (ROWS + 1, [11, 10]), (50, [17, 17, 16])],
)
def test_a_long_table_stands_in_parts_of_about_the_same_size_and_each_row_in_one(rows, parts):
    body = folded(f"words\n\n{table(rows)}\n\nmore")
    folds = re.findall(r'<details class="rows">(.*?)</details>', body, re.DOTALL)

    assert [part.count("</tr>") - 1 for part in folds] == parts
    assert re.findall(r"row \d+", body) == [f"row {row}" for row in range(rows)]
    assert all('data-label="b"' in part and "<thead>" in part for part in folds)


def test_a_part_is_named_by_its_first_and_last_row():
    rows = table(MOST_ROWS + 1)

    assert '<summary>x.0 to x.7 <span class="soft small">8</span></summary>' in folded(rows)
    assert "<summary>&lt;b&gt;first&lt;/b&gt;, more to x.7 " in folded(rows.replace("`x.0`", "<b>first</b>"))
    assert Page(str(markdown_to_html(table(MANY + 1), fold_tables)).encode()).faults == []


def test_the_newest_entries_stand_open_and_older_ones_and_releases_closed():
    source = "# Changelog\n\nwords\n\n## What goes\n\n- one\n\n" + "\n\n".join(
        [release("Unreleased", NEWEST + 3), release("1.1.0", 1), release("1.0.0", NEWEST + 1)]
    )
    body = str(markdown_to_html(source, fold_changes))
    open_part, closed, *others = re.split(r"</?details>", body)

    assert "<h2>What goes</h2>" in open_part
    assert re.findall(r"Unreleased entry \d", open_part) == [f"Unreleased entry {entry}" for entry in range(NEWEST)]
    assert closed.startswith("<summary>3 more</summary>")
    assert closed.count("entry") == 3
    assert closed.count("below") == 3
    assert [part.partition("</summary>")[0] for part in others if part.strip()] == [
        f"<summary><h2>[{name}]</h2>\n" for name in ("1.1.0", "1.0.0")
    ]
    assert Page(body.encode()).faults == []


def test_a_short_changelog_stays_as_it_is():
    source = "# Changelog\n\n" + release("Unreleased", NEWEST)

    assert markdown_to_html(source, fold_changes) == markdown_to_html(source)


def test_so_many_rows_and_entries_stand_open():
    assert (MANY, MOST_ROWS, ROWS, NEWEST) == (40, 7, 20, 6)


def test_rows_are_counted_over_all_tables_and_without_their_heads():
    tables = "\n\n".join(table(MANY // 4) for _ in range(4))
    assert "details" not in str(markdown_to_html(tables, fold_tables))
    assert str(markdown_to_html(f"{tables}\n\n{table(1)}", fold_tables)).count("<details") == 4


def test_what_stands_around_a_folded_table_keeps_its_place():
    body = folded(f"before\n\n{table(MOST_ROWS + 1)}\n\nbetween\n\n{table(1)}\n\nafter")
    order = [body.index(words) for words in ("before", "<details", "</details>", "between", "<table", "after")[:4]]
    assert order == sorted(order)
    assert body.index("between") < body.rindex("row 0") < body.index("after")


def test_a_list_of_one_entry_too_many_is_folded_by_one():
    body = str(markdown_to_html("# C\n\n" + release("Unreleased", NEWEST + 1), fold_changes))
    assert "<summary>1 more</summary>" in body
    assert body.count("<li>Unreleased entry") == NEWEST + 1
