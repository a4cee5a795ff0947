"""Plain lines for a person: every member of an answer, and nothing that a terminal obeys."""

from toolserver.cli.plain_lines import write_answer, write_lines


def test_an_answer_is_its_data_then_its_age_then_who_made_it():
    payload = {
        "source": "data.example",
        "endpoint": "gas",
        "updated_at": "2026-01-01T00:00:00Z",
        "data": {"price": 3.5, "open": True, "low": None},
        "stale": False,
        "_meta": {
            "sources": [{"name": "A.b"}, {"name": "C.d"}, {"name": "A.b"}],
            "untrusted_text": ["data.x"],
            "credits_remaining": 7,
        },
    }
    assert list(write_answer(payload)) == [
        "price: 3.5",
        "open: yes",
        "low: unknown",
        "",
        "updated_at: 2026-01-01T00:00:00Z",
        "stale: no",
        "credits_remaining: 7",
        "sources: A.b, C.d",
    ]


def test_an_answer_without_data_says_so():
    assert list(write_answer({"data": None, "stale": True})) == ["unknown", "", "stale: yes"]


def test_lists_and_objects_within_others_are_indented():
    value = {"names": ["a", "b"], "none": [], "rows": [{"a": 1, "b": {"c": 2}}, {"a": 3}, {}], "grid": [[1, 2], [3]]}
    assert list(write_lines(value)) == [
        "names: a, b",
        "none: none",
        "rows:",
        "  - a: 1",
        "    b:",
        "      c: 2",
        "  - a: 3",
        "grid:",
        "  - - 1",
        "    - 2",
        "  - - 3",
    ]


def test_what_a_terminal_would_obey_is_left_out():
    said = "\x1b]0;owned\x07red\x9b31m \u202eback\u200b\ttab\nsecond line\r\x1b[2J"
    lines = list(write_lines({"te\x1bxt": said}))
    assert lines == ["tet: red backtab", "  second line", "  "]
