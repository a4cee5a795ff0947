"""A demo that keeps its chain and clock, as an operator and a buyer have it: killed, started again, asked, and paid."""

import base64
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from eth_account import Account

from tests.live.processes import ROOT, environment, read_ready_line
from tests.ports import reserve_port

USDC = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
BUYER_KEY = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"  # of every local chain
BUYER = str(Account.from_key(BUYER_KEY).address).lower()
OTHER_BUYER = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc"
MAIN, SECOND = "mainnet.base.org", "base-rpc.publicnode.com"  # the RPC servers of the demo
FACILITATOR = "x402.example"
START_S = 300  # a month says nothing about how fast a demo starts on a busy machine


class Sandbox:
    """`toolserver demo` on a folder, with the commands and requests that people make to it."""

    def __init__(self, folder: Path, *, seed: int, chain: tuple[str, ...] = ()) -> None:
        self.folder, self.seed, self.chain = folder, seed, chain
        self.port = reserve_port()
        self.data = folder / "data"
        self.api = httpx.Client(timeout=60, trust_env=False)
        self.kills = 0

    # --- the process

    def start(self) -> None:
        words = [sys.executable, "-m", "toolserver", "demo", "--data-dir", str(self.data), "--port", str(self.port)]
        words += ["--no-wait", "--ready-json", "--seed", str(self.seed), *self.chain]
        log = self.folder / "demo.log"
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                words, stdout=subprocess.PIPE, stderr=errors, env=environment({}, self.folder), cwd=self.folder
            )
        self.ready = read_ready_line(self.process, log, START_S)
        self.base, self.world = self.ready["base_url"], self.ready["world_url"]
        lines = (self.data / "demo.env").read_text(encoding="utf-8").splitlines()
        told = (line.removeprefix("export ").partition("=") for line in lines if line.startswith("export "))
        self.settings = {name: value.strip("'") for name, _, value in told}

    def kill(self) -> None:
        self.process.kill()
        self._ended()
        self.kills += 1

    def stop(self) -> None:
        """End the demo for good, and the connections to it."""
        self.api.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self._ended()

    def _ended(self) -> None:
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def kill_during(self, request: Callable[[], Any], after_s: float) -> None:
        """Kill the service while a request is on its way, and start it again."""

        def ask() -> None:
            try:
                request()
            except httpx.HTTPError:
                pass  # the service was killed

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join(after_s)
        self.kill()
        thread.join()
        self.start()

    def command(self, *words: str, fails: bool = False, may_fail: bool = False) -> str:
        """What a command of the operator prints. Raises RuntimeError with all that it said if it ends otherwise than
        expected, and if it `may_fail` and did so with nothing to read.
        """
        env = environment(self.settings, self.folder) | {"PATH": os.environ["PATH"]}
        done = subprocess.run(
            [sys.executable, "-m", "toolserver", *words],
            capture_output=True,
            text=True,
            env=env,
            cwd=self.folder,
            timeout=600,
        )
        if (done.returncode != 0 and not done.stdout) if may_fail else (done.returncode != 0) != fails:
            raise RuntimeError(
                f"{' '.join(words)} ended with {done.returncode}: {done.stderr[-2000:]}{done.stdout[-2000:]}"
            )
        return done.stdout

    # --- the world

    def control(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.api.request(method, f"{self.world}/_sim/{path}", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def now(self) -> float:
        return float(self.control("GET", "clock")["now"])

    def forward(self, seconds: float) -> None:
        self.control("PUT", "clock", {"advance_s": seconds})

    def pay(self, to: str, usd: float, **more: str) -> str:
        return str(
            self.control("POST", "chain/transfer", {"from": BUYER, "to": to, "amount_usd": usd} | more)["tx_hash"]
        )

    # --- the buyer

    def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        return self.api.post(f"{self.base}{path}", json=body, headers=headers)

    def quote(self, usd: float) -> tuple[str, str]:
        """The address to pay to, and the memo of a purchase."""
        said = self.post("/api/payment/buy-credits", {"amount_usd": usd}).raise_for_status().json()
        return said["wallet"].lower(), said["memo"]

    def confirm(self, tx: str, memo: str) -> httpx.Response:
        return self.post("/api/payment/confirm", {"tx_hash": tx, "nonce": memo})

    def credits(self, token: str) -> int | None:
        """What a token can spend, or None if it is not valid any more."""
        answer = self.api.get(f"{self.base}/api/payment/balance", headers={"Authorization": f"Bearer {token}"})
        return int(answer.json()["credits"]) if answer.status_code == 200 else None

    def offer(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """The one offer of x402 in the refusal of an unpaid call, with the resource that it is for."""
        answer = self.api.request(method, f"{self.base}{path}", json=body)
        assert answer.status_code == 402, answer.text
        offer: dict[str, Any] = json.loads(base64.b64decode(answer.headers["PAYMENT-REQUIRED"]))
        return offer

    def sign(self, offer: dict[str, Any], *, by_contract: bool = False) -> tuple[str, str]:
        """The header that pays an offer, and the nonce of its authorisation. A contract's signature is longer."""
        terms = offer["accepts"][0]
        now = int(self.now())
        signed = {
            "from": Account.from_key(BUYER_KEY).address,
            "to": terms["payTo"],
            "value": terms["amount"],
            "validAfter": str(now - 60),
            "validBefore": str(now + terms["maxTimeoutSeconds"]),
            "nonce": f"0x{secrets.token_hex(32)}",
        }
        signature = f"0x{secrets.token_hex(161)}" if by_contract else sign_authorization(signed)
        payload = {"signature": signature, "authorization": signed}
        whole = {"x402Version": 2, "accepted": terms, "payload": payload, "resource": offer.get("resource")}
        return base64.b64encode(json.dumps(whole).encode()).decode(), signed["nonce"]

    def pay_signed(self, method: str, path: str, header: str, body: Any = None) -> httpx.Response:
        return self.api.request(method, f"{self.base}{path}", json=body, headers={"PAYMENT-SIGNATURE": header})


FIELDS = ("from address", "to address", "value uint256", "validAfter uint256", "validBefore uint256", "nonce bytes32")


def sign_authorization(signed: dict[str, str]) -> str:
    """The buyer's signature of an authorisation (EIP-3009)."""
    types = {"TransferWithAuthorization": [dict(zip(("name", "type"), field.split(), strict=True)) for field in FIELDS]}
    domain = {"name": "USD Coin", "version": "2", "chainId": 8453, "verifyingContract": USDC}
    message = {name: int(value) if value.isdigit() else value for name, value in signed.items()}
    made = Account.sign_typed_data(BUYER_KEY, domain_data=domain, message_types=types, message_data=message)
    return f"0x{made.signature.hex().removeprefix('0x')}"


def run_alone(module: str, *words: str, given: str) -> str:
    """What a program of the tests prints that is given lines on stdin."""
    command = [sys.executable, "-m", module, *words]
    return subprocess.run(
        command, input=given, capture_output=True, text=True, cwd=ROOT, check=True, timeout=300
    ).stdout
