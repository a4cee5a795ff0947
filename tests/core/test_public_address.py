from ipaddress import ip_address

import pytest

from toolserver.core.public_address import is_loopback, is_public


@pytest.mark.parametrize("text", ["1.1.1.1", "8.8.8.8", "223.255.255.255", "2606:4700:4700::1111", "::ffff:8.8.8.8"])
def test_addresses_of_the_internet_are_public(text):
    assert is_public(ip_address(text))


@pytest.mark.parametrize(
    "text",
    "0.1.2.3 10.0.0.1 100.127.255.255 127.9.9.9 169.254.0.1 172.31.0.1 192.0.0.9 192.0.2.7 192.88.99.1 192.168.0.1 "
    "198.19.0.1 198.51.100.1 203.0.113.1 224.0.0.1 239.1.1.1 255.255.255.255 :: ::1 ::127.0.0.1 ::ffff:10.0.0.1 "
    "64:ff9b::7f00:1 64:ff9b::808:808 64:ff9b:1::1 100::1 2001::1 2001:db8::1 2002:7f00:1:: 3fff::1 5f00::1 fc00::1 "
    "fd00:ec2::254 fe80::1 fec0::1 ff02::1 4000::1 2606:4700::1%eth0".split(),
)
def test_everything_else_is_not(text):
    assert not is_public(ip_address(text))


def test_loopback_is_recognised_in_both_families():
    assert all(is_loopback(ip_address(text)) for text in ("127.0.0.1", "127.255.0.1", "::1", "::ffff:127.0.0.1"))
    assert not any(is_loopback(ip_address(text)) for text in ("10.0.0.1", "::2", "::ffff:10.0.0.1"))
