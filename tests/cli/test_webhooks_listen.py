import threading
import time

import httpx

from toolserver.cli.webhooks import SHOWN, ReceivedWebhook, make_listener
from toolserver.webhooks.signing import signature_headers

SECRET = "whsec_00112233445566778899aabbccddeeff"


def post(secret, *requests):
    """What a listener reports of some requests, and how it answered them."""
    reported, answers = [], []
    with make_listener(0, secret, reported.append, count=len(requests)) as server, httpx.Client() as client:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        for body, headers in requests:
            assert thread.is_alive()
            answers.append(client.post(url, content=body, headers=headers).status_code)
        thread.join(5)
        assert not thread.is_alive(), "it stops after the last answer, on however few connections they came"
    return reported, answers


def signed(body, secret=SECRET):
    return body, signature_headers(secret, (), message_id="msg_1", timestamp=int(time.time()), body=body)


def test_what_is_signed_well_is_taken_and_the_rest_refused():
    reported, answers = post(SECRET, signed(b'{"a":1}'), signed(b"{}", "whsec_" + "0" * 32), (b"{}", {}))
    assert answers == [204, 401, 401]
    assert [received.valid for received in reported] == [True, False, False]
    assert "signature valid" in reported[0].describe()
    assert "webhook-id=msg_1" in reported[0].describe()
    assert '"a": 1' in reported[0].describe()


def test_without_a_secret_nothing_is_verified_and_everything_taken():
    reported, answers = post(None, (b"{}", {}))
    assert answers == [204]
    assert "not verified" in reported[0].describe()


def test_a_body_cannot_write_to_the_terminal_and_a_long_one_is_cut():
    shown = ReceivedWebhook(True, {}, b'{"a":"\\u001b[31m' + "é".encode() + b'"}').describe()
    assert "\x1b" not in shown
    assert "\x1b" not in ReceivedWebhook(True, {}, b"\x1b[31m").describe()
    assert len(ReceivedWebhook(True, {}, b'"' + b"a" * 10_000 + b'"').describe()) < SHOWN + 200
