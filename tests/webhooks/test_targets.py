from datetime import UTC, datetime

import pytest

from toolserver.clock import ManualClock
from toolserver.errors import InvalidArguments
from toolserver.webhooks.dns_lane import DnsLane
from toolserver.webhooks.egress import EgressGuard
from toolserver.webhooks.subscriptions import check_headers, check_target


async def check(url, answer):
    guard = EgressGuard()
    lane = DnsLane(guard, ManualClock(datetime(2027, 1, 1, tzinfo=UTC)), lookup=answer)
    try:
        return await check_target(guard, lane, url)
    finally:
        lane.close()


def unknown(host):
    raise OSError(-2, "unknown")


async def test_a_name_is_looked_up_when_it_is_registered():
    assert str(await check("https://a.example/hook", lambda host: ["1.1.1.1"])) == "https://a.example/hook"
    with pytest.raises(InvalidArguments) as refused:
        await check("https://a.example/hook", lambda host: ["1.1.1.1", "10.0.0.1"])
    assert refused.value.extra["errors"][0]["type"] == "private_address"


async def test_a_name_without_an_address_yet_is_taken():
    assert await check("https://a.example/hook", unknown)


def test_custom_headers_are_taken_as_they_are():
    assert check_headers({"Authorization": "Bearer abc", "X-Env": "test"}) == {
        "Authorization": "Bearer abc",
        "X-Env": "test",
    }


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "a"},
        {"content-length": "1"},
        {"Content-Type": "text/plain"},
        {"Transfer-Encoding": "chunked"},
        {"User-Agent": "a"},
        {"Cookie": "a"},
        {"X-Service-Signature": "a"},
        {"WEBHOOK-ID": "a"},
        {"X-A": "a\nb"},
        {"X-A": "é"},
        {"X-A": "a" * 1025},
        {"X A": "a"},
        {"": "a"},
        {"X:A": "a"},
        {f"X-{n}": "a" for n in range(11)},
    ],
)
def test_headers_that_could_pass_for_ours_or_break_the_request_are_refused(headers):
    with pytest.raises(InvalidArguments) as refused:
        check_headers(headers)
    assert refused.value.extra["errors"][0]["loc"] == "headers"


def test_a_refusal_never_repeats_a_value():
    with pytest.raises(InvalidArguments) as refused:
        check_headers({"X-Key": "hidden\n"})
    assert "hidden" not in str(refused.value)
    assert "hidden" not in repr(refused.value.extra)
