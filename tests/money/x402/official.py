"""Official x402 clients as they pay a service on a port: in Python, and in TypeScript in both generations."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
from eth_account import Account
from x402 import x402Client
from x402.http.clients.httpx import x402AsyncTransport
from x402.mechanisms.evm.exact import register_exact_evm_client
from x402.schemas import PaymentRequired

from tests.live.programs import CLIENTS, NODE, installed, told
from tests.money.purchases.anvil import called
from tests.money.x402.chain import PAYER_KEY, Pay
from tests.money.x402.parts import PAY_TO, TERMS
from tests.money.x402.service import Doors, doors
from toolserver.clock import SystemClock
from toolserver.money.x402 import wire
from toolserver.money.x402.facilitator import Facilitator
from toolserver.serving.listen import address_of, bind_socket, serve
from toolserver.settings import Settings


def wallet(key: str = PAYER_KEY) -> x402Client:
    """The official client's wallet."""
    client = x402Client()
    client.set_spend_controls(False)
    register_exact_evm_client(client, Account.from_key(key), networks="eip155:8453")
    return client


async def signed(offer: dict[str, Any], key: str = PAYER_KEY) -> dict[str, Any]:
    """What the official client signs for an offer."""
    found = await wallet(key).create_payment_payload(PaymentRequired.model_validate(offer))
    return found.model_dump(mode="json", by_alias=True, exclude_none=True)


def spent(payment: wire.Payment) -> bytes:
    """The call that uses an authorisation, which anybody may send."""
    name = "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)"
    signature = payment.signature
    times = (payment.valid_after, payment.valid_before)
    parts = (signature[64], signature[:32], signature[32:64])
    return called(name, payment.payer, payment.payee, payment.amount, *times, payment.nonce, *parts)


def paid(pay: Pay) -> int:
    return pay.chain.balance(PAY_TO)


@dataclass
class Running:
    """A service on a port."""

    url: str
    doors: Doors


def with_lifespan(face: Any) -> Any:
    """The face as a whole application, which starts and stops with its server."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await face(scope, receive, send)
            return
        for event in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{event}.complete"})

    return app


@asynccontextmanager
async def running(folder: Path, pay: Pay, **parts: Any) -> AsyncIterator[Running]:
    """A service that takes payments, on a port of its own. RPC servers among `parts` are closed behind it."""
    sock, stop = bind_socket("127.0.0.1", 0), anyio.Event()
    url = address_of(sock, "127.0.0.1")
    facilitator, terms = Facilitator(pay.url), replace(TERMS, base_url=url)
    async with (
        AsyncExitStack() as after,
        doors(folder, facilitator=facilitator, terms=terms, **({"clock": SystemClock()} | parts)) as d,
        anyio.create_task_group() as tasks,
    ):
        for server in parts.get("servers", ()):
            after.push_async_callback(server.aclose)
        tasks.start_soon(lambda: serve(with_lifespan(d.face), sock, Settings(), stop=stop))
        yield Running(url, d)
        stop.set()


class LaterClock(SystemClock):
    """The clock of this machine, set forward."""

    ahead_s = 0.0

    def time(self) -> float:
        return super().time() + self.ahead_s


async def paid_by_python(s: "Running", pay: Pay) -> dict[str, Any]:
    """A call and a top-up by the official Python client; the bodies, and the payments that were sent."""
    sent: list[str] = []

    class Noting(httpx.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            if "payment-signature" in request.headers:
                sent.append(request.headers["payment-signature"])
            return await super().handle_async_request(request)

    paying = x402AsyncTransport(wallet(), transport=Noting())
    async with httpx.AsyncClient(transport=paying, base_url=s.url, timeout=30) as client:
        call = await client.get("/api/pro/report?history=30d")
        topup = await client.post("/api/payment/topup", json={"amount_usd": 1})
    assert len(sent) == 2
    return {
        "call": {
            "body": call.json(),
            "payment": sent[0],
            "receipt": call.headers["x-service-receipt"],
            "response": wire.unheader(call.headers["payment-response"]),
        },
        "topup": {"body": topup.json(), "payment": sent[1]},
    }


async def paid_by_typescript(s: "Running", pay: Pay) -> dict[str, Any]:
    """The same by the official TypeScript client."""
    installed(NODE, CLIENTS / "node_modules" / "@x402" / "fetch")
    return await anyio.to_thread.run_sync(lambda: told(NODE, "x402.mjs", s.url, PAYER_KEY, timeout=30))


async def paid_by_version_1(s: "Running", pay: Pay) -> dict[str, Any]:
    """The same by the TypeScript client of x402 version 1, which reads the offer from the body."""
    installed(NODE, CLIENTS / "node_modules" / "x402-fetch")
    found = await anyio.to_thread.run_sync(lambda: told(NODE, "x402v1.mjs", s.url, PAYER_KEY, timeout=60))
    for each in (found["call"], found["topup"]):
        assert each["response_1"] == each["response"] | {"network": "base"}
    return found


OFFICIAL = (paid_by_python, paid_by_typescript, paid_by_version_1)
