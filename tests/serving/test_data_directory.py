"""A data directory with a ledger's file is served by one process at a time, and says where its metrics are."""

import pytest

from toolserver.core.caller import Addresses
from toolserver.money.ledger.store import FILE
from toolserver.serving.data_directory import (
    RUNNING,
    UNTRUSTED_PROXY,
    UntrustedProxyNote,
    hold_directory,
    note_running,
    read_running,
    read_untrusted_proxy,
)
from toolserver.settings import Settings


def test_a_second_process_on_the_same_ledger_is_refused_with_what_to_set(tmp_path):
    (tmp_path / FILE).touch()
    settings = Settings(data_dir=tmp_path)
    said = r"another process serves from .* set database_url \(TOOLSERVER_DATABASE_URL\) and redis_url"
    with hold_directory(settings), pytest.raises(SystemExit, match=said), hold_directory(settings):
        pass
    with hold_directory(settings):
        pass
    assert [path.name for path in tmp_path.iterdir()] == [FILE], "nothing is left behind"


def test_what_keeps_no_file_of_money_needs_no_lock(tmp_path):
    shared = Settings(data_dir=tmp_path, database_url="postgresql://db.example/money")
    with hold_directory(shared), hold_directory(shared):
        pass
    free = Settings(data_dir=tmp_path)
    with hold_directory(free), hold_directory(free):
        pass


URL = "http://127.0.0.1:9/metrics"


def test_the_note_is_there_while_the_service_runs(tmp_path):
    with note_running(tmp_path / "data", URL):
        assert read_running(tmp_path / "data") == URL
    assert read_running(tmp_path / "data") is None
    assert list((tmp_path / "data").iterdir()) == []


def test_a_note_that_another_service_has_written_since_is_left_to_it(tmp_path):
    with note_running(tmp_path, URL):
        (tmp_path / RUNNING).write_text('{"metrics_url": "http://127.0.0.1:10/metrics"}')
    assert read_running(tmp_path) == "http://127.0.0.1:10/metrics"


def test_without_metrics_there_is_no_note(tmp_path):
    with note_running(tmp_path, None):
        assert list(tmp_path.iterdir()) == []


def test_what_is_no_note_is_none(tmp_path):
    for content in ("", "[]", '{"metrics_url": 3}', "{"):
        (tmp_path / RUNNING).write_text(content)
        assert read_running(tmp_path) is None


def test_a_folder_that_cannot_be_written_keeps_no_service_from_running(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    with note_running(tmp_path / "file", URL):
        assert caplog.messages == ["the address of the running service could not be recorded"]


def test_it_is_noted_once(tmp_path, caplog):
    addresses = Addresses(["10.0.0.0/8"], UntrustedProxyNote(tmp_path).note)
    for peer in ("192.0.2.7", "192.0.2.8"):
        assert addresses.client(peer, "198.51.100.9") == peer
    assert [(record.getMessage(), record.peer) for record in caplog.records] == [
        ("ignored X-Forwarded-For from an untrusted peer", "192.0.2.7")
    ]
    assert read_untrusted_proxy(tmp_path) == "192.0.2.7"


def test_a_trusted_proxy_and_a_caller_without_the_header_are_not(tmp_path, caplog):
    addresses = Addresses(["10.0.0.0/8"], UntrustedProxyNote(tmp_path).note)
    addresses.client("10.0.0.1", "198.51.100.9")
    addresses.client("192.0.2.7")
    assert caplog.records == []
    assert read_untrusted_proxy(tmp_path) is None


def test_a_folder_that_cannot_be_written_fails_no_call(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    assert Addresses([], UntrustedProxyNote(tmp_path / "file").note).client("192.0.2.7", "x") == "192.0.2.7"
    assert caplog.messages[-1] == "the untrusted proxy could not be recorded"


def test_a_note_that_is_damaged_is_none(tmp_path):
    for text in ("", "[]", '{"peer": 1}'):
        (tmp_path / UNTRUSTED_PROXY).write_text(text)
        assert read_untrusted_proxy(tmp_path) is None
