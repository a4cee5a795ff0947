"""Ask a person to pay for a call, by an address to open (elicitation in URL mode), and go on when it is paid.

A modern client that can open addresses gets `input_required` instead of the refusal for lack
of funds. It asks the person, and repeats the call with the person's answer and our state. That
the person agreed to open the page says nothing about a payment: the repeated call waits for
the ledger. If the person declines, the call gets the ordinary refusal, which says where to
buy.

    call ──▶ refused for lack of funds ──▶ input_required: link, code, sealed state
    call, state, "accept"  ──▶ wait for the ledger ──▶ answer │ payment_pending
    call, state, otherwise ──▶ the ordinary call, which is refused unless it is paid by now

The state holds the link and, without a token, the secret that can spend the price of one call.
A link alone is worth nothing to others than its payer, and a state nothing without a payment.
"""

import importlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio.to_thread
import msgspec

from toolserver.calls.payment_links import PaymentLink, PaymentLinks, PaymentRequest
from toolserver.calls.response import Receive, run_unless_disconnected
from toolserver.core.caller import Caller, is_visitor_token
from toolserver.errors import CallRejected, InsufficientCredits, MissingToken, NotFound, PaymentPending, UnpaidCall
from toolserver.mcp import messages
from toolserver.mcp.call_arguments import take_token
from toolserver.mcp.fast_path import PendingResult
from toolserver.mcp.messages import INVALID_PARAMS, UNSET, Message, MessageRefusal, decode
from toolserver.registry.registry import Operation, Tier
from toolserver.registry.site_facts import BUY, LINK, SiteFacts

if TYPE_CHECKING:
    from toolserver.mcp.request_state import RequestStates

STATES = "toolserver.mcp.request_state"
BUY_KEY = "buy"  # of our only request for input
LoadStates = Callable[[], Awaitable[Any]]


async def load_states() -> Any:
    """Return the module that imports the SDK, without blocking the event loop."""
    return await anyio.to_thread.run_sync(importlib.import_module, STATES, abandon_on_cancel=True)


class ElicitedCall(NamedTuple):
    """A call of a paid tool: its message, its arguments as they were sent, and the caller of its connection."""

    message: Message
    operation: Operation
    arguments: dict[str, Any]
    caller: Caller

    @property
    def params(self) -> dict[str, Any]:
        """The parameters that its state is bound to."""
        return {"name": self.message.params.name, "arguments": self.arguments}


class _SealedState(msgspec.Struct, frozen=True):
    """What the state says once it is opened: the link, and the secret of a link of one call."""

    link: str
    secret: str | None = None


class PaymentElicitation:
    """Asks for payments over MCP. `load` imports the SDK's part of it."""

    def __init__(self, links: PaymentLinks, facts: SiteFacts, load: LoadStates = load_states) -> None:
        self._links, self._facts, self._load = links, facts, load
        self._states: RequestStates | None = None

    def fits(self, message: Message, operation: Operation, rejected: CallRejected) -> bool:
        """Return True if a modern call was refused for lack of funds, and its client can ask a person to pay.

        Buying credits does not help where a cap of the token is reached.
        """
        meta = message.params.meta
        if operation.tier is not Tier.PREMIUM or meta is UNSET or not messages.opens_urls(meta.capabilities):
            return False
        if isinstance(rejected, InsufficientCredits):
            return "cap" not in rejected.extra
        return isinstance(rejected, MissingToken | UnpaidCall) and meta.paid is None

    async def ask(self, call: ElicitedCall) -> PendingResult:
        """Return the result that asks to pay for a refused call. Raise CallRejected if the ledger cannot be used."""
        _, buyer = take_token(call.operation, call.arguments, call.caller)
        account = await self._find_account(buyer)
        request = self._links.make(call.operation, account)
        states = await self._load_states()
        state = msgspec.json.encode(_SealedState(request.text, request.secret)).decode()
        params = {"mode": "url", "message": self._write_message(call, request), "url": self._find_page(request.text)}
        asked = {BUY_KEY: {"method": "elicitation/create", "params": params}}
        return PendingResult(messages.require_input(asked, await states.seal(call.params, account, state)), {})

    async def resume(self, call: ElicitedCall, receive: Receive) -> tuple[dict[str, Any], Caller]:
        """Return the arguments and the caller of a repeated call, once it is paid or nobody is going to pay for it.

        Raises:
            MessageRefusal: the state was changed, has expired, or belongs to another call or caller.
            PaymentPending: the person agreed to pay, but has not paid yet.
            CallRejected: the token is refused, or the ledger cannot be used.
            Disconnected: the client of the connection hung up.
        """
        arguments, buyer = take_token(call.operation, call.arguments, call.caller)
        sealed = _read_state(call.message)
        if sealed is None:
            return arguments, buyer
        text, link, secret = await self._open_state(call, buyer, sealed)
        if not _is_accepted(call.message):
            return arguments, buyer
        payer = secret if secret is not None else buyer.token
        assert payer is not None, "the state of an account opens only for a token of it"
        if not await run_unless_disconnected(receive, lambda: self._links.wait_until_paid(link, payer, buyer.waits_as)):
            raise self._pend(call.operation, text, link)
        return arguments, replace(buyer, token=payer)

    async def _open_state(self, call: ElicitedCall, buyer: Caller, sealed: str) -> tuple[str, PaymentLink, str | None]:
        """Return the text of the link, what it says, and the secret, from the state of a call.

        A state that was sealed for nobody in particular is its holder's, who may have got a token since.
        """
        states, account = await self._load_states(), await self._find_account(buyer)
        opened, params = None, call.params | {"requestState": sealed}
        for principal in dict.fromkeys((account, None)):
            opened = opened or await states.open(params, principal)
        if opened is None:
            raise _refuse_state()
        state = msgspec.json.decode(opened, type=_SealedState)
        try:
            return state.link, self._links.read(state.link), state.secret
        except NotFound:
            raise _refuse_state() from None

    async def _find_account(self, buyer: Caller) -> str | None:
        return None if is_visitor_token(buyer.token) else await self._links.find_account(buyer.token)

    async def _load_states(self) -> "RequestStates":
        if self._states is None:
            module = await self._load()
            self._states = module.RequestStates(self._links.open_seal("request states"))
        return self._states

    def _write_message(self, call: ElicitedCall, request: PaymentRequest) -> str:
        """Return what the person reads in the chat. The code comes first, because hosts cut long messages."""
        link, title = request.link, call.operation.title
        price = f"{link.credits} credit{'s' if link.credits > 1 else ''}"
        if link.account is not None:
            what = f"{title} costs {price}, and your token has too few. Buy credits for it"
        else:
            what = f"{title} costs {price}. Buy credits: {price} pay for this call, and you keep the rest as a token"
        return f"Pay only if the page shows the code {link.code}. {what}."

    def _find_page(self, text: str) -> str:
        return f"{self._facts.url(BUY)}?{LINK}={text}"

    def _pend(self, operation: Operation, text: str, link: PaymentLink) -> PaymentPending:
        """Return the refusal of a call that somebody agreed to pay for, but has not paid for yet."""
        if link.account is not None:
            how = "Once the credits are there, call it again."
        else:
            how = (
                "Once the credits are bought, the page shows a token: call it again with the header `Authorization:"
                " Bearer <token>` or the argument `token`."
            )
        return PaymentPending(
            f"Nobody has paid for this call yet. The page at `purchase.url` is open until the link expires. {how}",
            purchase={"url": self._find_page(text), "code": link.code},
            next={"tool": operation.name, "how": how},
        )


class _Answer(msgspec.Struct, frozen=True):
    """A person's answer to our request."""

    action: str = ""


def _is_accepted(message: Message) -> bool:
    """Return True if the person agreed to open the page. Anything else counts as no."""
    responses = message.params.inputResponses
    try:
        answers = {} if responses is UNSET else decode(responses, type=dict[str, msgspec.Raw])
        return BUY_KEY in answers and decode(answers[BUY_KEY], type=_Answer).action == "accept"
    except (msgspec.MsgspecError, RecursionError):
        return False


def _read_state(message: Message) -> str | None:
    """Return the state that a call brings, or None if it brings none. Raise MessageRefusal for what is no text."""
    state = message.params.requestState
    try:
        return None if state is UNSET else decode(state, type=str | None)
    except msgspec.MsgspecError:
        raise _refuse_state() from None


def _refuse_state() -> MessageRefusal:
    """Return the refusal of a state, in the words of the SDK. It does not say which of its checks failed."""
    data = {"reason": messages.STATE_REFUSED}
    return MessageRefusal(400, INVALID_PARAMS, "Invalid or expired requestState", data=data)
