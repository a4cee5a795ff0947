"""A desk that takes x402 payments into a real ledger file, before a facilitator that does what it is told."""

import hashlib
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import msgspec

from tests.calls.parts import Engine, engine
from tests.calls.shop import premium_broken, premium_liar, premium_void
from tests.calls.toy import FIRST, SECOND, number, premium_report
from tests.money.ledger.ledgers import opened
from tools.payment.balance import payment_balance
from tools.payment.topup import payment_topup
from toolserver.calls.idempotency import Idempotency
from toolserver.calls.idempotency_store import SqlIdempotencyStore
from toolserver.calls.paid_call import PaymentSale
from toolserver.clock import ManualClock
from toolserver.core.caller import Caller
from toolserver.errors import CallRejected
from toolserver.money.ledger.store import SqlLedger
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.chain.rpc_pool import RpcPool
from toolserver.money.purchases.closed_purchases import ClosedPurchases
from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.purchases.matching import Policy
from toolserver.money.purchases.quotes import Ceilings, SalesCeilings
from toolserver.money.purchases.store import SqlPurchaseStore
from toolserver.money.purchases.units import NETWORK, USDC
from toolserver.money.receipts.service import AccountStatements, Issuer, ReceiptService
from toolserver.money.receipts.sql_store import SqlReceiptStore
from toolserver.money.x402 import wire
from toolserver.money.x402.facilitator import Facilitator
from toolserver.money.x402.finality import PaymentFinality
from toolserver.money.x402.offers import X402Terms
from toolserver.money.x402.settlement import AuthorisationState, Handover, SettlementService
from toolserver.money.x402.store import SqlPaymentStore
from toolserver.money.x402.topup import ToppedUp
from toolserver.registry.registry import Registry, operation_of
from toolserver.registry.site_facts import SiteFacts
from toolserver.serving.money import MoneyParts, StoredSales

NOW = 1_800_000_000
PAYER = bytes.fromhex("70997970c51812dc3a010c7d01b50e0d17dc79c8")
PAYER_TEXT = checksum_address(PAYER)
PAY_TO = bytes.fromhex("90f79bf6eb2c4f870365e785982e1f101e93b906")
REPORT = 40_000  # what the report costs: two credits
BASE_URL = "https://data.example"
TERMS = X402Terms(PAY_TO, 120, 1000 * ATOMIC, BASE_URL, "data.example")
TOOLS = (
    *(number, premium_report, premium_broken, premium_liar, premium_void),
    *(payment_topup, payment_balance),
)
REGISTRY = Registry([operation_of(function) for function in TOOLS])
_numbers = itertools.count(1)


def payload(amount: int = REPORT, **changed: Any) -> dict[str, Any]:
    """A payment as a client writes it; `changed` names members of the authorisation, the offer, or the whole."""
    number = next(_numbers)
    authorization = {
        "from": checksum_address(PAYER),
        "to": checksum_address(PAY_TO),
        "value": str(amount),
        "validAfter": "0",
        "validBefore": str(NOW + 120),
        "nonce": f"0x{hashlib.sha256(str(number).encode()).hexdigest()}",
    }
    accepted = {
        "scheme": "exact",
        "network": NETWORK,
        "asset": checksum_address(USDC),
        "amount": str(amount),
        "payTo": checksum_address(PAY_TO),
        "maxTimeoutSeconds": 120,
        "extra": {"name": "USD Coin", "version": "2"},
    }
    signature = changed.pop("signature", f"0x{number:0128x}1b")
    for part in (authorization, accepted):
        part.update({name: value for name, value in changed.items() if name in part})
    whole = {"x402Version": 2, "payload": {"signature": signature, "authorization": authorization}}
    return whole | {"accepted": accepted} | {k: v for k, v in changed.items() if k in whole or k == "resource"}


def signed(amount: int = REPORT, **changed: Any) -> str:
    """The same as the value of a header."""
    return wire.header(payload(amount, **changed))


Answer = Callable[[dict[str, Any]], httpx.Response]


@dataclass
class Script:
    """A facilitator. It makes every payment once; `verifies` and `settles` are put in the place of its answers."""

    made: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    verifies: Answer | Exception | None = None
    settles: Answer | Exception | None = None
    loses: Exception | None = None  # what happens to an answer after the payment was made

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        name = request.url.path.rpartition("/")[2]
        self.asked.append(name)
        if name == "supported":
            kind = {"x402Version": 2, "scheme": "exact", "network": NETWORK}
            return httpx.Response(200, json={"kinds": [kind], "extensions": [], "signers": {}})
        said = msgspec.json.decode(request.content)
        scripted = self.verifies if name == "verify" else self.settles
        if isinstance(scripted, Exception):
            raise scripted
        if scripted is not None:
            return scripted(said)
        return self.verify(said) if name == "verify" else self.settle(said)

    def verify(self, said: dict[str, Any]) -> httpx.Response:
        return httpx.Response(200, json={"isValid": True, "payer": payer_of(said)})

    def settle(self, said: dict[str, Any]) -> httpx.Response:
        nonce = said["paymentPayload"]["payload"]["authorization"]["nonce"]
        if nonce in self.made:
            return failed("invalid_exact_evm_nonce_already_used")
        self.made[nonce] = f"0x{hashlib.sha256(nonce.encode()).hexdigest()}"
        if self.loses is not None:
            raise self.loses
        told = {"success": True, "transaction": self.made[nonce], "network": NETWORK, "payer": payer_of(said)}
        return httpx.Response(200, json=told)

    @property
    def settlements(self) -> int:
        """How often it was told to make a payment."""
        return self.asked.count("settle")


def response_of(rejected: CallRejected) -> dict[str, Any]:
    """What PAYMENT-RESPONSE of a refusal says."""
    return wire.unheader(rejected.headers[wire.RESPONSE])


def payer_of(said: dict[str, Any]) -> str:
    return str(said["paymentPayload"]["payload"]["authorization"]["from"])


def failed(reason: str, tx: str = "") -> httpx.Response:
    told = {"success": False, "errorReason": reason, "transaction": tx, "network": NETWORK}
    return httpx.Response(200, json=told)


@dataclass
class Chain:
    """A look at the chain with a fixed result; None: it cannot tell."""

    seen: AuthorisationState | None = None

    height: int | None = None

    async def __call__(self, payment: wire.Payment, since: Handover, /) -> AuthorisationState | None:
        return self.seen

    async def is_spent(self, payment: wire.Payment, /) -> bool | None:
        return None if self.seen is None else self.seen.state != "unused"

    async def find_height(self) -> int | None:
        return self.height


@dataclass
class Desk:
    """What a test touches."""

    ledger: SqlLedger
    clock: ManualClock
    script: Script
    chain: Chain
    settling: SettlementService
    exact: Any
    topups: Any
    evidence: ReceiptService
    engine: Engine

    async def buy(
        self, payment: str | None, name: str = "premium_report", *, key: str | None = None, **arguments: Any
    ) -> PaymentSale:
        """A call with a payment."""
        operation = REGISTRY[name]
        caller = Caller("192.0.2.1", payment=payment, request_id="req_1", idempotency_key=key)
        return await self.exact.sell(operation, operation.arguments.model_validate(arguments), arguments, caller)

    async def topup(
        self, payment: str | None, usd: int = 2, *, token: str | None = None, key: str | None = None, **more: Any
    ) -> ToppedUp:
        caller = Caller("192.0.2.1", payment=payment, token=token, idempotency_key=key)
        return await self.topups.buy(usd * ATOMIC, caller, **more)

    async def rows(self, sql: str, *values: Any) -> list[Any]:
        return await self.ledger.file.read(lambda db: db.execute(sql, values).fetchall())

    async def states(self) -> list[str]:
        return [row[0] for row in await self.rows("SELECT state FROM x402_payment ORDER BY state")]

    async def minted(self) -> int:
        """How many credits there are, by the transfers."""
        sql = "SELECT coalesce(sum(amount * ((debit = 1) - (credit = 1))), 0) FROM transfer"
        return int((await self.rows(sql))[0][0])


def return_server(server: Any) -> Any:
    return server


@asynccontextmanager
async def desk(
    folder: Path,
    *,
    script: Script | None = None,
    chain: Any = None,
    limits: bool = False,
    clock: Any = None,
    facilitator: Facilitator | None = None,
    terms: X402Terms = TERMS,
    on: bool = True,
    servers: Sequence[Any] = (),
    ceilings: Ceilings | None = None,
    policy: Policy | None = None,
    kind: str = "sqlite",
) -> AsyncIterator[Desk]:
    """A desk whose books are right at the end. Opened again in the same folder, it has kept them.

    It takes payments unless `on` is False: then `exact` and `topups` are None.
    """
    clock, script = clock or ManualClock(datetime.fromtimestamp(NOW, UTC)), script or Script()
    facilitator = facilitator or Facilitator("https://pay.example/x", transport=httpx.MockTransport(script))
    async with opened(kind, folder, clock) as ledger:
        assert isinstance(ledger, SqlLedger)
        evidence = ReceiptService(
            SqlReceiptStore(ledger.file), folder, clock=clock, issuer=Issuer(BASE_URL, "data.example")
        )
        pool = RpcPool([partial(return_server, server) for server in servers], monotonic=clock.monotonic)
        finality = PaymentFinality(
            SqlPaymentStore(ledger.file), pool, clock, policy or Policy(), pay_to=PAY_TO, wait_s=0
        )
        settling = SettlementService(
            SqlPaymentStore(ledger.file),
            facilitator,
            terms,
            clock,
            chain,
            finality=finality if servers else None,
            ceilings=SalesCeilings(ceilings or Ceilings(), SqlPurchaseStore(ledger.file), clock),
        )
        money = MoneyParts(
            own=ledger,
            idempotency=Idempotency(SqlIdempotencyStore(ledger.file, clock)),
            payments=ClosedPurchases(ledger),
            statements=AccountStatements(ledger, evidence),
            evidence=evidence,
            stored=StoredSales(x402=settling if on else None),
        )
        facts = SiteFacts(terms.base_url, "data.example")
        async with engine(REGISTRY, clock=clock, limits=limits, money=money, facts=facts, data_dir=folder) as e:
            e.internet.serves(FIRST, {"value": 1})
            e.internet.serves(SECOND, {"value": 2})
            exact, topups = e.pipeline._x402, e.service.info.x402
            try:
                yield Desk(ledger, clock, script, chain or Chain(), settling, exact, topups, evidence, e)
                assert await ledger.check() == []
            finally:
                await facilitator.aclose()
