"""Makes links by which a person pays for a call that a chat has asked for, and says when such a call is paid.

A link leads to /buy and is for exactly one purchase:

    of an account    the chat has a token. Credits go to the account of that token, and only a browser that proves to
                     have a token of the same account buys them there.
    of one call      the chat has no token. It keeps a secret instead: the token of an allowance that does not exist
                     yet. A browser that has bought credits makes it, over the price of the call, with the token that
                     it got for them and keeps. So the chat gets one call, and the ledger is what counts it.

Nothing is stored until somebody pays. A link is its own record, encrypted under a key that
every instance derives from the key that signs receipts, and so it changes when that key is
rotated.
"""

import hmac
import secrets
from typing import NamedTuple, Protocol

import msgspec

from toolserver.clock import Clock
from toolserver.core.caller import token_hash
from toolserver.core.models import iso, moment
from toolserver.core.waiting_room import WaitingRoom, WaitLimits, WaitRefused
from toolserver.errors import AllowanceConflict, InsufficientCredits, NotFound, PayerProofRequired
from toolserver.money.ledger.allowance import AllowanceTerms
from toolserver.money.ledger.protocol import AllowanceLedger, Ledger
from toolserver.money.purchases.token_encryption import OVERHEAD, decrypt_token, encrypt_token
from toolserver.money.receipts.keys import Key, KeyRing, b64, unb64
from toolserver.registry.registry import Operation, Registry

LIFE_S = 30 * 60  # as long as the offer of a purchase
WAIT_S, LOOK_S = 20.0, 0.5  # how long a call waits for its payment, and between two looks at the ledger
PAYMENT_WAITS = WaitLimits(most=200, share=8, crowd_share=32)
MOST_TEXT = 1000  # characters of a link
_LETTERS, _CODE_LENGTH = "23456789ABCDEFGHJKMNPQRSTUVWXYZ", 4  # none that are read as another


class TextSeal:
    """Encrypts texts that others keep for us. Each purpose has keys of its own, derived from those of a ring.

    The key that signs now encrypts; every key whose private half is here decrypts.
    """

    def __init__(self, ring: KeyRing, purpose: str) -> None:
        self._ring, self._purpose = ring, f"toolserver text v1 {purpose}".encode()

    def seal(self, text: str) -> str:
        """Return the text, encrypted, in base64url."""
        return b64(encrypt_token(text, self._derive(self._ring.current())))

    def unseal(self, sealed: str) -> str | None:
        """Return the text, or None for what was not sealed here for this purpose."""
        try:
            box = unb64(sealed)
        except ValueError:
            return None
        keys = [key for key in self._ring.own if key.seed is not None] if len(box) > OVERHEAD else []
        return next((text for key in keys if (text := decrypt_token(box, self._derive(key))) is not None), None)

    def _derive(self, key: Key) -> bytes:
        """Return the key of this purpose: HKDF-SHA256, with the purpose as its salt."""
        extracted = hmac.digest(self._purpose, key.seed or b"", "sha256")
        return hmac.digest(extracted, b"\1", "sha256")


class PaymentLink(msgspec.Struct, frozen=True, array_like=True):
    """What a link says. Times are in epoch seconds.

    `account` is the SHA-256 of the token that gets the credits; without one the link is of one
    call, and `spender` is the SHA-256 of the secret that may spend its price. The `code`
    stands in the chat and on the page.
    """

    tool: str
    credits: int
    code: str
    asked_at: int
    expires_at: int
    account: bytes | None = None
    spender: bytes | None = None


class PaymentRequest(NamedTuple):
    """A link that was just made: its text, what it says, and the secret of a link of one call."""

    text: str
    link: PaymentLink
    secret: str | None


class LinkLedger(Ledger, AllowanceLedger, Protocol):
    """A ledger with allowances."""


class PaymentLinks:
    """The links of one service. Methods raise PaymentRequired if the ledger refuses a token or cannot be used."""

    def __init__(self, ledger: LinkLedger, ring: KeyRing, registry: Registry, clock: Clock) -> None:
        self._ledger, self._ring, self._registry, self._clock = ledger, ring, registry, clock
        self._seal = TextSeal(ring, "payment links")
        self.room = WaitingRoom("payments", PAYMENT_WAITS)

    def open_seal(self, purpose: str) -> TextSeal:
        """Return a seal for another purpose, with keys of its own."""
        return TextSeal(self._ring, purpose)

    async def find_account(self, token: str | None) -> str | None:
        """Return the account that a token spends from, by its SHA-256 (hex); None for a token that is not valid."""
        return None if token is None else await self._ledger.find_payer(token)

    def make(self, operation: Operation, account: str | None) -> PaymentRequest:
        """Return a new link for a call: of an account, by its SHA-256 (hex), or of one call."""
        secret = None if account is not None else f"svc_live_{secrets.token_hex(32)}"
        now = int(self._clock.time())
        link = PaymentLink(
            operation.name,
            operation.credits,
            "".join(secrets.choice(_LETTERS) for _ in range(_CODE_LENGTH)),
            now,
            now + LIFE_S,
            account=None if account is None else bytes.fromhex(account),
            spender=None if secret is None else token_hash(secret),
        )
        return PaymentRequest(self._seal.seal(msgspec.json.encode(link).decode()), link, secret)

    def read(self, text: str) -> PaymentLink:
        """Return what a link says. Raise NotFound for one that was changed, is not ours or has expired."""
        content = self._seal.unseal(text) if len(text) <= MOST_TEXT else None
        if content is None:
            raise NotFound("This link is damaged or comes from elsewhere. Ask in the chat again to get a new one.")
        link = msgspec.json.decode(content, type=PaymentLink)
        if link.expires_at <= self._clock.time():
            raise NotFound("This link has expired. Ask in the chat again to get a new one.")
        return link

    def name_tool(self, link: PaymentLink) -> str:
        """Return the title of the tool that a link pays for. Raise NotFound if there is no such tool any more."""
        return self._find_operation(link).title

    async def prove(self, link: PaymentLink, token: str) -> None:
        """Check that the holder of a token may buy credits for the account of a link.

        Raises:
            PayerProofRequired: the token belongs to another account.
        """
        payer = await self._ledger.find_payer(token)
        if link.account is None or payer is None or not hmac.compare_digest(bytes.fromhex(payer), link.account):
            raise refuse_payer()

    async def pay_call(self, link: PaymentLink, token: str) -> None:
        """Let a link's chat spend the price of one call from a token.

        Repeating it with the same token changes nothing.

        Raises:
            PayerProofRequired: the link is of an account.
            InsufficientCredits: the token has fewer credits than the call costs.
            AllowanceConflict: another token has paid for the call, or this one can have no further allowance.
        """
        if link.spender is None:
            raise PayerProofRequired("This link adds credits to an account. It pays for no single call.")
        operation = self._find_operation(link)
        left = await self._ledger.balance(token)
        if left < link.credits:
            detail = f"The call costs {link.credits} credits, but the token has only {left}."
            raise InsufficientCredits(detail, required=link.credits, credits_remaining=left)
        terms = AllowanceTerms(
            f"One call from a chat (code {link.code})",
            link.credits,
            expires_at=link.expires_at * 1000,
            tools={operation.name: operation.path},
        )
        try:
            await self._ledger.create_allowance(token, link.spender.hex(), terms)
        except AllowanceConflict as conflict:
            raise AllowanceConflict(
                "Another token has paid for this call already, or this token can have no further allowance. It keeps"
                " all its credits."
            ) from conflict

    async def wait_until_paid(self, link: PaymentLink, payer: str, client: str | None = None) -> bool:
        """Return True once a token, or the secret of a link of one call, can pay; False after `WAIT_S`.

        Where too many calls wait already, in all or for this client, the ledger is asked only once.
        """
        if await self._can_pay(link, payer):
            return True
        try:
            async with self.room.wait(client):
                return await self._look_until_paid(link, payer)
        except WaitRefused:
            return False

    async def _look_until_paid(self, link: PaymentLink, payer: str) -> bool:
        until = self._clock.monotonic() + WAIT_S
        while (left := until - self._clock.monotonic()) > 0:
            await self._clock.sleep(min(LOOK_S, left))
            if await self._can_pay(link, payer):
                return True
        return False

    async def _can_pay(self, link: PaymentLink, payer: str) -> bool:
        if link.spender is not None:
            return await self._ledger.knows(payer)
        return await self._ledger.balance(payer) >= link.credits

    def _find_operation(self, link: PaymentLink) -> Operation:
        operation = self._registry.get(link.tool)
        if operation is None:
            raise NotFound("The tool of this link is no longer offered.")
        return operation


def refuse_payer() -> PayerProofRequired:
    """Return the refusal of a browser that does not prove whose account a link is for."""
    return PayerProofRequired(
        "This link is for another account than that of the token. If somebody else sent it to you, close this page:"
        " nothing was paid."
    )


def describe(link: PaymentLink, title: str) -> dict[str, object]:
    """Return what the page shows of a link. It names no account: the link may be in the wrong hands."""
    return {
        "tool": link.tool,
        "title": title,
        "credits": link.credits,
        "code": link.code,
        "asked_at": iso(moment(link.asked_at)),
        "expires_at": iso(moment(link.expires_at)),
        "account": link.account is not None,
    }
