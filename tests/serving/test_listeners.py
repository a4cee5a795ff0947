"""The sockets of a service, and of several workers on one port."""

import os
import socket

import pytest

from tests.ports import reserve_ports
from toolserver.serving.listeners import Listeners
from toolserver.settings import LedgerSettings, MetricsSettings, Settings

FOLLOWED = LedgerSettings(port=0, keys={"k": "s" * 32}, services={"k": ["news"]})


def close(listeners):
    for sock in (listeners.main, listeners.metrics, listeners.inner):
        if sock is not None:
            sock.close()


def test_each_listener_that_the_settings_ask_for_is_bound_and_named():
    found = Listeners.open(Settings(port=0, ledger=FOLLOWED))
    port = found.main.getsockname()[1]
    assert found.addresses == {
        "base_url": f"http://127.0.0.1:{port}",
        "mcp_url": f"http://127.0.0.1:{port}/api/mcp",
        "metrics_url": f"http://127.0.0.1:{found.metrics.getsockname()[1]}/metrics",
        "internal_url": f"http://127.0.0.1:{found.inner.getsockname()[1]}",
    }
    assert found.operators == f"http://127.0.0.1:{found.metrics.getsockname()[1]}/"
    close(found)


def test_a_public_address_is_announced_as_it_is_set_and_metrics_only_where_they_are_on():
    given = Settings(port=0, base_url="https://data.example/", metrics=MetricsSettings(enabled=False))
    found = Listeners.open(given)
    assert found.addresses == {
        "base_url": "https://data.example",
        "mcp_url": "https://data.example/api/mcp",
        "metrics_url": None,
    }
    assert found.operators is None
    assert (found.metrics, found.inner) == (None, None)
    close(found)


def test_no_page_for_operators_is_announced_where_others_reach_the_metrics():
    found = Listeners.open(Settings(port=0, metrics=MetricsSettings(host="0.0.0.0")))
    assert found.addresses["metrics_url"].startswith("http://localhost:")
    assert found.operators is None
    close(found)


def test_workers_have_a_socket_each_on_one_port_and_metrics_of_their_own():
    found = Listeners.open_for_workers(Settings(port=0, ledger=FOLLOWED), 3)
    ports = {name: [getattr(each, name).getsockname()[1] for each in found] for name in ("main", "metrics", "inner")}
    assert len(set(ports["main"])) == len(set(ports["inner"])) == 1
    assert len(set(ports["metrics"])) == 3
    assert len({each.main.fileno() for each in found}) == 3
    assert {each.base_url for each in found} == {f"http://127.0.0.1:{ports['main'][0]}"}
    for each in found:
        close(each)


def test_the_metrics_of_workers_have_the_ports_after_the_one_that_is_set():
    port = reserve_ports(2)
    found = Listeners.open_for_workers(Settings(port=0, metrics=MetricsSettings(port=port)), 2)
    assert [each.metrics.getsockname()[1] for each in found] == [port, port + 1]
    for each in found:
        close(each)


def test_every_socket_of_workers_takes_connections():
    found = Listeners.open_for_workers(Settings(port=0, metrics=MetricsSettings(enabled=False)), 2)
    seen, callers = set(), []
    while len(seen) < 2:
        callers.append(socket.create_connection(found[0].main.getsockname(), timeout=10))
        for number, each in enumerate(found):
            try:
                each.main.accept()[0].close()
                seen.add(number)
            except BlockingIOError:
                continue
        assert len(callers) < 200
    for each in callers:
        each.close()
    for each in found:
        close(each)


def test_beside_the_sockets_of_other_workers_no_service_begins_to_listen():
    found = Listeners.open_for_workers(Settings(port=0), 2)
    port = found[0].main.getsockname()[1]
    with pytest.raises(SystemExit, match="address already in use"):
        Listeners.open_for_workers(Settings(port=port), 2)
    for each in found:
        close(each)


def test_a_worker_adopts_its_sockets_by_their_numbers_and_leaves_the_note_to_its_supervisor():
    settings = Settings(port=0, ledger=FOLLOWED)
    found = Listeners.open(settings)
    adopted = Listeners.adopt(settings, {name: os.dup(file) for name, file in found.files.items()})
    assert adopted.addresses == found.addresses
    assert adopted.noted_url is None
    assert found.noted_url == found.addresses["metrics_url"]
    assert adopted.main.proto == socket.IPPROTO_TCP, "else answers wait 40 ms for an acknowledgement"
    assert adopted.main.gettimeout() == 0
    close(adopted)
    close(found)


def test_what_is_not_listened_on_is_not_adopted():
    settings = Settings(port=0, metrics=MetricsSettings(enabled=False))
    found = Listeners.open(settings)
    assert (found.files["metrics"], found.files["inner"]) == (None, None)
    adopted = Listeners.adopt(settings, {"main": os.dup(found.main.fileno()), "metrics": None, "inner": None})
    assert (adopted.metrics, adopted.inner) == (None, None)
    close(adopted)
    close(found)
