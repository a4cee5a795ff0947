"""How requests leave this machine: which proxy, which authorities. What goes through a proxy is in test_proxied.py."""

import importlib.util

import pytest
import trustme

from toolserver.core.outbound import NO_PROXIES, ProxyUnusable, make_tls_context, read_proxies
from toolserver.settings import Settings

CORP = "http://proxy.corp:3128"


def found(url, setting=None, **environment):
    proxy = read_proxies(setting, environment).find(url)
    return None if proxy is None else (proxy.address, proxy.named_by)


def test_the_setting_comes_before_the_environment_and_lower_case_before_upper():
    other = {"HTTPS_PROXY": "http://other:1"}
    assert found("https://a.example/", CORP, **other) == (CORP, "upstream.proxy")
    assert found("https://a.example/", "direct", **other) is None
    assert found("https://a.example/", **other) == ("http://other:1", "HTTPS_PROXY")
    assert found("https://a.example/", https_proxy=CORP, **other) == (CORP, "https_proxy")
    assert found("http://a.example/", **other) is None
    assert found("http://a.example/", ALL_PROXY="proxy.corp:3128/") == (CORP, "ALL_PROXY")
    assert found("http://a.example/", HTTP_PROXY=CORP, ALL_PROXY="http://other:1") == (CORP, "HTTP_PROXY")
    assert found("https://a.example/") is None


@pytest.mark.parametrize(
    ("url", "exempt", "direct"),
    [
        ("https://a.example/", "a.example", True),
        ("https://sub.a.example/", "a.example", True),
        ("https://sub.a.example/", ".a.example, b.example", True),
        ("https://sub.a.example/", "*.a.example", True),
        ("https://ba.example/", "a.example", False),
        ("https://a.example/", "*", True),
        ("https://A.Example./", "a.EXAMPLE", True),
        ("https://a.example:8443/", "a.example:8443", True),
        ("https://a.example/", "a.example:8443", False),
        ("https://a.example/", "a.example:443", True),
        ("https://10.1.2.3/", "10.0.0.0/8", True),
        ("https://11.1.2.3/", "10.0.0.0/8", False),
        ("https://10.1.2.3:8545/", "10.1.2.3:8545", True),
        ("https://[2001:db8::1]/", "2001:db8::/32", True),
        ("https://[2001:db8::1]:443/", "[2001:db8::1]:443", True),
        ("https://a.example/", "", False),
        ("https://a.example/", ".", False),
        ("http://127.0.0.1:8545/", "", True),
        ("http://localhost/", "", True),
        ("https://[::1]/", "", True),
    ],
)
def test_hosts_of_no_proxy_and_this_machine_are_reached_directly(url, exempt, direct):
    assert (found(url, CORP, no_proxy=exempt) is None) is direct


@pytest.mark.parametrize("address", ["ftp://a:1", "http://", "http://a:1/path", "http://a:99999", "socks4://a:1"])
def test_what_is_no_address_of_a_proxy_is_refused_without_quoting_it(address):
    with pytest.raises(ProxyUnusable, match=r"^HTTPS_PROXY must be http://") as refused:
        read_proxies(None, {"HTTPS_PROXY": address})
    assert "99999" not in str(refused.value)
    with pytest.raises(ValueError, match="must be http://"):
        Settings(upstream={"proxy": address})


def test_socks_needs_its_extra(monkeypatch):
    assert found("https://a.example/", "socks5://a:1080") == ("socks5://a:1080", "upstream.proxy")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ProxyUnusable, match="extra 'socks'"):
        read_proxies("socks5://a:1080", {})


def test_webhooks_take_an_http_proxy_alone():
    assert Settings(webhooks={"proxy": "corp:3128"}).webhooks.proxy_address == "http://corp:3128"
    with pytest.raises(ValueError, match="must be an http proxy"):
        Settings(webhooks={"proxy": "socks5://corp:1080"})


def test_a_password_is_not_shown():
    (proxy,) = read_proxies("http://anna:secret@proxy.corp:3128", {}).list_all()
    assert proxy.place == "http://proxy.corp:3128"
    assert NO_PROXIES.list_all() == []


def test_the_authorities_of_the_environment_are_trusted(tmp_path, monkeypatch):
    authority = trustme.CA(organization_name="Corp Inspection")
    authority.cert_pem.write_to_path(str(tmp_path / "corp.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "corp.pem"))
    (trusted,) = make_tls_context().get_ca_certs()
    assert ((("organizationName", "Corp Inspection"),),) == trusted["subject"][:1]


def test_without_authorities_of_the_system_those_of_certifi_are_trusted(tmp_path, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    assert len(make_tls_context().get_ca_certs()) == 1  # the tests' own certifi has one: see tests/certificates.py
