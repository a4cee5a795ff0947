"""Generic changes to bodies: what stays valid, what is lost and what is kept."""

import csv
import io
import json
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.world.toy import T
from toolserver.world import answers, bodies
from toolserver.world.model import Reply


def of(value: object) -> Reply:
    return Reply.json(value)


def back(reply: Reply) -> object:
    return json.loads(reply.body)


def test_zeros_reach_numbers_numeric_strings_hex_and_json_in_strings_but_not_words_or_truths():
    given_ = {
        "a": 1.5,
        "b": "2.50",
        "c": "0x1f",
        "d": '["0.25","0.75"]',
        "e": True,
        "f": None,
        "g": "n/a",
        "h": [1, "x2"],
    }
    assert back(answers.zeros(of(given_), T)) == {
        "a": 0,
        "b": "0.00",
        "c": "0x0",
        "d": '["0.00","0.00"]',
        "e": True,
        "f": None,
        "g": "n/a",
        "h": [0, "x2"],
    }


def test_zeros_leave_the_envelope_and_on_request_the_times():
    given_ = {"jsonrpc": "2.0", "id": 3, "status": 200, "price": 5, "time": int(T * 1000)}
    assert back(answers.zeros(of(given_), T)) == {"jsonrpc": "2.0", "id": 3, "status": 200, "price": 0, "time": 0}
    assert back(answers.zeros(of(given_), T, keep_times=True))["time"] == int(T * 1000)


def test_what_a_contract_returns_changes_word_by_word_and_keeps_its_times():
    words = [18446744073709562301, 9_700_000_000_000, int(T), int(T) - 5, 18446744073709562301]
    given_ = of({"jsonrpc": "2.0", "id": 1, "result": "0x" + "".join(f"{w:064x}" for w in words)})

    def read(reply: Reply) -> list[int]:
        text = back(reply)["result"][2:]
        return [int(text[i : i + 64], 16) for i in range(0, len(text), 64)]

    assert read(answers.jump(given_, T, 2))[1:4] == [19_400_000_000_000, int(T), int(T) - 5]
    assert read(answers.jump(given_, T, 1)) == words
    assert read(answers.zeros(given_, T)) == [0] * 5


def test_a_jump_keeps_times_decimals_and_kinds_of_number():
    given_ = {"price": "97123.45", "tiny": "1.2e-05", "count": 3, "t": int(T), "ms": str(int(T * 1000)), "x": 2.5}
    assert back(answers.jump(of(given_), T, 2)) == {
        "price": "194246.90",
        "tiny": "2.4e-05",
        "count": 6,
        "t": int(T),
        "ms": str(int(T * 1000)),
        "x": 5.0,
    }


def test_tables_and_markup_change_in_their_numbers_only():
    table = Reply.text("date,price,name\n2027-01-15,10.50,Ab 3x\n2027-01-14,-2,\n", content_type="text/csv")
    assert answers.jump(table, T, 2).body == b"date,price,name\n2027-01-15,21.00,Ab 3x\n2027-01-14,-4,\n"
    markup = Reply('<?xml version="1.0"?><a rate="1.5" day="2027-01-15"><b>8</b><c>é 7</c></a>'.encode("latin-1"))
    assert answers.zeros(markup, T).body.decode("latin-1") == (
        '<?xml version="1.0"?><a rate="0.0" day="2027-01-15"><b>0</b><c>é 7</c></a>'
    )


def test_a_bare_number_is_json_too():
    assert answers.jump(Reply.text("900000"), T, 2).body == b"1800000"


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ('{"code":"0","data":[{"a":1}],"meta":{"rows":[1,2]}}', '{"code":"0","data":[],"meta":{"rows":[]}}'),
        ('[["time","Kp"],["2027","3"]]', "[]"),
        ('{"price":3}', "{}"),
        ("[]", "[]"),
        ("900000", "null"),
        ("# c\na,b\n1,2\n", "# c\na,b\n"),
        ("http://one.example/\nhttp://two.example/\n", ""),
        ("01/15/27|01/15/27|08:00|PST\n", ""),
        ("<rss><channel><item><b/></item> <item>x</item></channel></rss>", "<rss><channel> </channel></rss>"),
        (
            '<?xml version="1.0"?>\n<e:Env a="1"><Cube time="1"/></e:Env>',
            '<?xml version="1.0"?>\n<e:Env a="1"></e:Env>',
        ),
    ],
)
def test_an_emptied_body_is_a_valid_envelope_with_nothing_in_it(body, left):
    assert answers.empty(Reply.text(body)).body.decode() == left


def test_drift_adds_members_to_records_and_not_to_maps():
    given_ = {"markets": {"A": {"p": 1, "s": "x"}, "B": {"p": 2, "s": "y"}}, "n": 1}
    changed = back(answers.drift(of(given_), None))
    assert list(changed) == ["n", "markets", "added_member"]
    assert list(changed["markets"]) == ["B", "A"]
    assert list(changed["markets"]["A"]) == ["s", "p", "added_member"]


def test_drift_of_a_table_moves_columns_and_of_a_feed_adds_an_element():
    table = Reply.text('# c\r\na,b\r\n1,"x, y"\r\n', content_type="text/csv")
    assert answers.drift(table, None).body == b'# c\r\nb,a,added\r\n"x, y",1,\r\n'
    feed = answers.drift(Reply.text("<rss><item><a/></item></rss>"), None)
    assert len(ET.fromstring(feed.body)[0]) == 2


def test_named_forms_of_drift():
    given_ = {"a": 1, "b": "2.5", "c": True}
    assert back(answers.drift(of(given_), "strings")) == {"a": "1", "b": "2.5", "c": True}
    assert back(answers.drift(of(given_), "numbers")) == {"a": 1, "b": 2.5, "c": True}
    assert back(answers.drift(of(given_), "renamed")) == {"a_v2": 1, "b_v2": "2.5", "c_v2": True}
    assert json.loads(answers.drift(of(given_), "utf16").body.decode("utf-16")) == given_
    assert answers.drift(of(given_), "bom").body.startswith(b"\xef\xbb\xbf{")
    assert back(answers.drift(of([["1", "x"], [2]]), "numbers")) == [[1, "x"], [2]]
    assert back(answers.drift(of([[1.5, None]]), "strings")) == [["1.5", None]]


@pytest.mark.parametrize("form", ["strings", "utf16", "columns"])
def test_a_form_that_does_not_fit_the_body_changes_nothing(form):
    feed = Reply.text("<rss><item/></rss>")
    assert answers.drift(feed, form).body == feed.body


def test_the_encoding_of_a_body_survives_a_change():
    wide = answers.drift(of({"a": 1, "n": "é"}), "utf16")
    assert answers.zeros(wide, T).body.decode("utf-16") == '{"a":0,"n":"é"}'
    marked = answers.drift(of({"a": 1}), "bom")
    assert answers.zeros(marked, T).body == b'\xef\xbb\xbf{"a":0}'


def test_an_oversize_body_is_valid_and_of_that_size():
    padded = answers.oversize(of({"a": 1}), 0.5)
    assert len(padded.body) == 512 * 1024
    assert back(padded) == {"a": 1}


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(-1e9, 1e9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(values, st.floats(0, 1))
def test_a_malformed_body_is_never_json(value, fraction):
    with pytest.raises(ValueError):  # noqa: PT011 - any of the decoder's
        json.loads(answers.damage(of(value), fraction).body)


@given(values)
def test_extra_members_lose_nothing(value):
    def kept(old: object, new: object) -> bool:
        if isinstance(old, dict):
            return isinstance(new, dict) and all(k in new and kept(v, new[k]) for k, v in old.items())
        if isinstance(old, list):
            return isinstance(new, list) and len(old) == len(new) and all(map(kept, old, new))
        return old == new

    assert kept(value, back(answers.drift(of(value), "extra")))


@given(values)
def test_a_jump_by_one_changes_nothing(value):
    assert back(answers.jump(of(value), T, 1)) == value


cells = st.text(st.characters(blacklist_categories=("Cs", "Cc"), max_codepoint=255), max_size=6)


@given(st.lists(st.tuples(cells, cells), max_size=5))
def test_moved_columns_hold_the_same_rows_under_the_same_names(rows):
    out = io.StringIO()
    csv.writer(out).writerows([("first", "second"), *rows])
    moved = bodies.columns_moved(out.getvalue().encode("latin-1")).decode("latin-1")
    read = list(csv.DictReader(io.StringIO(moved, newline="")))
    assert [(r["first"], r["second"]) for r in read] == rows
