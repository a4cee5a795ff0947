"""Bind the sockets that a service listens on. Workers get theirs from their supervisor, by file descriptor."""

import socket
from dataclasses import dataclass, replace
from typing import Any

from toolserver.serving.listen import address_of, bind_socket
from toolserver.settings import Settings, is_loopback


@dataclass(frozen=True, slots=True)
class Listeners:
    """The bound sockets of one process: for callers, for metrics, and for services that follow its ledger."""

    main: socket.socket
    metrics: socket.socket | None
    inner: socket.socket | None
    base_url: str
    addresses: dict[str, Any]
    """The addresses by the names that the ready line gives them."""
    operators: str | None
    """The address of the operators' page, if only this machine can reach it."""
    is_adopted: bool = False

    @property
    def for_people(self) -> dict[str, Any]:
        """The addresses shown to people: those of the ready line and that of the operators' page."""
        return self.addresses | {"operators_url": self.operators}

    @property
    def noted_url(self) -> str | None:
        """The address recorded for a running service; None if the supervisor records its own."""
        return None if self.is_adopted else self.addresses["metrics_url"]

    @property
    def files(self) -> dict[str, int | None]:
        """The file descriptors of the sockets, as `adopt` takes them."""
        named = {"main": self.main, "metrics": self.metrics, "inner": self.inner}
        return {name: None if sock is None else sock.fileno() for name, sock in named.items()}

    @classmethod
    def open(cls, settings: Settings) -> "Listeners":
        """Bind every socket that the settings require. Raises SystemExit if a socket cannot be bound."""
        own, ledger = settings.metrics, settings.ledger
        main = bind_socket(settings.host, settings.port, setting="port")
        metrics = bind_socket(own.host, own.port, setting="metrics.port") if own.enabled else None
        inner = None if ledger.port is None else bind_socket(ledger.host, ledger.port, setting="ledger.port")
        return cls._describe(settings, main, metrics, inner)

    @classmethod
    def open_for_workers(cls, settings: Settings, count: int) -> list["Listeners"]:
        """Bind the sockets of this many workers: each has its own socket on the same port, and a port for its metrics.

        The metrics of worker n are at `metrics.port` + n, or at any free port if that setting
        is 0. Raises SystemExit if a socket cannot be bound.
        """
        own, ledger = settings.metrics, settings.ledger
        mains = _bind_beside(settings.host, settings.port, count, "port")
        inner = [None] * count if ledger.port is None else _bind_beside(ledger.host, ledger.port, count, "ledger.port")
        ports = [own.port and own.port + number for number in range(count)]
        metrics = [bind_socket(own.host, port, setting="metrics.port") if own.enabled else None for port in ports]
        return [cls._describe(settings, *each) for each in zip(mains, metrics, inner, strict=True)]

    @classmethod
    def adopt(cls, settings: Settings, files: dict[str, int | None]) -> "Listeners":
        """Take over sockets that another process has bound and passed on, by the file descriptors in `files`."""
        main, metrics, inner = (_adopt_socket(files[name]) for name in ("main", "metrics", "inner"))
        assert main is not None
        return replace(cls._describe(settings, main, metrics, inner), is_adopted=True)

    @classmethod
    def _describe(
        cls, settings: Settings, main: socket.socket, metrics: socket.socket | None, inner: socket.socket | None
    ) -> "Listeners":
        own = settings.metrics
        base_url = settings.base_url or address_of(main, settings.host)
        addresses = {
            "base_url": base_url,
            "mcp_url": f"{base_url}/api/mcp",
            "metrics_url": f"{address_of(metrics, own.host)}/metrics" if metrics else None,
        }
        if inner is not None:
            addresses["internal_url"] = address_of(inner, settings.ledger.host)
        operators = f"{address_of(metrics, own.host)}/" if metrics and is_loopback(own.host) else None
        return cls(main, metrics, inner, base_url, addresses, operators)


def _bind_beside(host: str, port: int, count: int, setting: str) -> list[socket.socket]:
    """Bind sockets on one port, among which the kernel distributes connections.

    The port is first bound exclusively, so that this service never listens beside the sockets
    of another one, even though the kernel would allow it.
    """
    with bind_socket(host, port, setting=setting) as alone:
        free_port = alone.getsockname()[1]
    return [bind_socket(host, free_port, setting=setting, beside_others=True) for _ in range(count)]


def _adopt_socket(file: int | None) -> socket.socket | None:
    """Return the socket of a file descriptor, of which other processes hold copies."""
    if file is None:
        return None
    inherited = socket.socket(fileno=file)
    family = inherited.family
    named = socket.socket(
        family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=inherited.detach()
    )  # see `bind_socket`
    named.setblocking(False)
    return named
