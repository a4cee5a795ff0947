"""An exchange in a recording: two plain files for their owner, read back as they were written."""

import json
import stat

import pytest

from toolserver.core import recorded_exchange
from toolserver.core.recorded_exchange import (
    FORMAT,
    SUMMARY,
    NoRecording,
    RecordedExchange,
    read_exchanges,
    read_summary,
    write_exchange,
)

GOOD = RecordedExchange(
    "Test.one",
    "POST",
    "https://test.example/x?a=1",
    {"User-Agent": "t"},
    {"ask": ["é"]},
    1_800_000_000.5,
    12,
    200,
    [("content-type", "application/json; charset=utf-8"), ("link", "a"), ("link", "b")],
    b'{"value":\xc3\xa9 1}',
)
FAILED = RecordedExchange("Test.two", "GET", "https://test.example/y", failure="ConnectError")


def test_what_was_written_is_read_again(tmp_path):
    write_exchange(tmp_path, 2, GOOD)
    write_exchange(tmp_path, 1, FAILED)
    assert list(read_exchanges(tmp_path)) == [GOOD, FAILED]
    assert (tmp_path / "Test.one" / "02.body.json").read_bytes() == GOOD.body
    assert sorted(path.name for path in (tmp_path / "Test.two").iterdir()) == ["01.json"]


def test_a_stranger_can_read_it_and_other_users_cannot(tmp_path):
    write_exchange(tmp_path, 1, GOOD)
    told = json.loads((tmp_path / "Test.one" / "01.json").read_text(encoding="utf-8"))
    assert (told["url"], told["status"], told["body_file"], told["body_bytes"]) == (
        GOOD.url,
        200,
        "01.body.json",
        len(GOOD.body),
    )
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "Test.one").iterdir()}
    assert modes == {0o600}


@pytest.mark.parametrize(
    ("said", "suffix"),
    [
        ("application/json", ".json"),
        ("application/rss+xml", ".xml"),
        ("text/csv; charset=utf-8", ".csv"),
        ("text/plain", ".txt"),
        ("image/png", ".bin"),
        ("", ".bin"),
    ],
)
def test_the_name_of_a_body_says_what_it_is(tmp_path, said, suffix):
    exchange = RecordedExchange("A", "GET", "https://a/", status=200, headers=[("Content-Type", said)])
    write_exchange(tmp_path, 1, exchange)
    assert (tmp_path / "A" / f"01.body{suffix}").exists()


@pytest.mark.parametrize(
    ("text", "why"), [("{", "is not a recording"), ("[]", "is not a recording"), ('{"format": 99}', "in format 99")]
)
def test_what_is_no_recording_is_refused(tmp_path, text, why):
    (tmp_path / SUMMARY).write_text(text)
    with pytest.raises(NoRecording, match=why):
        read_summary(tmp_path)


def test_a_folder_without_a_summary_is_no_recording_and_a_good_one_is(tmp_path):
    with pytest.raises(NoRecording):
        read_summary(tmp_path)
    (tmp_path / SUMMARY).write_text(json.dumps({"format": FORMAT, "recorded_at": 5}))
    assert read_summary(tmp_path)["recorded_at"] == 5


@pytest.mark.parametrize("damage", ["{", "{}", '{"source": "A", "method": "GET", "url": "u", "headers": [], "new": 1}'])
def test_a_damaged_exchange_is_named(tmp_path, damage):
    write_exchange(tmp_path, 1, FAILED)
    (tmp_path / "Test.two" / "01.json").write_text(damage)
    with pytest.raises(NoRecording, match=r"01\.json cannot be read"):
        list(read_exchanges(tmp_path))


def test_a_body_outside_the_folder_is_not_read(tmp_path):
    write_exchange(tmp_path, 1, GOOD)
    (tmp_path / "secret").write_bytes(b"mine")
    path = tmp_path / "Test.one" / "01.json"
    path.write_text(path.read_text(encoding="utf-8").replace("01.body.json", "../secret"), encoding="utf-8")
    with pytest.raises(NoRecording):
        list(read_exchanges(tmp_path))


def test_files_that_are_no_recording_are_refused_and_not_read_to_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(recorded_exchange, "MOST_FILE", 1000)
    folder = tmp_path / "Test.one"
    folder.mkdir()
    for written in (b"[" * 900, b"x" * 1001, b'{"headers":[[1]]}', b'{"headers":[],"body_file":"../../../etc/passwd"}'):
        (folder / "01.json").write_bytes(written)
        with pytest.raises(NoRecording):
            list(read_exchanges(tmp_path))
    (folder / "01.json").unlink()
    (folder / "01.json").symlink_to("/dev/zero")
    with pytest.raises(NoRecording):
        list(read_exchanges(tmp_path))
