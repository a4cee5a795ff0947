"""Whoever sends X-Forwarded-For without being trusted is noted once, in the log and in a file."""

from toolserver.core.caller import Addresses
from toolserver.serving.untrusted_proxy import FILE, UntrustedProxyNote, read_untrusted_proxy


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
        (tmp_path / FILE).write_text(text)
        assert read_untrusted_proxy(tmp_path) is None
