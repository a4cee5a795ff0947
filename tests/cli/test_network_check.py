"""Why a host is not reached, as doctor says it: each cause is arranged on this machine."""

import socket
import ssl
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
import trustme

from toolserver.cli.network_check import find_cause, judge_servers, visit
from toolserver.core.outbound import NO_PROXIES

HOST, NOW = "api.corp-test.example", datetime(2026, 11, 27, 12, tzinfo=UTC)
HEAD = f"HTTP/1.1 200 OK\r\nDate: {format_datetime(NOW, usegmt=True)}\r\nContent-Length: 0\r\n\r\n".encode()


@contextmanager
def serving(answer=HEAD, tls=None):
    """Answer every connection with these bytes, over TLS if a context says so. Yields the port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            try:
                if tls is not None:
                    connection = tls.wrap_socket(connection, server_side=True)
                connection.recv(4096)
                connection.sendall(answer)
            except OSError:
                pass
            connection.close()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@pytest.fixture
def here(monkeypatch):
    """Let every name lead to this machine."""
    connect = socket.create_connection
    monkeypatch.setattr(socket, "create_connection", lambda place, *more: connect(("127.0.0.1", place[1]), *more))


def certified(*names, **more):
    authority, server = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names, **more).configure_cert(server)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(client)
    return server, client


def cause(port, trusted=None, now=NOW):
    finding = visit(HOST, NO_PROXIES, lambda: now, port, trusted)
    return None if finding is None else finding.cause


def test_a_host_that_answers_is_no_finding_unless_the_clock_is_wrong(here):
    server, trusted = certified(HOST)
    with serving(tls=server) as port:
        assert cause(port, trusted) is None
        assert cause(port, trusted, NOW + timedelta(minutes=6)) == "clock_wrong"
        assert cause(port, trusted, NOW - timedelta(days=900)) == "clock_wrong"


def test_certificates_that_do_not_fit_have_a_cause_each(here):
    server, trusted = certified(HOST)
    with serving(tls=server) as port:
        assert cause(port) == "unknown_authority"
        found = judge_servers([f"https://{HOST}:{port}/a", f"https://{HOST}:{port}/b"], NO_PROXIES, lambda: NOW)
        assert found == (1, ("an authority that is not public",))
    server, trusted = certified("login.hotel.example")
    with serving(tls=server) as port:
        assert cause(port, trusted) == "captive_portal"
    server, trusted = certified(HOST, not_after=datetime(2020, 1, 1, tzinfo=UTC))
    with serving(tls=server) as port:
        assert cause(port, trusted) == "clock_wrong"


def test_what_does_not_speak_tls_is_no_host(here):
    with serving(b"HTTP/1.1 302 Found\r\nLocation: http://login.hotel.example/\r\n\r\n") as port:
        assert cause(port) == "captive_portal"


def test_no_name_and_no_connection_are_two_causes(monkeypatch):
    monkeypatch.setattr(socket, "create_connection", fail(socket.gaierror(-3, "again")))
    assert find_cause([HOST], NO_PROXIES, lambda: NOW).cause == "no_dns"
    monkeypatch.setattr(socket, "create_connection", fail(ConnectionRefusedError(111, "refused")))
    assert find_cause([HOST], NO_PROXIES, lambda: NOW).cause == "not_connected"
    assert find_cause([], NO_PROXIES, lambda: NOW) is None


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (b"HTTP/1.1 302 Found\r\nLocation: http://login.hotel.example/\r\n\r\n", "captive_portal"),
        (b"HTTP/1.1 511 Network Authentication Required\r\n\r\n", "captive_portal"),
        (b"HTTP/1.1 301 Moved\r\nLocation: https://www.corp-test.example/\r\n\r\n", "unknown_authority"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "unknown_authority"),
    ],
)
def test_a_sign_in_page_is_seen_on_plain_http(monkeypatch, answer, found):
    server, _ = certified(HOST)
    connect = socket.create_connection
    with serving(tls=server) as port, serving(answer) as plain:
        monkeypatch.setattr(
            socket,
            "create_connection",
            lambda place, *more: connect(("127.0.0.1", plain if place[1] == 80 else place[1]), *more),
        )
        assert cause(port) == found


def fail(error):
    def connect(*place):
        raise error

    return connect
