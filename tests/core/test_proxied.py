"""What leaves through a company's proxy: sources, RPC servers, a bridged service, and webhooks by their own setting.

The proxy is proxy.py, which asks for a user name and password. The hosts have certificates of an authority that only
SSL_CERT_FILE names, as where a company inspects traffic.
"""

from datetime import UTC, datetime

import pytest
import trustme

from tests.core.company_proxy import PASSWORD, USER, company_proxy
from tests.upstream.test_fetcher import Get, source_of
from tests.webhooks.receivers import receiving, status
from toolserver.cli.network_check import find_cause, judge_servers
from toolserver.clock import SystemClock
from toolserver.core.http import HttpClient, Unreachable
from toolserver.core.json_rpc import JsonRpcClient, RpcUnusable
from toolserver.core.outbound import NO_PROXIES, make_tls_context, read_proxies
from toolserver.upstream.fetcher import Fetcher
from toolserver.upstream.http_sender import HttpSender
from toolserver.upstream.source import SourceDown
from toolserver.webhooks.egress import DnsLane, EgressGuard, GuardedSession, RequestFailed

HOST, PUBLIC = "api.corp-test.example", "93.184.215.14"
NUMBER = status(200, "Content-Type: application/json", body=b'{"value": 7}')
HEIGHT = status(200, "Content-Type: application/json", body=b'{"jsonrpc": "2.0", "id": 1, "result": "0x1"}')
NOW = datetime.now(UTC)


@pytest.fixture(scope="module")
def proxy(tmp_path_factory):
    with company_proxy(tmp_path_factory.mktemp("proxy")) as running:
        yield running


@pytest.fixture
def tls(tmp_path, monkeypatch):
    """The TLS of the hosts, whose authority this machine trusts by SSL_CERT_FILE."""
    import ssl

    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(HOST).configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "corp.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "corp.pem"))
    return context


async def fetch(url, proxies):
    sender = HttpSender(clock=SystemClock(), keys={}, user_agent="t", proxies=proxies)
    fetcher = Fetcher(sender, keys={})
    try:
        return (await fetcher.fetch(source_of(Get(url)), None)).answer.value.value
    finally:
        await fetcher.aclose()


async def test_a_source_is_read_through_a_tunnel(proxy, tls):
    async with receiving(NUMBER, tls) as host:
        url = host.url("https", HOST, "/v1")
        assert await fetch(url, read_proxies(proxy.url(), {})) == 7
        assert await fetch(url, read_proxies(None, {"HTTPS_PROXY": proxy.url()})) == 7
    assert proxy.asked[-1] == f"{HOST}:{host.port}"
    assert "proxy-authorization" not in host.requests[0].headers


async def test_a_refusing_proxy_is_a_failure_that_does_not_quote_the_password(proxy, tls):
    async with receiving(NUMBER, tls) as host:
        with pytest.raises(SourceDown) as failed:
            await fetch(host.url("https", HOST, "/v1"), read_proxies(proxy.url("wrong"), {}))
    assert (failed.value.reason, host.connections) == ("connect: ProxyError", 0)


async def test_an_authority_that_this_machine_does_not_trust_is_refused(proxy, tls, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE")
    async with receiving(NUMBER, tls) as host:
        with pytest.raises(SourceDown):
            await fetch(host.url("https", HOST, "/v1"), read_proxies(proxy.url(), {}))
    assert host.requests == []


async def test_a_bridged_service_is_reached_through_the_proxy(proxy, tls):
    async with receiving(NUMBER, tls) as host:
        for password, reached in ((PASSWORD, True), ("wrong", False)):
            client = HttpClient(host.url("https", HOST, ""), proxies=read_proxies(proxy.url(password), {}))
            try:
                answer = await client.ask("GET", "/api/x", headers={}, within_s=5)
                assert reached
                assert answer.body == b'{"value": 7}'
            except Unreachable:
                assert not reached
            finally:
                await client.aclose()


async def ask_height(url, proxies):
    rpc = JsonRpcClient(url, timeout_s=5, most_bytes=1000, proxies=proxies)
    try:
        return await rpc.call("eth_blockNumber"), rpc.is_privately_certified
    finally:
        await rpc.aclose()


async def test_an_rpc_server_is_reached_through_the_proxy_and_its_private_authority_is_noted(proxy, tls):
    async with receiving(HEIGHT, tls) as host:
        url = host.url("https", HOST, "/key")
        assert await ask_height(url, read_proxies(proxy.url(), {})) == ("0x1", True)
        with pytest.raises(RpcUnusable, match="ClientHttpProxyError"):
            await ask_height(url, read_proxies(proxy.url("wrong"), {}))
        with pytest.raises(RpcUnusable, match="SOCKS"):
            await ask_height(url, read_proxies("socks5://127.0.0.1:1", {}))
    async with receiving(HEIGHT) as plain:
        assert await ask_height(plain.url(), NO_PROXIES) == ("0x1", False)


async def test_a_certificate_of_a_public_authority_is_not_private(tls, monkeypatch):
    monkeypatch.setattr("toolserver.core.json_rpc._load_public_authorities", make_tls_context)
    async with receiving(HEIGHT, tls) as host:
        monkeypatch.setattr("socket.getaddrinfo", lead_here)
        assert await ask_height(host.url("https", HOST, "/"), NO_PROXIES) == ("0x1", False)


def lead_here(host, port, *more, **named):
    import socket

    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]


async def post_webhook(proxy_url, host, tls_of_client=make_tls_context):
    lane = DnsLane(EgressGuard(ports=(host.port,)), SystemClock(), lookup=lambda name: [PUBLIC])
    session = GuardedSession(lane, headers={}, connect_s=5, total_s=5, load_tls=tls_of_client, proxy=proxy_url)
    try:
        async with session.request("POST", host.url("https", HOST), body=b"{}") as answer:
            return answer.status
    finally:
        await session.close()
        lane.close()


async def test_a_webhook_goes_to_the_checked_address_under_its_name(proxy, tls):
    async with receiving(status(200), tls) as host:
        assert await post_webhook(proxy.url(), host) == 200
    assert proxy.asked[-1] == f"{PUBLIC}:{host.port}"  # the proxy does not look the name up again
    assert host.requests[0].headers["host"] == f"{HOST}:{host.port}"  # and TLS was verified for the name


async def test_a_webhook_to_a_private_address_is_refused_before_the_proxy_is_asked(proxy, tls):
    before = proxy.asked
    async with receiving(status(200), tls) as host:
        lane = DnsLane(EgressGuard(ports=(host.port,)), SystemClock(), lookup=lambda name: ["10.0.0.1"])
        session = GuardedSession(lane, headers={}, connect_s=5, total_s=5, proxy=proxy.url())
        for name in (HOST, "10.0.0.1"):
            with pytest.raises(RequestFailed, match="target_refused"):
                async with session.request("POST", host.url("https", name)):
                    pass
        await session.close()
        lane.close()
        with pytest.raises(RequestFailed, match="connect"):
            await post_webhook(proxy.url("wrong"), host)
    assert (proxy.asked, host.connections) == (before, 0)


def test_doctor_names_what_a_proxy_does(proxy):
    def cause(url):
        finding = find_cause([HOST], read_proxies(url, {}), lambda: NOW)
        assert finding is not None
        assert PASSWORD not in finding.said
        return finding.cause, "user:password" in finding.said

    assert cause(proxy.url("wrong")) == ("proxy_refuses", True)
    assert cause(f"http://{USER}:{PASSWORD}@127.0.0.1:9") == ("proxy_unreachable", False)


def test_servers_behind_one_proxy_count_as_one():
    proxies = read_proxies("http://anna:secret@proxy.corp:3128", {"NO_PROXY": "c.example"})
    found = judge_servers(["https://a.example/k", "https://b.example/k"], proxies, lambda: NOW)
    assert found == (1, ("the proxy http://proxy.corp:3128",))
    assert judge_servers(["https://a.example/k", "http://c.example/k"], proxies, lambda: NOW) == (2, ())
