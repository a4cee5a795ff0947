"""A recording is a new folder of its owner's, its exchanges numbered by source, its summary last."""

import json
import stat

import pytest

from tests.calls.parts import number_source
from toolserver.cli.source_recording import FolderInUse, SourceRecording
from toolserver.core.recorded_exchange import REMOVED, RecordedExchange, read_exchanges, read_summary
from toolserver.upstream.source import Get

ONE, TWO = number_source("Test.one"), number_source("Test.two")
REQUEST = Get("https://test.example/")
KEY = "k3y-0123456789"


def exchange(source, url):
    return RecordedExchange(source.name, "GET", url, status=200, body=KEY.encode())


def test_exchanges_are_numbered_by_source_and_hold_no_key(tmp_path):
    recording = SourceRecording(tmp_path / "rec", {"API_KEY": KEY})
    for source, url in ((ONE, f"https://a/?key={KEY}"), (TWO, "https://b/"), (ONE, "https://c/")):
        recording.record(source, REQUEST, exchange(source, url))
    recording.finish(5.0, note=f"said {KEY}")
    found = list(read_exchanges(tmp_path / "rec"))
    assert [each.url for each in found] == [f"https://a/?key={REMOVED}", "https://c/", "https://b/"]
    assert read_summary(tmp_path / "rec") | {"version": ""} == {
        "format": 1,
        "version": "",
        "recorded_at": 5.0,
        "exchanges": 3,
        "note": f"said {REMOVED}",
    }
    assert all(KEY.encode() not in path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file())


def test_nobody_else_can_read_it(tmp_path):
    (tmp_path / "rec").mkdir(mode=0o755)
    recording = SourceRecording(tmp_path / "rec", {})
    recording.record(ONE, REQUEST, exchange(ONE, "https://a/"))
    recording.finish(5.0)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "rec").rglob("*") if path.is_file()}
    folders = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "rec", tmp_path / "rec" / ONE.name)}
    assert (modes, folders) == ({0o600}, {0o700})


def test_two_recordings_are_never_mixed(tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises(FolderInUse):
        SourceRecording(tmp_path, {})


def test_only_what_a_block_exchanges_is_collected(tmp_path):
    recording = SourceRecording(tmp_path / "rec", {"API_KEY": KEY})
    recording.record(ONE, REQUEST, exchange(ONE, "https://before/"))
    with recording.collect() as found:
        recording.record(ONE, REQUEST, exchange(ONE, f"https://a/{KEY}"))
    recording.record(ONE, REQUEST, exchange(ONE, "https://after/"))
    assert [(each.request, each.exchange.url) for each in found] == [(REQUEST, f"https://a/{REMOVED}")]
    assert recording.count == 3


def test_the_summary_is_plain_json(tmp_path):
    recording = SourceRecording(tmp_path / "rec", {})
    recording.finish(5.0, sources=[{"source": "é"}])
    text = (tmp_path / "rec" / "recording.json").read_text(encoding="utf-8")
    assert json.loads(text)["sources"] == [{"source": "é"}]
    assert '\n  "sources": [' in text
