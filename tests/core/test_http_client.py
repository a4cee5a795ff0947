"""A service over HTTP: bounded in time and size, and followed nowhere else."""

import ssl

import anyio
import httpx
import pytest

from toolserver.core.http import MOST_BYTES, HttpClient, Unreachable, name_failure


class Peer:
    """Answers what is arranged, and keeps what it was asked."""

    def __init__(self, answer):
        self._answer, self.asked = answer, []
        self.client = HttpClient("https://ledger.example/base/", transport=httpx.MockTransport(self._handle))

    async def _handle(self, request):
        self.asked.append(request)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer if isinstance(self._answer, httpx.Response) else await self._answer(request)

    async def ask(self, within_s=5.0, **more):
        try:
            return await self.client.ask("POST", "/v1/x", headers={"authorization": "a"}, within_s=within_s, **more)
        finally:
            await self.client.aclose()


async def test_a_request_goes_below_the_base_url_with_its_body_and_headers():
    peer = Peer(httpx.Response(402, content=b"{}", headers={"X-Some": "y"}))
    answer = await peer.ask(body=b"hello")
    (sent,) = peer.asked
    assert (str(sent.url), sent.content, sent.headers["authorization"]) == (
        "https://ledger.example/base/v1/x",
        b"hello",
        "a",
    )
    assert sent.headers["accept-encoding"] == "identity"
    assert (answer.status, answer.headers["x-some"], answer.body) == (402, "y", b"{}")


async def test_a_redirect_is_an_answer_and_is_not_followed():
    peer = Peer(httpx.Response(302, headers={"location": "https://evil.example/"}))
    assert ((await peer.ask()).status, len(peer.asked)) == (302, 1)


@pytest.mark.parametrize(("size", "is_read"), [(MOST_BYTES, True), (MOST_BYTES + 1, False)])
async def test_an_answer_over_the_limit_is_none(size, is_read):
    peer = Peer(httpx.Response(200, content=b"x" * size))
    if is_read:
        assert len((await peer.ask()).body) == size
    else:
        with pytest.raises(Unreachable, match="too long"):
            await peer.ask()


@pytest.mark.parametrize("error", [httpx.ConnectError("no"), httpx.ReadTimeout("late"), httpx.RemoteProtocolError("?")])
async def test_what_goes_wrong_on_the_way_is_told_by_its_kind_only(error):
    with pytest.raises(Unreachable, match=f"^{type(error).__name__}$"):
        await Peer(error).ask()


async def test_an_answer_that_does_not_come_in_time_is_given_up():
    async def hang(request):
        await anyio.sleep_forever()

    with pytest.raises(Unreachable, match="TimeoutError"):
        await Peer(hang).ask(within_s=0.02)


def test_a_failure_is_named_by_its_class_or_by_what_is_wrong_with_the_certificate():
    refused = ssl.SSLCertVerificationError(1, "certificate verify failed")
    refused.verify_message = "unable to get local issuer certificate"
    failure = httpx.ConnectError("no")
    assert name_failure(failure) == "ConnectError"
    failure.__cause__ = RuntimeError("of the pool")
    failure.__cause__.__context__ = refused
    assert name_failure(failure) == "its certificate is not trusted (unable to get local issuer certificate)"


async def test_no_cookie_is_kept_between_two_requests():
    seen = []

    def answer(request):
        seen.append(request.headers.get("cookie"))
        return httpx.Response(200, headers={"set-cookie": "session=of-a-caller; Path=/"}, json={})

    http = HttpClient("https://owner.example", transport=httpx.MockTransport(answer))
    for _ in range(2):
        await http.ask("GET", "/x", headers={}, within_s=1)
    await http.aclose()

    assert seen == [None, None]
