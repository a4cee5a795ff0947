"""A real server that delivers to a real receiver: the demo with its clock and its ledger, killed and started again."""

import hashlib
import hmac
import json
import signal
import subprocess
import time

import httpx
import pytest

from tests.live.inbox import Inbox
from tests.live.processes import COMMAND, environment, ran, started
from tests.ports import reserve_port

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]


@pytest.fixture
def inbox():
    made = Inbox()
    yield made
    made.close()


def test_a_demo_delivers_conditions_and_tests_to_this_machine_and_charges_what_arrived(tmp_path, inbox):
    with started("demo", folder=tmp_path) as demo, httpx.Client(base_url=demo.url, timeout=30) as client:
        client.headers["authorization"] = f"Bearer {demo.ready['token']}"
        when = {"path": "context.markets.btc.price_usd", "above": 1}
        asked = {"endpoint": "agent-context", "webhook_url": inbox.url, "when": when}
        made = client.post("/api/pro/subscribe", json=asked)
        assert made.status_code == 201, made.text
        ((headers, body),) = inbox.wait(1)
        message = headers["x-service-timestamp"].encode() + b"." + body
        signed = hmac.new(made.json()["secret"].encode(), message, hashlib.sha256).hexdigest()
        assert headers["x-service-signature"] == f"sha256={signed}"
        delivered = json.loads(body)
        assert delivered["condition"]["state"] == "fired"
        assert delivered["data"]["context"]["markets"]["btc"]["price_usd"] == delivered["condition"]["new"]
        receipt = wait_for_receipt(client, headers["x-service-receipt-id"])
        assert (receipt["kind"], receipt["credits_charged"]) == ("webhook", 1)
        assert receipt["response_sha256"] == hashlib.sha256(body).hexdigest()
        assert client.get("/api/payment/balance").json()["credits"] == demo.ready["credits"] - 1
        tested = client.post(f"/api/pro/subscribe/{made.json()['id']}/test").json()
        assert tested["delivered"] is True
        assert json.loads(inbox.wait(2)[1][1])["test"] is True
        listed = ran("webhooks", "list", "--json", "--data-dir", str(tmp_path / "data"), folder=tmp_path)
        assert json.loads(listed.stdout)[0]["delivered"] == 1


def wait_for_receipt(client, id):
    for _ in range(100):
        answer = client.get(f"/api/receipt/{id}")
        if answer.status_code == 200:
            return answer.json()["receipt"]
        time.sleep(0.05)
    raise AssertionError(answer.text)


def test_a_server_that_was_killed_goes_on_where_it_was(tmp_path, inbox):
    with pytest.raises(AssertionError, match="ended with -9"):
        deliver_and_kill(tmp_path, inbox)
    id = json.loads(inbox.requests[0][1])["subscription_id"]
    with started("demo", folder=tmp_path):
        fire_now(tmp_path, id)
        inbox.wait(2)
        deliveries = deliveries_of(tmp_path, id)
    sent = [headers["webhook-id"] for headers, _ in inbox.requests]
    assert len(sent) - len(set(sent)) <= 1
    assert {row["id"] for row in deliveries if row["state"] == "charged"} >= {sent[0]}


def deliver_and_kill(folder, inbox):
    """One delivery, and the next one due when the server is killed."""
    with started("demo", folder=folder) as demo:
        asked = {"endpoint": "agent-context", "webhook_url": inbox.url}
        bearer = {"authorization": f"Bearer {demo.ready['token']}"}
        id = httpx.post(f"{demo.url}/api/pro/subscribe", json=asked, headers=bearer, timeout=30).json()["id"]
        fire_now(folder, id)
        inbox.wait(1)
        fire_now(folder, id)
        demo.stop(signal.SIGKILL)


def fire_now(folder, id):
    done = ran("webhooks", "fire", id, "--data-dir", str(folder / "data"), folder=folder)
    assert done.returncode == 0, done.stderr


def deliveries_of(folder, id):
    listed = ran("webhooks", "deliveries", id, "--json", "--data-dir", str(folder / "data"), folder=folder)
    return json.loads(listed.stdout)


def test_listen_verifies_what_a_demo_sends(tmp_path):
    with started("demo", folder=tmp_path) as demo, httpx.Client(base_url=demo.url, timeout=30) as client:
        client.headers["authorization"] = f"Bearer {demo.ready['token']}"
        port = reserve_port()
        asked = {"endpoint": "macro", "webhook_url": f"http://127.0.0.1:{port}/"}
        made = client.post("/api/pro/subscribe", json=asked).json()
        words = [*COMMAND, "webhooks", "listen", "--port", str(port), "--secret", made["secret"], "--count", "1"]
        with subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment({}), cwd=tmp_path, text=True
        ) as listener:
            assert "listening" in listener.stderr.readline()
            tested = client.post(f"/api/pro/subscribe/{made['id']}/test").json()
            assert tested["status"] == 204, tested
            assert "signature valid" in listener.communicate(timeout=20)[0]
