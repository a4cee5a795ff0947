"""An archive is read by standard tools, is its owner's alone, and is refused when it is not whole."""

import gzip
import hashlib
import json
import stat

import pytest

from toolserver.money.books import month_archive
from toolserver.money.books.month_archive import ArchiveBroken, name_archive, open_draft, read_lines
from toolserver.money.receipts.keys import make_key
from toolserver.money.receipts.month_statement import LogRoot, MonthSpan, MonthStatement, RowDigest, parse_month

SPAN, KEY = MonthSpan.named("2027-01"), make_key()


@pytest.fixture
def archive(tmp_path):
    path = name_archive(tmp_path / "archive", SPAN.name)
    with open_draft(path) as writer:
        writer.begin(SPAN, "data.example")
        writer.write_table("receipt", ("id", "core"), [("one", b'{"a":1}'), ("ü", None)])
        about = (1, "data.example", SPAN.name, SPAN.since, SPAN.until, SPAN.until, None)
        writer.finish(MonthStatement(*about, writer.digests, {}, LogRoot(0, "")), KEY)
    return path


def test_it_is_lines_of_json_of_which_anybody_can_make_the_digest(archive):
    lines = gzip.decompress(archive.read_bytes()).splitlines(keepends=True)
    first, table, *rows, last = map(json.loads, lines)

    assert archive.name == "ledger-2027-01.jsonl.gz"
    assert (first["month"], first["from"], first["to"]) == ("2027-01", "2027-01-01T00:00:00Z", "2027-02-01T00:00:00Z")
    assert (table, rows) == ({"table": "receipt", "columns": ["id", "core"]}, [["one", "eyJhIjoxfQ"], ["ü", None]])
    digest = RowDigest(2, hashlib.sha256(b"".join(lines[2:4])).hexdigest())
    assert parse_month(last["statement"]).statement.tables == {"receipt": digest}
    assert last["keys"] == [KEY.jwk()]


def test_its_owner_alone_can_read_it(archive):
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600


def test_a_draft_is_begun_anew(archive):
    with open_draft(archive) as writer:
        writer.begin(SPAN, "data.example")
    assert len(list(read_lines(archive))) == 1


# What gzip writes holds the second in which it was written, so these have names of their own.
@pytest.mark.parametrize(
    "content",
    [b"", b"text", gzip.compress(b"{}\n")[:-9], gzip.compress(b"{}\n{\n")],
    ids=["empty", "text", "cut short", "half a line"],
)
def test_what_is_not_whole_is_refused(tmp_path, content):
    path = tmp_path / "part"
    path.write_bytes(content)
    if not content:
        assert list(read_lines(path)) == []
        return
    with pytest.raises(ArchiveBroken):
        list(read_lines(path))


def test_a_line_without_end_and_one_that_nests_too_deep_are_named_and_not_read_to_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(month_archive, "MOST_LINE", 1000)
    for number, line in enumerate((b"[1]\n" + b"x" * 100_000, b"[1]\n" + b"[" * 900, b"[1]\nnull]\n")):
        path = tmp_path / f"{number}.jsonl.gz"
        path.write_bytes(gzip.compress(line))
        with pytest.raises(ArchiveBroken, match="line 2 "):
            list(read_lines(path))
