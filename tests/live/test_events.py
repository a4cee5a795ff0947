"""MCP Events with other people's programs, over a real server and real receivers: the AI SDK, and Standard Webhooks."""

import base64
import hashlib
import json
import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import standardwebhooks

from tests.live.processes import Program, started
from tests.live.programs import CLIENTS, NODE, installed, told
from tests.live.test_webhooks import wait_for_receipt
from tests.requirements import proves

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

AI_SDK = CLIENTS / "node_modules" / "@ai-sdk" / "mcp" / "package.json"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with started("demo", folder=tmp_path_factory.mktemp("demo")) as program:
        yield program


@proves("events.once", "events.verified", "events.renewed", "events.ended")
def test_the_ai_sdk_lists_subscribes_is_woken_and_verifies(demo: Program) -> None:
    installed(NODE, AI_SDK)
    with httpx.Client(base_url=demo.url, headers={"authorization": f"Bearer {demo.ready['token']}"}) as client:
        before = client.get("/api/payment/balance").json()["credits"]
        found = told(NODE, CLIENTS / "events.mjs", demo.ready["mcp_url"], demo.ready["token"])
        assert "price.crossed" in found["events"]
        assert found["complaints"] == []
        assert found["statuses"] == [200, 204], "the challenge, then the event"
        assert found["woken"]["id"] == found["subscribed"]["id"] == found["renewed"]["id"]
        assert found["woken"]["event"]["data"]["items"][0]["crossed"] == "below"
        assert found["left"] == 0
        assert found["refused"] == -32602
        receipt = wait_for_receipt(client, found["receipt"])
        assert (receipt["kind"], receipt["credits_charged"]) == ("webhook", 1)
        assert receipt["response_sha256"] == hashlib.sha256(found["body"].encode()).hexdigest()
        assert client.get("/api/payment/balance").json()["credits"] == before - 1


class EventInbox:
    """A receiver with the library of Standard Webhooks, which takes nothing that is not signed with its secret.

    In a world whose clock is not ours (`is_ahead`), the library does not judge how old a message is.
    """

    def __init__(self, secret: str, *, is_ahead: bool = False) -> None:
        self.arrived, self.events = threading.Event(), []  # type: ignore[var-annotated]
        self.bodies: list[bytes] = []
        inbox, verifier = self, standardwebhooks.Webhook(secret)

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                said: Any = json.loads(body)
                if is_ahead:
                    sent_at = datetime.fromtimestamp(int(self.headers["webhook-timestamp"]), UTC)
                    signature = verifier.sign(self.headers["webhook-id"], sent_at, body.decode())
                    assert signature in self.headers["webhook-signature"].split()
                else:
                    verifier.verify(body, dict(self.headers.items()))
                if said.get("type") == "verification":
                    answer = json.dumps({"challenge": said["challenge"]}).encode()
                else:
                    answer = b""
                    inbox.bodies.append(body)
                    inbox.events.append((dict(self.headers.items()), said))
                    inbox.arrived.set()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@proves("events.secret", "webhook.standard")
def test_a_receiver_with_the_library_of_standard_webhooks_is_woken_after_a_restart(tmp_path: Path) -> None:
    secret = "whsec_" + base64.b64encode(os.urandom(32)).decode()
    inbox = EventInbox(secret)
    try:
        with started("demo", folder=tmp_path) as demo:
            delivery = {"mode": "webhook", "url": inbox.url, "secret": secret}
            params = {"name": "price.crossed", "arguments": {"symbol": "ETH", "above": 1e9}, "delivery": delivery}
            assert "id" in subscribe(demo, params)
            assert secret[6:] not in demo.said
        with started("demo", folder=tmp_path) as demo:
            params["arguments"] = {"symbol": "ETH", "above": 1}
            stored = subscribe(demo, params)
            assert inbox.arrived.wait(60)
            [(headers, event)] = inbox.events
            assert headers["X-MCP-Subscription-Id"] == stored["id"]
            assert headers["webhook-id"] == event["eventId"]
            assert event["data"]["items"][0]["id"] == "ETH"
            assert secret[6:] not in demo.said
    finally:
        inbox.close()


def subscribe(demo: Program, params: dict[str, Any]) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "id": 1, "method": "events/subscribe", "params": params}
    headers = {"authorization": f"Bearer {demo.ready['token']}"}
    answer = httpx.post(demo.ready["mcp_url"], json=message, headers=headers, timeout=30).json()
    assert "result" in answer, answer
    result: dict[str, Any] = answer["result"]
    return result
