"""Asking the owner of the ledger: signed, twice at most, and not at all while the circuit is open."""

import json
from contextlib import suppress
from functools import partial

import anyio
import anyio.lowlevel
import httpx
import pytest

from tests.calls.parts import START
from toolserver.clock import ManualClock
from toolserver.core.circuit_breaker import CircuitBreaker
from toolserver.core.http import HttpClient
from toolserver.money.ledger.client.http import (
    CHECK_S,
    GLANCE_S,
    PAUSE_S,
    PAUSE_SPREAD_S,
    STEP_S,
    TRIES,
    TRY_S,
    LedgerOwnerClient,
    OwnerRefusal,
    Unanswered,
    choose_pause,
)
from toolserver.money.ledger.client.messages import (
    CANARY,
    COMMIT,
    REPLY_SIGNATURE,
    VALIDATE,
    Committed,
    Validate,
    Validated,
    mac,
    reply_mac,
    signature,
)
from toolserver.money.ledger.protocol import CallReused

YES = httpx.Response(200, json={"ok": True, "credits_remaining": 5})
NO = httpx.Response(401, json={"ok": False})
DOWN = httpx.ConnectError("refused")
ASKED = Validate(cost=2, token="t", call_id="c1")


@pytest.fixture
async def owner():
    """A client, whose owner gives `client.answers` one after the other and keeps requests in `client.requests`."""
    clock, answers, requests, states = ManualClock(START), [], [], []

    def answer(request):
        requests.append(request)
        states.append(client.rejected)
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found(request) if callable(found) else found

    client = LedgerOwnerClient(
        HttpClient("http://owner.test", transport=httpx.MockTransport(answer)),
        key_id="b-1",
        service="b",
        secret="s" * 32,
        breaker=CircuitBreaker(clock, chance=lambda: 0.0),
        clock=clock,
        choose_pause=lambda: client.pause_s,
    )
    client.answers, client.requests, client.states = answers, requests, states
    client.clock, client.pause_s = clock, 0.0
    yield client
    await client.aclose()


async def test_a_request_is_signed_over_its_route_and_body(owner):
    owner.answers += [YES]
    assert (await owner.ask(VALIDATE, ASKED, Validated)).credits_remaining == 5
    (request,) = owner.requests
    found = signature(request.headers["authorization"])
    assert (request.method, request.url.path) == ("POST", VALIDATE)
    assert (request.headers["content-type"], found.key_id) == ("application/json", "b-1")
    assert json.loads(request.content) == {"cost": 2, "token": "t", "call_id": "c1"}
    assert found.mac == mac("s" * 32, VALIDATE, int(START.timestamp()), request.content, found.nonce)


async def test_a_request_that_failed_is_sent_once_more(owner):
    owner.answers += [DOWN, YES]
    assert (await owner.ask(VALIDATE, ASKED, Validated)).ok
    assert len(owner.requests) == 2


@pytest.mark.parametrize("failure", [DOWN, httpx.Response(500), httpx.Response(200, content=b"nonsense")])
async def test_an_owner_that_fails_twice_may_have_done_it(owner, failure):
    owner.answers += [failure, failure]
    with pytest.raises(Unanswered) as caught:
        await owner.ask(COMMIT, ASKED, Committed)
    assert caught.value.perhaps
    assert len(owner.requests) == 2


async def test_one_try_is_one_request(owner):
    owner.answers += [DOWN]
    with pytest.raises(Unanswered):
        await owner.ask(VALIDATE, ASKED, Validated, tries=1)
    assert len(owner.requests) == 1


async def test_a_request_that_is_rejected_was_not_done_unless_the_one_before_it_was(owner, caplog):
    owner.answers += [httpx.Response(401)]
    with pytest.raises(Unanswered) as caught:
        await owner.ask(VALIDATE, ASKED, Validated)
    assert not caught.value.perhaps
    owner.answers += [DOWN, httpx.Response(401)]
    with pytest.raises(Unanswered) as caught:
        await owner.ask(VALIDATE, ASKED, Validated)
    assert caught.value.perhaps
    assert "rejects our requests" in caplog.text


async def test_a_refusal_and_a_reused_call_are_answers_that_are_not_asked_for_again(owner):
    owner.answers += [httpx.Response(200, json={"ok": False, "reason": "expired"}), httpx.Response(409)]
    assert await owner.ask(VALIDATE, ASKED, Validated) == OwnerRefusal("expired")
    with pytest.raises(CallReused):
        await owner.ask(VALIDATE, ASKED, Validated)
    assert len(owner.requests) == 2
    assert owner.breaker.closed


async def test_while_the_circuit_is_open_nothing_is_sent_and_nothing_was_done(owner, caplog):
    while owner.breaker.closed:
        owner.answers[:] = [DOWN]
        with pytest.raises(Unanswered):
            await owner.ask(VALIDATE, ASKED, Validated, tries=1)
    sent = len(owner.requests)
    with pytest.raises(Unanswered) as caught:
        await owner.ask(VALIDATE, ASKED, Validated)
    assert not caught.value.perhaps
    assert len(owner.requests) == sent
    assert "the ledger is away" in caplog.text


@pytest.mark.parametrize(("answer", "there"), [(YES, True), (httpx.Response(403), True), (DOWN, False)])
async def test_a_probe_finds_out_whether_anybody_answers(owner, answer, there):
    owner.answers += [answer]
    assert await owner.probe() is there
    (request,) = owner.requests
    canary = {"cost": 0, "account_ref": "acct_canary", "service": "b"}
    assert (request.url.path, json.loads(request.content)) == (VALIDATE, canary)


@pytest.mark.parametrize("failure", [DOWN, httpx.Response(399), httpx.Response(500)])
async def test_five_failures_in_a_row_open_the_circuit_and_an_answer_between_them_does_not_count(owner, failure):
    for answers in ([failure] * 4, [httpx.Response(400)], [failure] * 4, [httpx.Response(409)], [failure] * 4):
        for answer in answers:
            owner.answers += [answer]
            with pytest.raises((Unanswered, CallReused)):
                await owner.ask(VALIDATE, ASKED, Validated, tries=1)
        assert owner.breaker.closed
    owner.answers += [YES, *[failure] * 5]
    await owner.ask(VALIDATE, ASKED, Validated)
    for tries in (2, 2):
        with pytest.raises(Unanswered):
            await owner.ask(VALIDATE, ASKED, Validated, tries=tries)
    assert (owner.breaker.closed, len(owner.answers)) == (True, 1)
    with pytest.raises(Unanswered, match=r"ConnectError|HTTP") as caught:
        await owner.ask(VALIDATE, ASKED, Validated)
    assert (owner.breaker.closed, owner.answers, caught.value.perhaps) == (False, [], True)


async def test_a_refusal_has_all_its_reasons(owner):
    said = {"ok": False, "reason": "insufficient_credits", "credits_remaining": 1, "cap": "tools", "detail": "why"}
    owner.answers += [httpx.Response(200, json=said)]
    assert await owner.ask(VALIDATE, ASKED, Validated) == OwnerRefusal("insufficient_credits", 1, "tools", "why")


@pytest.fixture
def slept(owner, monkeypatch):
    """How long the client slept each time, which moves the clock instead."""
    slept = []

    async def sleep(seconds):
        slept.append(seconds)
        assert len(slept) < 1000
        owner.clock.advance(seconds)
        await anyio.lowlevel.checkpoint()

    monkeypatch.setattr(anyio, "sleep", sleep)
    return slept


async def test_there_is_a_short_pause_before_the_second_try_and_none_before_the_first(owner, slept):
    owner.pause_s = choose_pause(lambda: 0.5)
    owner.answers += [YES, DOWN, YES]
    await owner.ask(VALIDATE, ASKED, Validated)
    assert slept == []
    await owner.ask(VALIDATE, ASKED, Validated)
    assert slept == [pytest.approx(0.1)]
    assert (TRY_S, TRIES, STEP_S, PAUSE_S, PAUSE_SPREAD_S) == (2.0, 2, 4.5, 0.05, 0.1)


async def test_while_the_circuit_is_open_the_owner_is_probed_after_each_wait_until_it_is_back(owner, slept):
    owner.answers += [DOWN] * 5
    while owner.breaker.closed:
        with pytest.raises(Unanswered):
            await owner.ask(VALIDATE, ASKED, Validated, tries=1)
    began, wait_s, back = owner.clock.monotonic(), owner.breaker.wait_s, anyio.Event()
    owner.requests.clear()
    owner.answers += [DOWN, YES, YES]
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(owner.look_after, back.set)
            await back.wait()
            tasks.cancel_scope.cancel()
    assert (owner.breaker.closed, len(owner.requests)) == (True, 3)
    assert owner.clock.monotonic() - began == pytest.approx(wait_s + 2 * wait_s)
    assert max(slept) == GLANCE_S == 1.0


async def test_the_owner_is_asked_now_and_then_whether_it_accepts_our_requests(owner, caplog):
    owner.answers += [NO, NO, YES, NO, *[YES] * 50]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(owner.look_after, lambda: None, check_s=0.0))
        with anyio.fail_after(10):
            while len(owner.requests) < 6:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert owner.states[:6] == [None, 401, 401, None, 401, None]  # before each request
    assert json.loads(owner.requests[0].content) == {"cost": 0, "account_ref": CANARY, "service": "b"}
    assert caplog.text.count("rejects our requests: HTTP 401") == 2  # once each time it begins
    assert CHECK_S == 30.0


@pytest.mark.parametrize(("answer", "rejected"), [(YES, None), (httpx.Response(409), None), (httpx.Response(403), 403)])
async def test_what_the_owner_answered_last_tells_whether_it_accepts_our_requests(owner, answer, rejected):
    owner.answers += [NO, httpx.Response(404), DOWN, answer]
    for expected in (401, 401, 401, rejected):
        with suppress(Unanswered, CallReused):
            await owner.ask(VALIDATE, ASKED, Validated, tries=1)
        assert owner.rejected == expected


def signed_reply(request, body, secret="s" * 32, status=200):
    """A reply with the signature of who has this secret."""
    content = json.dumps(body).encode()
    said = signature(request.headers["authorization"])
    headers = {REPLY_SIGNATURE: reply_mac(secret, said.mac, status, content)}
    return httpx.Response(status, content=content, headers=headers)


async def ask_and_get(owner, reply):
    """Ask once; `reply` makes the answer to the request that was sent."""
    owner.answers.append(reply)
    return await owner.ask(VALIDATE, ASKED, Validated, tries=1)


async def test_a_reply_is_signed_for_its_own_request_and_from_the_first_one_on_no_other_is_taken(owner):
    body = {"ok": True, "credits_remaining": 5}
    kept = []

    def good(request):
        kept.append(signed_reply(request, body))
        return kept[-1]

    assert (await ask_and_get(owner, lambda request: httpx.Response(200, json=body))).credits_remaining == 5
    assert (await ask_and_get(owner, good)).credits_remaining == 5
    again = httpx.Response(200, content=kept[0].content, headers=kept[0].headers)
    for forged in (
        lambda request: httpx.Response(200, json=body),
        lambda request: again,
        lambda request: signed_reply(request, body, secret="x" * 32),
        lambda request: httpx.Response(200, json=body | {"credits_remaining": 500}, headers=good(request).headers),
    ):
        with pytest.raises(Unanswered, match="not signed"):
            await ask_and_get(owner, forged)
    assert (await ask_and_get(owner, good)).credits_remaining == 5


async def test_every_try_has_a_nonce_of_its_own(owner):
    owner.answers += [DOWN, YES]
    await owner.ask(VALIDATE, ASKED, Validated)
    nonces = {signature(request.headers["authorization"]).nonce for request in owner.requests}
    assert len(nonces) == 2
    assert None not in nonces
