"""The long-running verbs: what they refuse, what they announce, in which order they start and how they end."""

import json
import re

import anyio
import pytest

from toolserver.cli import serve as module
from toolserver.cli.serve import (
    DEMO_CREDITS,
    demo_command,
    serve_command,
    serve_until,
    world_command,
)
from toolserver.serving.listen import bind_socket
from toolserver.settings import (
    LedgerSettings,
    Settings,
    WebhookSettings,
)


@pytest.fixture
def served(monkeypatch):
    """Runs the lifespan of the app in place of an HTTP server, and stops as soon as the service is ready."""
    seen = []

    async def serve(app, sock, settings, *, stop, is_replaced):
        seen.append(settings)
        sock.close()
        go, done = anyio.Event(), anyio.Event()

        async def receive():
            if not go.is_set():
                go.set()
                return {"type": "lifespan.startup"}
            return {"type": "lifespan.shutdown"}

        async def send(message):
            if message["type"] == "lifespan.startup.failed":
                raise RuntimeError("the server gives up")
            done.set()

        await app({"type": "lifespan"}, receive, send)

    async def serve_metrics(settings, sock, metrics, stop, pages, *, is_replaced):
        sock.close()

    monkeypatch.setattr(module, "serve", serve)
    monkeypatch.setattr(module, "serve_metrics", serve_metrics)
    monkeypatch.setattr(module, "freeze_startup", lambda: None)
    return seen


@pytest.mark.usefixtures("served")
async def test_what_comes_first_is_done_before_the_ready_line(tmp_path, capsys):
    printed = []

    async def first(service):
        printed.append(capsys.readouterr().out)

    stop = anyio.Event()
    with anyio.fail_after(60):
        await serve_until(
            Settings(data_dir=tmp_path, port=0),
            stop,
            ready_json=True,
            facts={"credits": 5},
            first=first,
        )
    line = json.loads(capsys.readouterr().out)
    assert printed == [""]
    assert (line["ready"], line["credits"], stop.is_set()) == (True, 5, True)


@pytest.mark.usefixtures("served")
async def test_for_a_person_the_hint_is_written_from_the_base_url(tmp_path, capsys):
    given = Settings(data_dir=tmp_path, port=0)
    with anyio.fail_after(60):
        await serve_until(given, anyio.Event(), ready_json=False, facts={}, hint=lambda base_url: f"curl {base_url}")
    assert re.search(r"\ncurl http://127\.0\.0\.1:\d+\n$", capsys.readouterr().out)


@pytest.mark.usefixtures("served")
async def test_a_service_that_cannot_start_ends_the_program_with_its_reason(tmp_path):
    (tmp_path / "ledger.sqlite3").write_text("no database" * 99)
    with anyio.fail_after(60), pytest.raises(BaseExceptionGroup) as ended:
        await serve_until(
            Settings(data_dir=tmp_path, port=0),
            anyio.Event(),
            ready_json=True,
            facts={},
        )
    assert ended.group_contains(SystemExit, match="the service could not start: .*not a database")


@pytest.fixture
def until(monkeypatch):
    """What `serve_until` was called with."""
    calls = []

    async def serve_until(settings, stop, **named):
        calls.append((settings, named))

    monkeypatch.setattr(module, "serve_until", serve_until)
    return calls


@pytest.mark.parametrize(
    ("settings", "everything", "why"),
    [
        (Settings(workers=2), False, "more than one worker"),
        (Settings(host="0.0.0.0"), True, "--everything is for development"),
    ],
)
async def test_what_cannot_be_served_is_refused_before_anything_is_bound(until, settings, everything, why):
    with pytest.raises(SystemExit, match=why):
        await serve_command(settings, ready_json=True, everything=everything)
    assert until == []


@pytest.mark.parametrize(
    ("upstream", "warned"),
    [({}, True), ({"contact": "ops@data.example"}, False), ({"via": "http://127.0.0.1:9"}, False)],
)
@pytest.mark.usefixtures("until")
async def test_a_missing_contact_is_warned_of_where_upstreams_are_real(caplog, upstream, warned):
    await serve_command(Settings(upstream=upstream), ready_json=True)
    assert ("upstream.contact is not set" in caplog.text) is warned


@pytest.fixture
def no_world(monkeypatch):
    """A simulated world that says a port and serves nothing."""

    async def serve_world(state, packages, host, port, routes=None, *, task_status):
        task_status.started(4242)
        await anyio.sleep_forever()

    monkeypatch.setattr(module, "_serve_world", serve_world)


@pytest.mark.usefixtures("no_world")
async def test_a_demo_runs_on_its_own_world_with_a_token_that_it_funds_first(until):
    minted = []

    class Service:
        class money:
            class own:
                @staticmethod
                async def mint(token, credits, *, cause):
                    minted.append((token, credits, cause))

    await demo_command(Settings(), {}, seed=1, ready_json=True)
    ((settings, named),) = until
    facts = named["facts"]
    assert (facts["world_url"], settings.upstream.via) == ("http://127.0.0.1:4242", "http://127.0.0.1:4242")
    assert settings.payments.enabled
    assert re.fullmatch("svc_live_[0-9a-f]{64}", facts["token"])
    await named["first"](Service)
    ((token, credits, cause),) = minted
    assert (token, credits) == (facts["token"], DEMO_CREDITS)
    assert facts["token"] not in cause
    assert "http://127.0.0.1:1/api/payment/buy-credits" in named["hint"]("http://127.0.0.1:1")


@pytest.mark.usefixtures("no_world")
@pytest.mark.parametrize(
    ("given", "allowed"), [(WebhookSettings(), True), (WebhookSettings(allow_loopback=False), False)]
)
async def test_a_demo_delivers_webhooks_to_this_machine_unless_that_is_switched_off(until, given, allowed):
    await demo_command(Settings(webhooks=given), {}, seed=1, ready_json=True)
    assert until[0][0].webhooks.allow_loopback is allowed


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (Settings(host="0.0.0.0"), "the demo is for development"),
        (
            Settings(ledger=LedgerSettings(url="https://a.example", key_id="k", secret="s" * 32)),
            "the demo has its own ledger",
        ),
    ],
)
async def test_a_demo_is_refused_in_public_and_on_a_ledger_of_others(until, settings, why):
    with pytest.raises(SystemExit, match=why):
        await demo_command(settings, {}, seed=1, ready_json=True)
    assert until == []


async def test_a_world_whose_port_is_taken_ends_with_a_sentence():
    with bind_socket("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit, match=f"cannot listen on 127.0.0.1, port {port}"):
            await world_command(Settings(), host="127.0.0.1", port=port, seed=1)


@pytest.mark.usefixtures("no_world")
async def test_a_world_announces_its_address_and_runs_until_a_signal(monkeypatch, capsys):
    signals = anyio.Event()

    async def stop_signal(stop):
        await signals.wait()
        stop.set()

    monkeypatch.setattr(module, "stop_signal", stop_signal)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: world_command(Settings(), host="127.0.0.1", port=0, seed=1))
            await anyio.wait_all_tasks_blocked()
            assert json.loads(capsys.readouterr().out)["world_url"] == "http://127.0.0.1:4242"
            signals.set()


async def test_a_folder_that_is_no_recording_ends_with_a_sentence(tmp_path):
    with pytest.raises(SystemExit, match="is not a recording made by"):
        await world_command(Settings(), host="127.0.0.1", port=0, seed=1, replay=tmp_path)
