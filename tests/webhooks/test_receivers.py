"""The receivers of docs/webhooks.md, run as a reader would run them, and the libraries of others."""

import hashlib
import hmac
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
import standardwebhooks
import svix

from tests.calls.parts import RICH
from tests.ports import reserve_port
from tests.requirements import proves
from tests.webhooks.receivers import certificates, receiving
from tests.webhooks.room import LOCAL, open_room
from toolserver.clock import ManualClock
from toolserver.webhooks.records import SubscriptionRequest
from toolserver.webhooks.signing import new_secret, signature_headers

DOCS = (Path(__file__).resolve().parents[2] / "docs" / "webhooks.md").read_text(encoding="utf-8")
SECRET = "whsec_00112233445566778899aabbccddeeff"
BODY = b'{"endpoint":"world-deltas","data":{}}'


def example(heading):
    """The code block under a heading."""
    return re.search(rf"### {re.escape(heading)}\n\n```\w+\n(.*?)```", DOCS, re.DOTALL)[1]


def forged():
    """Deliveries that nobody may take: changed, old, of the future, another's, replayed under a new name or time."""
    now = int(time.time())
    old = headers(age=400)
    return [
        (BODY + b" ", headers()),
        (BODY, old),
        (BODY, headers(age=-400)),
        (BODY, headers(secret=new_secret())),
        (BODY, headers() | {"webhook-id": "msg_2", "X-Service-Signature": "sha256="}),
        (BODY, old | {"webhook-timestamp": str(now), "X-Service-Timestamp": str(now)}),
        (BODY, {}),
    ]


def headers(*, secret=SECRET, body=BODY, age=0, id="msg_1"):
    return signature_headers(secret, (), message_id=id, timestamp=int(time.time()) - age, body=body)


NODE = shutil.which("node")
CLIENTS = Path(__file__).resolve().parents[1] / "live" / "clients"
INSTALL = "make clients"


def python_command(path, port):
    return [sys.executable, str(path)]


def fastapi_command(path, port):
    python = CLIENTS / ".venv-mcp1" / "bin" / "python"
    if not list(CLIENTS.glob(".venv-mcp1/lib/python*/site-packages/fastapi")):
        pytest.skip(f"FastAPI is not installed: {INSTALL}")
    options = ["--app-dir", str(path.parent), "--host", "127.0.0.1", "--port", str(port), "--log-level", "error"]
    return [str(python), "-m", "uvicorn", *options, f"{path.stem}:app"]


def node_command(path, port):
    if NODE is None:
        pytest.skip("node is not installed")
    return [NODE, str(path)]


def express_command(path, port):
    if not (CLIENTS / "node_modules" / "express").is_dir():
        pytest.skip(f"Express is not installed: {INSTALL}")
    (path.parent / "node_modules").symlink_to(CLIENTS / "node_modules")
    return node_command(path, port)


def run_receiver(tmp_path, command, code, suffix):
    path = tmp_path / f"receiver{suffix}"
    path.write_text(code, encoding="utf-8")
    port = reserve_port()
    env = {"PATH": os.environ["PATH"], "WEBHOOK_SECRET": SECRET, "PORT": str(port)}
    return port, subprocess.Popen(command(path, port), env=env, stdout=subprocess.PIPE, text=True)


def wait_for(port):
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("the receiver does not listen")


@pytest.mark.live
@pytest.mark.parametrize(
    ("heading", "command", "suffix"),
    [
        ("Python, standard library", python_command, ".py"),
        ("Python, FastAPI", fastapi_command, ".py"),
        ("Node, http", node_command, ".mjs"),
        ("Node, Express", express_command, ".mjs"),
    ],
)
def test_a_receiver_of_the_documents_takes_what_is_genuine_once_and_refuses_the_rest(
    tmp_path, heading, command, suffix
):
    port, process = run_receiver(tmp_path, command, example(heading), suffix)
    try:
        wait_for(port)
        send = lambda body, sent: httpx.post(f"http://127.0.0.1:{port}/hook", content=body, headers=sent).status_code  # noqa: E731
        assert send(BODY, headers()) == 204
        assert send(BODY, headers()) == 204, "a repetition is accepted, and not worked on"
        assert [send(body, sent) for body, sent in forged()] == [401] * len(forged())
        assert send(BODY, headers(id="msg_2")) == 204
    finally:
        process.terminate()
        printed = process.communicate()[0]
    assert printed.split() == ["world-deltas"] * 2


@pytest.mark.parametrize("library", [standardwebhooks, svix], ids=["standardwebhooks", "svix"])
@proves("webhook.standard")
def test_the_libraries_of_standard_webhooks_verify_ours_and_refuse_what_is_not(library):
    both = signature_headers(new_secret(), [SECRET], message_id="msg_1", timestamp=int(time.time()), body=BODY)
    cases = [(BODY, headers()), (BODY, both), *forged()]
    assert pypi_verdicts(library, SECRET, cases) == [True, True] + [False] * len(forged())


VERIFY = """
import { createRequire } from "node:module";
const [node_modules, library, secret, cases] = JSON.parse(process.argv[2]);
const { Webhook } = createRequire(node_modules)(library);
const webhook = new Webhook(secret);
const taken = cases.map(([body, given]) => {
  try { webhook.verify(body, given); return true; } catch (error) { return false; }
});
console.log(JSON.stringify(taken));
"""


def npm_verdicts(folder, library, secret, cases):
    """Which (body, headers) a library of npm takes."""
    node_modules = CLIENTS / "node_modules"
    if NODE is None or not (node_modules / library).is_dir():
        pytest.skip(f"the npm package {library} is not installed: {INSTALL}")
    path = folder / "verify.mjs"
    path.write_text(VERIFY, encoding="utf-8")
    argument = json.dumps([f"{node_modules}/", library, secret, [(body.decode(), sent) for body, sent in cases]])
    return json.loads(subprocess.run([NODE, str(path), argument], check=True, capture_output=True).stdout)


def pypi_verdicts(library, secret, cases):
    """Which (body, headers) a library of PyPI takes."""
    webhook, taken = library.Webhook(secret), []
    refused = standardwebhooks.WebhookVerificationError, svix.webhooks.WebhookVerificationError
    for body, sent in cases:
        try:
            webhook.verify(body.decode(), sent)
            taken.append(True)
        except refused:
            taken.append(False)
    return taken


def hmac_verdicts(secret, cases):
    """Which (body, headers) the rule of the specification takes, written down here once more."""
    taken = []
    for body, sent in cases:
        timestamp = sent["x-service-timestamp"]
        expected = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
        fresh = abs(time.time() - int(timestamp)) <= 300
        taken.append(fresh and hmac.compare_digest(f"sha256={expected}", sent["x-service-signature"]))
    return taken


@pytest.mark.live
@pytest.mark.parametrize("library", ["standardwebhooks", "svix"])
def test_the_npm_libraries_verify_ours_and_refuse_what_is_not(tmp_path, library):
    cases = [(BODY, headers()), *forged()]
    assert npm_verdicts(tmp_path, library, SECRET, cases) == [True] + [False] * len(forged())


async def deliver_over_tls(folder, age=0):
    """The secret, and a delivery as it arrived over TLS from a service whose clock is `age` seconds late."""
    server, client = certificates("hooks.localhost")
    clock = ManualClock(datetime.now(UTC) - timedelta(seconds=age))
    async with (
        open_room(folder, clock=clock, network=replace(LOCAL, load_tls=lambda: client)) as room,
        receiving(tls=server) as receiver,
    ):
        terms = SubscriptionRequest("report", receiver.url("https", "hooks.localhost"))
        created = await room.hooks.subscriptions.subscribe(RICH, terms)
        await room.hooks.subscriptions.test(RICH, created.subscription.id, None, None)
    (request,) = receiver.requests
    return created.secret, (request.body, request.headers)


@pytest.fixture
async def arrived(tmp_path):
    """The secret of a delivery, and it with what nobody may take: changed, under another time, another's and old."""
    secret, (body, sent) = await deliver_over_tls(tmp_path)
    later = str(int(sent["x-service-timestamp"]) + 1)
    other, stranger = await deliver_over_tls(tmp_path)
    assert other != secret
    changed = (body.replace(b"0.0", b"1.0", 1), sent)
    renewed = (body, sent | {"x-service-timestamp": later, "webhook-timestamp": later})
    assert changed[0] != body
    return secret, [(body, sent), changed, renewed, stranger]


TAKEN = [True, False, False, False]


@proves("webhook.standard", "webhook.headers")
async def test_what_arrives_over_tls_is_verified_by_plain_hmac_and_by_the_libraries(arrived):
    secret, cases = arrived
    assert hmac_verdicts(secret, cases) == TAKEN
    for library in (standardwebhooks, svix):
        assert pypi_verdicts(library, secret, cases) == TAKEN


@pytest.mark.live
@pytest.mark.parametrize("library", ["standardwebhooks", "svix"])
async def test_what_arrives_over_tls_is_verified_by_the_libraries_of_npm(arrived, tmp_path, library):
    assert npm_verdicts(tmp_path, library, *arrived) == TAKEN


@pytest.mark.live
async def test_a_delivery_that_is_repeated_by_a_stranger_after_five_minutes_is_refused_by_all(tmp_path):
    secret, old = await deliver_over_tls(tmp_path, age=301)
    assert hmac_verdicts(secret, [old]) == [False]
    for library in (standardwebhooks, svix):
        assert pypi_verdicts(library, secret, [old]) == [False]
    for name in ("standardwebhooks", "svix"):
        assert npm_verdicts(tmp_path, name, secret, [old]) == [False]
