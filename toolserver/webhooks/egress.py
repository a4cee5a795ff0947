"""Guard egress: a request to an address that others name only ever goes to a public one, whatever its URL says.

The guard checks three times: the URL when it is registered, every address of a name when it
is looked up, and the address that a socket is about to connect to. The last check is the
decisive one: aiohttp does not look up literal addresses, so a guard in the resolver alone
would let `127.0.0.1` through. Deliveries are sent through a session with these checks, and so
are requests for the documents in which OAuth clients describe themselves.
"""

import asyncio
import contextlib
import functools
import re
import socket
import ssl
import threading
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address, ip_address
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import anyio
import anyio.to_thread

from toolserver.clock import Clock
from toolserver.core import tracing
from toolserver.core.outbound import make_tls_context
from toolserver.core.public_address import is_local_host, is_loopback, is_public
from toolserver.core.visible_text import INVISIBLE
from toolserver.core.waiting_room import WaitingRoom, WaitLimits, WaitRefused
from toolserver.errors import ToolserverError

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession, TCPConnector
    from aiohttp.abc import AbstractResolver, ResolveResult
    from aiohttp.client import _RequestContextManager
    from yarl import URL
else:
    AbstractResolver = object  # it has no code of its own, and importing aiohttp is heavy

R = TypeVar("R")

MOST_URL = 2000
PORTS = (443, 8443)
INTERNAL_NAMES = (
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "lan",
    "corp",
    "home",
    "home.arpa",
    "consul",
    "onion",
)


_QUERY = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*")
_AUTHORITY = re.compile(r"https?://(?:\[[^\]]*\]|[^:/?#\[]*)(?::[0-9]*)?(?:[/?#]|$)", re.IGNORECASE)


class TargetRefused(ToolserverError, OSError):
    """Nothing is sent to this address. `reason` is one word; the text is a sentence for the subscription's owner."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class EgressGuard:
    """Decides where deliveries may go.

    `allow_loopback` is for development: it also allows this machine, at any port and without TLS.
    """

    def __init__(self, *, allow_loopback: bool = False, ports: Sequence[int] = PORTS) -> None:
        self._allow_loopback, self._ports = allow_loopback, ports

    def check_url(self, text: str) -> "URL":
        """Return the URL for deliveries as aiohttp reads it. Looks up nothing.

        Raises:
            TargetRefused
        """
        url = _parsed(text)
        host = (url.raw_host or "").removesuffix(".")
        local = self._allow_loopback and is_local_host(host)
        if url.scheme != "https" and not (local and url.scheme == "http"):
            raise TargetRefused("https_required", "The URL must begin with https://.")
        if not local:
            self._check_public(url, host)
        return url

    def _check_public(self, url: "URL", host: str) -> None:
        if url.port not in self._ports:
            raise TargetRefused("port_not_allowed", "Deliveries go only to port 443 or 8443.")
        address = _literal(host)
        if address is not None:
            self.check_address(str(address))
        elif _is_internal(host):
            raise TargetRefused("private_or_local_hostname", "The host is not a name of the public Internet.")

    def check_address(self, text: str, port: int | None = None) -> None:
        """Check an address of a name, or one that is about to be connected to. Raises TargetRefused."""
        try:
            address = _read_address(text)
        except ValueError:
            raise TargetRefused("private_address", "The host has an address that cannot be checked.") from None
        if self._allow_loopback and is_loopback(address):
            return
        if not is_public(address):
            raise TargetRefused("private_address", "The host has an address that is not on the public Internet.")
        if port is not None and port not in self._ports:
            raise TargetRefused("port_not_allowed", "Deliveries go only to port 443 or 8443.")

    def check_all(self, addresses: Sequence[str]) -> None:
        """Check every address of a name. Raises TargetRefused if any is not allowed."""
        for address in addresses:
            self.check_address(address)

    def open_socket(self, info: tuple[Any, ...]) -> socket.socket:
        """Open a socket for an address after checking it, as aiohttp's `socket_factory`. Raises TargetRefused."""
        family, kind, protocol, _, target = info
        if family not in (socket.AF_INET, socket.AF_INET6):
            raise TargetRefused("private_address", "Deliveries go only to IP addresses.")
        self.check_address(str(target[0]), int(target[1]))
        if family == socket.AF_INET6 and len(target) > 3 and target[3]:
            raise TargetRefused("private_address", "The host has an address that is not on the public Internet.")
        opened = socket.socket(family, kind, protocol)
        opened.setblocking(False)
        return opened


def _parsed(text: str) -> "URL":
    from yarl import URL  # loaded with the first target

    if len(text) > MOST_URL:
        raise TargetRefused("url_too_long", f"The URL has more than {MOST_URL} characters.")
    if not text.isprintable() or INVISIBLE.search(text) or any(c.isspace() or c == "\\" for c in text):
        raise TargetRefused("invalid_url", "The URL contains a character that is not allowed in URLs.")
    try:
        url = URL(text)
        host, _ = url.raw_host, url.port
    except ValueError:
        raise TargetRefused("invalid_url", "This is not a URL.") from None
    if not url.absolute or not host or url.scheme not in ("http", "https"):
        raise TargetRefused("invalid_url", "Give an absolute URL that begins with https://.")
    if "@" in text.partition("://")[2].partition("/")[0]:
        raise TargetRefused("invalid_url", "A URL with a user name or password is not accepted; use custom headers.")
    if not _AUTHORITY.match(text):  # +443, 4_43 and digits of other scripts would be read as 443
        raise TargetRefused("invalid_url", "The port is not written in the digits 0 to 9.")
    return _keep_query(url.with_fragment(None), text)


def _keep_query(url: "URL", text: str) -> "URL":
    """Return the URL with its query byte for byte as it was written: receivers may sign it or compare it."""
    query = text.partition("#")[0].partition("?")[2]
    if query == url.raw_query_string or not _QUERY.fullmatch(query):
        return url
    return type(url).build(
        scheme=url.scheme, authority=url.raw_authority, path=url.raw_path, query_string=query, encoded=True
    )


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a host spells out, or None for a name.

    Raises:
        TargetRefused: a number in another spelling, such as 2130706433, 0x7f.1 or 127.1, or one with a zone.
    """
    try:
        if "%" in host:
            raise TargetRefused("invalid_url", "An address with a zone is not accepted.")
        return ip_address(host)
    except ValueError:
        last = host.rpartition(".")[2].lower()
        if last.isdecimal() or last.startswith("0x") or ":" in host:
            raise TargetRefused("invalid_url", "Write an address in its usual form.") from None
        return None


_read_address = functools.lru_cache(4096)(ip_address)


def _is_internal(host: str) -> bool:
    return "." not in host or any(host == name or host.endswith("." + name) for name in INTERNAL_NAMES)


class DaemonThreads:
    """Runs blocking calls. Threads are started as needed, up to `most`; further calls wait their turn."""

    def __init__(self, most: int, name: str) -> None:
        self._most, self._name = most, name
        self._started = self._busy = 0
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def run(self, call: Callable[..., R], *arguments: Any) -> asyncio.Future[R]:
        """Run a call in a thread. Its result or exception arrives in the future."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[R] = loop.create_future()
        self._busy += 1
        answer.add_done_callback(self._ended)

        def work() -> None:
            if answer.cancelled():  # nobody waits any more
                return
            result: Any = None
            failure: Exception | None = None
            try:
                result = call(*arguments)
            except Exception as error:
                failure = error
            with contextlib.suppress(RuntimeError):  # the loop is closed, so nobody is waiting any more
                loop.call_soon_threadsafe(_hand_over, answer, result, failure)

        self._queue.put(work)
        if self._started < min(self._busy, self._most):
            self._started += 1
            threading.Thread(target=self._serve, name=f"{self._name}-{self._started}", daemon=True).start()
        return answer

    def _ended(self, _: asyncio.Future[Any]) -> None:
        self._busy -= 1

    def _serve(self) -> None:
        while (work := self._queue.get()) is not None:
            work()

    def close(self) -> None:
        """End every thread once it has nothing left to do. Hanging threads last until the process ends."""
        for _ in range(self._started):
            self._queue.put(None)


def _hand_over(answer: "asyncio.Future[Any]", result: Any, failure: Exception | None) -> None:
    if answer.done():
        return
    if failure is None:
        answer.set_result(result)
    else:
        answer.set_exception(failure)


DEADLINE_S = 2.0
DNS_WAITS = WaitLimits(most=1024, share=64, crowd_share=256)
THREADS, NEW_THREADS, SLOW_THREADS = 32, 128, 4
CACHED_S, CACHED = 30.0, 20_000
SUSPECT_S = 600.0  # how long a name that was not answered in time stays in the slow pool

Lookup = Callable[[str], Sequence[str]]


class NameUnknown(OSError):
    """A name has no address, or no answer arrived in time."""


class _CachedAddresses(NamedTuple):
    addresses: Sequence[str]
    until: float


def look_up(host: str) -> Sequence[str]:
    """Return the addresses of a name, including IPv6, in the system's order. Blocks. Raises OSError, UnicodeError."""
    infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return list(dict.fromkeys(str(info[4][0]) for info in infos))


class DnsLane:
    """Resolves names to addresses that the guard allows. Answers are cached for half a minute.

    The system's resolver blocks a thread for up to half a minute. In asyncio's own pool, six
    such names would delay every other delivery. Lookups therefore have their own pools: one
    for names that were answered before, one for new names, and a small one for names that
    were not answered in time. However many names hang, they only fill the pool of their kind.
    Those who wait have places in `room`. A lookup that no thread has begun ends with the last
    of them.
    """

    def __init__(
        self, guard: EgressGuard, clock: Clock, *, lookup: Lookup = look_up, deadline_s: float = DEADLINE_S
    ) -> None:
        self.guard = guard
        self._clock = clock
        self._lookup = lookup
        self._fast = DaemonThreads(THREADS, "webhook-dns")
        self._new = DaemonThreads(NEW_THREADS, "webhook-dns-new")
        self._slow = DaemonThreads(SLOW_THREADS, "webhook-dns-slow")
        self._cache: OrderedDict[str, _CachedAddresses] = OrderedDict()
        self._suspect: OrderedDict[str, float] = OrderedDict()
        self.room = WaitingRoom("dns", replace(DNS_WAITS, longest_s=deadline_s))
        self._running: dict[str, asyncio.Future[Sequence[str]]] = {}
        self._waiting: Counter[str] = Counter()  # who waits for each of them
        self._begun: set[str] = set()  # names that a thread is looking up; the others in `_running` wait for a thread

    async def resolve(self, host: str) -> Sequence[str]:
        """Return the addresses of a name after checking every one.

        Raises:
            NameUnknown: there is none, or no answer in time, by default within two seconds.
            TargetRefused: one of them is not allowed.
        """
        cached = self._cache.get(host)
        fresh = cached is not None and cached.until > self._clock.monotonic()
        addresses = cached.addresses if cached is not None and fresh else await self._ask(host)
        self.guard.check_all(addresses)
        return addresses

    async def _ask(self, host: str) -> Sequence[str]:
        running = self._running.get(host)
        if running is None:
            running = self._running[host] = self._pool(host).run(self._begin, host)
            running.add_done_callback(functools.partial(self._ended, host))
        self._waiting[host] += 1
        try:
            async with self.room.wait():
                addresses = await asyncio.shield(running)
        except WaitRefused as refusal:
            if refusal.reason == "late" and host in self._begun:
                self._suspect_name(host)
            raise NameUnknown(f"no answer for {host} in time") from None
        except (OSError, UnicodeError) as error:
            raise NameUnknown(f"{host} has no address") from error
        finally:
            self._leave(host, running)
        self._suspect.pop(host, None)
        if not addresses:
            raise NameUnknown(f"{host} has no address")
        return addresses

    def _leave(self, host: str, running: asyncio.Future[Sequence[str]]) -> None:
        """Note that one who waited does not any more. A lookup that nobody waits for is not begun."""
        self._waiting[host] -= 1
        if not self._waiting[host]:
            del self._waiting[host]
            if host not in self._begun:
                running.cancel()

    def _pool(self, host: str) -> DaemonThreads:
        if self._suspect.get(host, 0) > self._clock.monotonic():
            return self._slow
        return self._fast if host in self._cache and host not in self._suspect else self._new

    def _begin(self, host: str) -> Sequence[str]:
        """Look up a name, in a thread."""
        self._begun.add(host)
        return self._lookup(host)

    def _ended(self, host: str, ended: asyncio.Future[Sequence[str]]) -> None:
        """Cache an answer, even a late one. A lookup for which nobody waits any more may fail silently."""
        self._running.pop(host, None)
        self._begun.discard(host)
        if ended.cancelled() or ended.exception() is not None or not ended.result():
            return
        self._cache[host] = _CachedAddresses(ended.result(), self._clock.monotonic() + CACHED_S)
        self._cache.move_to_end(host)
        if len(self._cache) > CACHED:
            self._cache.popitem(last=False)

    def _suspect_name(self, host: str) -> None:
        self._suspect[host] = self._clock.monotonic() + SUSPECT_S
        self._suspect.move_to_end(host)
        if len(self._suspect) > CACHED:
            self._suspect.popitem(last=False)

    def close(self) -> None:
        """End the threads, without waiting for those that still wait for an answer."""
        for pool in (self._fast, self._new, self._slow):
            pool.close()


KEEP_ALIVE_S = 4.0  # less than the five seconds after which common servers close


class RequestFailed(ToolserverError):
    """There was no answer, or it ended early.

    `reason` is one word: target_refused, dns, timeout, tls, connect or closed.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"the request failed: {reason}")
        self.reason = reason


class GuardedSession:
    """An HTTP client for addresses that others name: the guard checks every connection.

    It follows no redirects, and uses neither proxies from the environment nor cookies. It
    opens with its first request, because importing aiohttp and loading the certificate
    authorities takes 0.3 s, which a thread does.

    With `proxy`, requests go through a tunnel of that HTTP proxy. The name is looked up and
    checked here all the same, and the proxy is asked for the address, not for the name, which
    it might look up to another one. Requests to this machine, where they are allowed, go
    there directly.
    """

    def __init__(
        self,
        lane: DnsLane,
        *,
        headers: Mapping[str, str],
        connect_s: float,
        total_s: float,
        load_tls: Callable[[], ssl.SSLContext] = make_tls_context,
        proxy: str | None = None,
    ) -> None:
        self._lane, self._headers, self._load_tls, self._proxy = lane, headers, load_tls, proxy
        self._connect_s, self._total_s = connect_s, total_s
        self._opening = anyio.Lock()
        self._direct: ClientSession | None = None
        self._through_proxy: ClientSession | None = None

    @contextlib.asynccontextmanager
    async def request(
        self, method: str, url: "URL | str", *, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator["ClientResponse"]:
        """Send a request and yield its answer, whose body the caller reads within the block.

        Raises:
            RequestFailed
        """
        from yarl import URL

        if self._direct is None:
            await self._open()
        assert self._direct is not None, "opened"
        if tracing.tracer is not None:
            headers = {**(headers or {}), **tracing.headers()}
        try:
            target = URL(url)
            if self._through_proxy is None or is_local_host((target.raw_host or "").removesuffix(".")):
                asked = self._direct.request(method, target, data=body, headers=headers, allow_redirects=False)
            else:
                asked = await self._ask_proxy(self._through_proxy, method, target, body, headers)
            async with asked as answer:
                yield answer
        except Exception as failure:
            raise RequestFailed(_name_failure(failure)) from failure

    async def _ask_proxy(
        self, session: "ClientSession", method: str, url: "URL", body: bytes | None, headers: Mapping[str, str] | None
    ) -> "_RequestContextManager":
        """Return a request through the proxy to the first checked address of the URL's host.

        Raises:
            TargetRefused, NameUnknown: as for a direct connection.
        """
        host = (url.raw_host or "").removesuffix(".")
        address = str(_literal(host) or (await self._lane.resolve(host))[0])
        self._lane.guard.check_address(address, url.port)
        named = {**(headers or {}), "Host": host if url.is_default_port() else f"{host}:{url.port}"}
        return session.request(
            method,
            url.with_host(address),
            data=body,
            headers=named,
            allow_redirects=False,
            proxy=self._proxy,
            server_hostname=host,
        )

    async def close(self) -> None:
        """Close every connection."""
        for session in (self._direct, self._through_proxy):
            if session is not None:
                await session.close()

    async def _open(self) -> None:
        async with self._opening:
            if self._direct is not None:
                return
            tls = await anyio.to_thread.run_sync(_load, self._load_tls)
            import aiohttp  # loaded by now

            if self._proxy is not None:  # this connector connects to nothing but the proxy, whose address is ours
                self._through_proxy = self._make_session(
                    aiohttp.TCPConnector(ssl=tls, limit=0, keepalive_timeout=KEEP_ALIVE_S)
                )
            self._direct = self._make_session(
                aiohttp.TCPConnector(
                    resolver=GuardedResolver(self._lane),
                    use_dns_cache=False,
                    socket_factory=self._lane.guard.open_socket,
                    ssl=tls,
                    limit=0,
                    keepalive_timeout=KEEP_ALIVE_S,
                )
            )

    def _make_session(self, connector: "TCPConnector") -> "ClientSession":
        import aiohttp

        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            timeout=aiohttp.ClientTimeout(total=self._total_s, sock_connect=self._connect_s),
            headers=self._headers,
        )


def _load(load_tls: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    """Import aiohttp for the first time, and load the certificate authorities. Runs in a thread."""
    import aiohttp  # noqa: F401

    return load_tls()


class GuardedResolver(AbstractResolver):
    """Adapts the lane to aiohttp's resolver interface."""

    def __init__(self, lane: DnsLane) -> None:
        self._lane = lane

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list["ResolveResult"]:
        return [
            {
                "hostname": host,
                "host": address,
                "port": port,
                "family": socket.AF_INET6 if ":" in address else socket.AF_INET,
                "proto": 0,
                "flags": socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            }
            for address in await self._lane.resolve(host)
        ]

    async def close(self) -> None:
        """Do nothing: the lane's owner closes it."""


def _name_failure(failure: Exception) -> str:
    """Return one word for a failure without an answer. Re-raises errors that are not the receiver's failure."""
    import aiohttp

    causes = [failure, failure.__cause__, getattr(failure, "os_error", None)]
    if any(isinstance(cause, TargetRefused | aiohttp.InvalidURL) for cause in causes):
        return "target_refused"
    if any(isinstance(cause, NameUnknown) for cause in causes):
        return "dns"
    if isinstance(failure, TimeoutError):
        return "timeout"
    if isinstance(failure, aiohttp.ClientSSLError | ssl.SSLError):
        return "tls"
    if isinstance(failure, aiohttp.ClientConnectorError | aiohttp.ClientHttpProxyError):
        return "connect"
    if isinstance(failure, aiohttp.ClientError | OSError):
        return "closed"
    raise failure
