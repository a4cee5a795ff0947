"""Sells credits: makes quotes, turns payments into tokens, and tells the balance of a token.

A claim is checked against the chain, the amount and earlier credits:

    parse → find the purchase → look at the chain until it is settled → one transaction: credit, mint, token

Whatever goes wrong on the way, the request can be repeated: nothing is credited before the
last step. If the response was lost, a caller who has both memo and transaction gets the same
token again, within 15 minutes and until it is used.
"""

import hmac
import logging
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import NamedTuple

import anyio

from toolserver.clock import Clock
from toolserver.core.caller import token_hash
from toolserver.core.outbound import NO_PROXIES, Proxies
from toolserver.errors import (
    AlreadyCredited,
    BelowMinimum,
    CallRejected,
    InvalidToken,
    NoMatchingTransfer,
    NotFound,
    PayerProofRequired,
    PaymentPending,
)
from toolserver.money.ledger.state import Who, key_of
from toolserver.money.purchases.chain.ethereum import message_digest, message_signer, tx_hash_of
from toolserver.money.purchases.chain.reorg_watch import AgreementWatch, ReorgWatch, judge_sightings
from toolserver.money.purchases.chain.rpc_pool import ChainDown, RpcPool, make_rpc_pool
from toolserver.money.purchases.closed_purchases import AccountReader, ClosedPurchases
from toolserver.money.purchases.credit_price import ATOMIC, credits_for
from toolserver.money.purchases.credit_sales import (
    Balance,
    ChainServers,
    Claim,
    CreditedPurchase,
    CreditSales,
    PurchaseQuote,
)
from toolserver.money.purchases.deposit import DepositKey
from toolserver.money.purchases.matching import (
    MatchedPayment,
    ObservedTransaction,
    Policy,
    Progress,
    Proofs,
    is_older,
    match_deposit,
    match_with_proof,
    policy_of,
    says_memo,
    transfers,
)
from toolserver.money.purchases.quotes import (
    MEMO,
    DepositSearch,
    Quotes,
    QuoteTerms,
    SalesCeilings,
    challenge_of,
    commitment,
    invalid,
    make_ceilings,
    pending,
    unavailable,
)
from toolserver.money.purchases.records import (
    NotCreditable,
    Opinion,
    Purchase,
    Reason,
    SecondPayment,
    StoredCredit,
    TransferCredit,
    UnappliedPayment,
)
from toolserver.money.purchases.second_payments import (
    SecondPayments,
    SecondPaymentWatch,
    SightedPayment,
    refuse_second,
    tell_second,
)
from toolserver.money.purchases.sql_refunds import SqlReissues
from toolserver.money.purchases.store import SqlPurchaseStore, memo_hash
from toolserver.money.purchases.token_encryption import decrypt_token, encrypt_token, sealing_key
from toolserver.money.purchases.units import CHAIN_ID, LEAST
from toolserver.settings import PaymentSettings as Settings
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.high_water import HighWater
from toolserver.sql.leases import LeasedTask

log = logging.getLogger(__name__)

ASK_AGAIN_S = 15 * 60
WINDOW_S = 30 * 86_400
LOOK_S = 30.0
POLL_S = 1.5  # between two looks at the chain for a claim that waits
OPINION_S = 2.0  # for which a claim waits for a second server
HELD_S = 600  # after which to confirm a payment again that is held for a second source
SECOND_SOURCE = "needs a second RPC server"
_SIGNATURE = re.compile(r"0x(?:[0-9a-fA-F]{2}){65,2048}")


@dataclass(frozen=True)
class Rules:
    """The rules by which claims are judged. `host` is part of the text that payers sign; times are in seconds.

    A claim waits `wait_s` for the chain, and at most `answer_s` longer for servers that do not answer.
    """

    policy: Policy = field(default_factory=Policy)
    shared: bool = False
    host: str = "localhost"
    grace_s: int = 600
    credit_late: bool = True
    wait_s: float = 10.0
    answer_s: float = 4.0


class _Case(NamedTuple):
    """A well-formed claim, its purchase, the key of the account that it tops up, and the token if it was sent."""

    claim: Claim
    tx_hash: bytes
    purchase: Purchase
    account: str | None = None
    token: str = ""


class Confirmations:
    """Judges claims and credits the purchases that were paid."""

    def __init__(
        self, store: SqlPurchaseStore, chain: RpcPool, clock: Clock, rules: Rules, ceilings: SalesCeilings | None = None
    ) -> None:
        self._store, self._chain, self._clock, self._rules = store, chain, clock, rules
        self._ceilings, self._one_at_a_time = ceilings, anyio.Lock()
        self._seconds = SecondPayments(store, chain, clock, rules.policy, ceilings)

    async def confirm(self, claim: Claim, who: Who | None = None) -> CreditedPurchase:
        """Return the token of a purchase that was paid. Token and credits are durable when this returns.

        With `who`, the purchase must be a top-up of that token; without it, it must buy a new token.

        Raises:
            InvalidArguments: the claim is malformed.
            NotFound: no purchase has its memo.
            PaymentRefused: the payment does not count, is not final enough yet, or was credited before.
            ChainUnavailable: too few servers of the chain answer.
        """
        case = await self._read_claim(claim, who)
        if case.purchase.state == "credited":
            return await self._give_again(case)
        sighting = await self._wait_until_settled(case)
        async with self._one_at_a_time:  # two purchases that each fit under a ceiling may not fit together
            if self._ceilings is not None:
                await self._ceilings.hold_excess(case.tx_hash, case.purchase.id, sighting.paid.amount)
            with suppress(NotCreditable):  # a concurrent call was first
                return await self._credit_purchase(case, sighting)
        return await self._give_again(case, sighting)

    async def has_token(self, token: str) -> None:
        """Record that the buyer has the token, because a request carried it. It is not given out again."""
        hashed = token_hash(token).hex()
        if await self._store.is_token_waiting(hashed):
            await self._store.forget_token(hashed)

    async def _read_claim(self, claim: Claim, who: Who | None) -> _Case:
        tx_hash = tx_hash_of(claim.tx_hash)
        if tx_hash is None:
            raise invalid("tx_hash", "must be 64 hexadecimal digits, with or without 0x")
        if not MEMO.fullmatch(claim.memo):
            raise invalid("nonce", "must be the memo of a quote: svc_buy_ and 32 hexadecimal digits")
        if claim.signature is not None and not _SIGNATURE.fullmatch(claim.signature):
            raise invalid("payer_signature", "must be 0x and at least 65 bytes in hexadecimal digits")
        purchase = await self._store.find_purchase(memo_hash(claim.memo))
        if purchase is None:
            raise NotFound("There is no purchase with this memo.")
        challenge = challenge_of(claim.verifier) if claim.verifier else ""
        if purchase.challenge is not None and not hmac.compare_digest(challenge, purchase.challenge):
            raise PayerProofRequired("The quote has a claim_challenge. Send the claim_verifier that matches it.")
        account = None if who is None else key_of(who)
        if account is None and purchase.tops_up is not None:
            raise PayerProofRequired(
                "This purchase adds credits to a token: confirm it with payment_topup (POST /api/payment/topup), with "
                "tx_hash, nonce and that token."
            )
        if account is not None and account != purchase.tops_up:
            raise NotFound(
                "No top-up of this token has this memo. payment_confirm confirms the purchase of a new token."
            )
        return _Case(claim, tx_hash, purchase, account, who if isinstance(who, str) else "")

    async def _wait_until_settled(self, case: _Case) -> SightedPayment:
        """Return the payment once it may be credited; poll for `wait_s`. Raises PaymentRefused, ChainUnavailable."""
        rules = self._rules
        last: SightedPayment | ChainDown | None = ChainDown("no answer in time")
        with anyio.move_on_after(rules.wait_s + rules.answer_s):
            for turn in range(1 + int(rules.wait_s / POLL_S)):
                if turn:
                    await self._clock.sleep(POLL_S)
                try:
                    last = await self._look(case)
                except ChainDown as down:
                    last = down
                if isinstance(last, SightedPayment) and last.progress.enough and last.opinion != "disputed":
                    return last
        if isinstance(last, SightedPayment) and last.progress.enough:
            return last  # another server may only be behind: what is bought is withheld until it has the payment too
        if isinstance(last, ChainDown):
            log.warning("the chain cannot be read", extra={"reason": str(last)})
            raise unavailable()
        raise pending(last.progress if last else Progress(0, rules.policy.blocks, False))

    async def _look(self, case: _Case) -> SightedPayment | None:
        """Return the payment, or None if it is not on the chain yet. Raises ChainDown, or PaymentRefused for good."""
        policy = self._rules.policy
        seen = await self._chain.observe(case.tx_hash)
        if seen is None or not seen.is_canonical:  # a transaction on a fork is neither a payment nor a reason to refuse
            return None
        paid = await self._match_payment(case, seen)
        progress = policy.progress(seen, paid.amount)
        if not progress.enough:
            return SightedPayment(seen, paid, progress)
        if not policy.needs_agreement(paid.amount):
            return SightedPayment(seen, paid, progress, await self._find_opinion(case.tx_hash, case.purchase, paid))
        if len(self._chain) < 2:
            await self._hold_for_second_source(case, paid.amount)
            return SightedPayment(seen, paid, progress)
        agreed = await self._chain.observe(case.tx_hash, agreeing=2)
        if agreed is None or not agreed.is_canonical:
            return SightedPayment(seen, paid, Progress(progress.confirmations, progress.confirmations + 1, False))
        paid = await self._match_payment(case, agreed)
        return SightedPayment(agreed, paid, policy.progress(agreed, paid.amount), "agreed")

    async def _hold_for_second_source(self, case: _Case, amount: int) -> None:
        """Raise PaymentPending until there is a second server or a person approves the payment, which is a case."""
        now = int(self._clock.time() * 1000)
        if await self._store.hold_transfer(case.tx_hash, case.purchase.id, amount, SECOND_SOURCE, now):
            raise PaymentPending(
                "The payment has arrived and is held for a second source: two independent RPC servers must report an "
                "amount this large, or the operator approves it. Confirm again later with the same tx_hash and nonce.",
                headers={"Retry-After": str(HELD_S)},
                retry_after_seconds=HELD_S,
            )

    async def _find_opinion(self, tx_hash: bytes, purchase: Purchase, paid: MatchedPayment) -> Opinion:
        """Return what a second server says of a payment; "unknown" where none answers in time."""
        said: Opinion = "unknown"
        if len(self._chain) > 1:
            with anyio.move_on_after(OPINION_S):
                said = judge_sightings(await self._chain.survey(tx_hash), purchase.address, paid.amount)
        return said

    async def _match_payment(self, case: _Case, seen: ObservedTransaction) -> MatchedPayment:
        """Return the part of the transaction that counts for this purchase. Raises PaymentRefused."""
        purchase = case.purchase
        if self._rules.shared:
            paid = await self._match_proven(case, seen)
        else:
            paid = match_deposit(seen.receipt, purchase.address)
        if paid is None or paid.amount == 0:
            raise NoMatchingTransfer("The transaction moves no USDC to the address of this purchase.")
        if is_older(seen.block_time, purchase.created_at // 1000, self._clock.time()):
            raise NoMatchingTransfer("The transaction is older than the quote.")
        if paid.amount < LEAST:
            await self._record_unapplied(case, seen, paid.amount, "below_minimum")
            raise BelowMinimum("Less than 1 USDC arrived. Pay at least 1 USDC, in one transfer.")
        if self._is_too_late(seen, purchase):
            await self._record_unapplied(case, seen, paid.amount, "late")
            raise NoMatchingTransfer("The payment was made after the quote expired. Ask the operator about it.")
        return paid

    def _is_late(self, seen: ObservedTransaction, purchase: Purchase) -> bool:
        return seen.block_time > purchase.expires_at // 1000 + self._rules.grace_s

    def _is_too_late(self, seen: ObservedTransaction, purchase: Purchase) -> bool:
        ended = purchase.expires_at // 1000
        if self._rules.credit_late:
            return self._clock.time() > ended + WINDOW_S
        return self._is_late(seen, purchase)

    async def _match_proven(self, case: _Case, seen: ObservedTransaction) -> MatchedPayment | None:
        """Return the part that proves to be for this purchase, at a shared address. Raises PayerProofRequired."""
        address, receipt = case.purchase.address, seen.receipt
        ours = [t for t in transfers(receipt) if t.payee == address]
        if not ours:
            return None
        signers = await self._find_signers(case, frozenset(t.payer for t in ours))
        paid = match_with_proof(receipt, seen.transaction, address, Proofs(commitment(case.claim.memo), signers))
        if paid is None:
            text = text_to_sign(self._rules.host, "<nonce>", case.tx_hash)
            request = f"Send payer_signature: the signature (EIP-191) by the account that paid of the text “{text}”,"
            raise PayerProofRequired(f"{request} with the memo in place of <nonce>.")
        return paid

    async def _find_signers(self, case: _Case, payers: frozenset[bytes]) -> frozenset[bytes]:
        """Return those of the payers that signed for this purchase and transaction. Raises ChainDown."""
        if case.claim.signature is None:
            return frozenset()
        text = text_to_sign(self._rules.host, case.claim.memo, case.tx_hash)
        signature = bytes.fromhex(case.claim.signature[2:])
        signer = message_signer(text, signature)
        if signer is not None and signer in payers:
            return frozenset([signer])
        digest = message_digest(text)
        return frozenset([p for p in sorted(payers)[:4] if await self._chain.accepts(p, digest, signature)])

    async def _is_signed(self, case: _Case, paid: MatchedPayment) -> bool:
        """Return True if a payer is known to have made this claim; False also when the chain cannot say."""
        try:
            return bool(await self._find_signers(case, paid.payers))
        except ChainDown:
            return False

    async def _credit_purchase(self, case: _Case, sighting: SightedPayment) -> CreditedPurchase:
        """Credit it in one transaction. Raises NotCreditable if a concurrent call has credited it."""
        purchase, seen, policy = case.purchase, sighting.seen, self._rules.policy
        token = f"svc_live_{secrets.token_hex(32)}" if case.account is None else case.token
        public = says_memo(seen.transaction, case.claim.memo) and purchase.challenge is None
        asked_again = case.account is None and (not public or await self._is_signed(case, sighting.paid))
        key, now = sealing_key(case.claim.memo, case.tx_hash), int(self._clock.time() * 1000)
        credit = TransferCredit(
            purchase.id,
            case.tx_hash,
            case.account or token_hash(token).hex(),
            seen,
            sighting.paid,
            credits_for(sighting.paid.amount),
            policy.finality(sighting.paid.amount),
            self._is_late(seen, purchase),
            public,
            encrypt_token(token, key) if asked_again else None,
            now + ASK_AGAIN_S * 1000 if asked_again else None,
            now,
            tops_up=case.account is not None,
            opinion=sighting.opinion,
        )
        credits = await self._store.credit_transfer(credit)
        facts = {"amount": sighting.paid.amount, "credits": credits, "tx": f"0x{case.tx_hash.hex()}"}
        log.info("purchase credited", extra=facts | {"late": credit.late, "memo_public": public})
        if sighting.opinion == "disputed":
            log.error("RPC servers disagree about a credited payment", extra={"tx": facts["tx"]})
        return CreditedPurchase(token, credits, credit.late)

    async def _give_again(self, case: _Case, sighting: SightedPayment | None = None) -> CreditedPurchase:
        """Return the same token again, for the same memo and transaction. Raises AlreadyCredited."""
        before = await self._store.find_credit(case.purchase.id)
        if before is None:
            await self._record_used(case, sighting)
        elif before.tx_hash != case.tx_hash:
            await self._credit_second(case, before)
        elif (token := self._unseal_token(case, before)) is not None:
            return CreditedPurchase(token, before.credits, before.late)
        raise AlreadyCredited(
            "This purchase or transaction was already credited, and its token was given out then. If you just paid "
            "a second time, confirm it again in some seconds."
        )

    def _unseal_token(self, case: _Case, before: StoredCredit) -> str | None:
        """Return the token, or None once it has been used or its time to be given again has ended."""
        if case.account is not None:
            return case.token  # who tops it up has it
        if before.sealed is None or before.used or self._clock.time() * 1000 > (before.sealed_until or 0):
            return None
        return decrypt_token(before.sealed, sealing_key(case.claim.memo, case.tx_hash))

    async def _credit_second(self, case: _Case, before: StoredCredit) -> None:
        """Credit a second payment of a purchase to its token, as a purchase of its own, or record it as a case.

        Return if there is no such payment. Raises AlreadyCredited with what was bought, or with what is missing, and
        PaymentRefused as long as the payment is not settled.
        """
        second = SecondPayment(case.purchase, memo_hash(case.claim.memo), case.tx_hash)
        credits = await self._store.find_second_credit(second)
        if credits is None:
            try:
                if (sighting := await self._look(case)) is None:
                    return
                signers = await self._find_signers(case, sighting.paid.payers)
            except (ChainDown, NoMatchingTransfer):
                return
            if not sighting.progress.enough:
                raise pending(sighting.progress)
            is_proven = self._rules.shared or sighting.paid.payers <= signers
            credits = await self._sell_second(second, before, sighting, is_proven=is_proven)
        if credits is None:
            raise refuse_second(text_to_sign(self._rules.host, "<nonce>", case.tx_hash))
        raise tell_second(second, credits)

    async def _sell_second(
        self, second: SecondPayment, before: StoredCredit, sighting: SightedPayment, *, is_proven: bool
    ) -> int | None:
        """Sell it alone, as a first payment is sold. Nothing waits for the chain while others wait for their turn."""
        is_proven = is_proven or await self._seconds.has_paid_first(before, sighting.paid)
        async with self._one_at_a_time:
            return await self._seconds.sell(second, before, sighting, is_proven=is_proven)

    async def credit_seconds(self) -> None:
        """Credit the second payments that nobody has confirmed, or record them as cases."""
        for second in await self._store.list_seconds():
            before = await self._store.find_credit(second.purchase.id)
            try:
                sighting = await self._look(_Case(Claim("", ""), second.tx_hash, second.purchase))
                if before is not None and sighting is not None and sighting.progress.enough:
                    await self._sell_second(second, before, sighting, is_proven=False)
            except (ChainDown, CallRejected) as refusal:
                facts = {"tx": f"0x{second.tx_hash.hex()}", "reason": str(refusal)}
                log.info("a second payment is not credited", extra=facts)

    async def _record_used(self, case: _Case, sighting: SightedPayment | None) -> None:
        """Record money for this purchase in a transaction that was credited to another one, if it did arrive."""
        if sighting is not None:
            await self._record_unapplied(case, sighting.seen, sighting.paid.amount, "transaction_used")
            return
        try:
            seen = await self._chain.observe(case.tx_hash)
        except ChainDown:
            return
        paid = match_deposit(seen.receipt, case.purchase.address) if seen and not self._rules.shared else None
        if seen and paid and paid.amount:
            await self._record_unapplied(case, seen, paid.amount, "transaction_used")

    async def _record_unapplied(self, case: _Case, seen: ObservedTransaction, amount: int, reason: Reason) -> None:
        tx_hash, now = seen.receipt.tx_hash, int(self._clock.time() * 1000)
        await self._store.record_unapplied(UnappliedPayment(tx_hash, case.purchase.id, amount, reason, now))
        log.warning("a payment bought nothing", extra={"reason": reason, "amount": amount, "tx": f"0x{tx_hash.hex()}"})


def text_to_sign(host: str, memo: str, tx_hash: bytes) -> str:
    """Return the exact text that the payer signs to claim a payment."""
    return f"{host} confirm {memo} 0x{tx_hash.hex()} chain {CHAIN_ID}"


class PurchaseService(ClosedPurchases):
    """Sells credits."""

    def __init__(
        self,
        ledger: AccountReader,
        open_reissues: Callable[[], SqlReissues] | None,
        *,
        quotes: Quotes,
        confirmations: Confirmations,
        search: DepositSearch,
        ready: Callable[[], Awaitable[None]],
        count_servers: Callable[[], ChainServers],
    ) -> None:
        super().__init__(ledger, open_reissues)
        self._count_servers = count_servers
        self._quotes = quotes
        self._confirmations = confirmations
        self._search = search
        self._ready = ready

    async def quote(
        self, amount_usd: Decimal, *, challenge: str | None = None, credits_per_day: int | None = None
    ) -> PurchaseQuote:
        await self._ready()
        return await self._quotes.make(amount_usd, challenge, credits_per_day)

    def count_servers(self) -> ChainServers:
        return self._count_servers()

    async def confirm(self, claim: Claim) -> CreditedPurchase:
        return await self._confirmations.confirm(claim)

    async def quote_topup(self, who: Who | None, amount_usd: Decimal) -> PurchaseQuote:
        account = await self._find_valid(who)
        if account.allowance is not None:
            raise InvalidToken("You cannot add credits to an allowance. Top up the token whose credits it spends.")
        await self._ready()
        return await self._quotes.make(amount_usd, tops_up=account.payer)

    async def confirm_topup(self, who: Who | None, claim: Claim) -> CreditedPurchase:
        await self._find_valid(who)
        return await self._confirmations.confirm(claim, who)

    async def find_payment(self, memo: str) -> str | None:
        return await self._search.find(memo)

    async def balance(self, token: str) -> Balance:
        await self._confirmations.has_token(token)
        return await super().balance(token)


@asynccontextmanager
async def open_purchases(
    settings: Settings,
    file: GroupCommit,
    *,
    ledger: AccountReader,
    clock: Clock,
    host: str,
    marks: HighWater | None = None,
    proxies: Proxies = NO_PROXIES,
) -> AsyncIterator[CreditSales]:
    """Yield the seller of credits that the settings define. It watches credited payments for reorganisations.

    `file` is the database of the ledger. `host` is part of the text that payers sign; `marks`
    remembers which deposit addresses were given out. Each watch works only on the instance
    that holds its task.

    Raises:
        NotAnAccountKey: `settings.xpub` is not an extended public key of an account.
    """
    terms, rules = terms_of(settings), rules_of(settings, host)
    chain, store = make_rpc_pool(settings, clock, proxies), SqlPurchaseStore(file)
    ceilings = make_ceilings(settings, store, clock)
    confirmations = Confirmations(store, chain, clock, rules, ceilings)
    names = ("reorg watch", "agreement watch", "second payments")
    reorgs, agreement, seconds = (LeasedTask(file, name, clock) for name in names)
    reorg_watch = ReorgWatch(SqlPurchaseStore(file, reorgs), chain, clock, rules.policy, reorgs)
    agreement_watch = AgreementWatch(SqlPurchaseStore(file, agreement), chain, clock, agreement)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_log_when_ready, chain, clock)
            tasks.start_soon(chain.watch)
            tasks.start_soon(reorg_watch.run)
            tasks.start_soon(agreement_watch.run)
            tasks.start_soon(SecondPaymentWatch(confirmations.credit_seconds, clock, seconds).run)
            yield PurchaseService(
                ledger,
                partial(SqlReissues, file, clock),
                quotes=Quotes(store, clock, terms, ceilings, marks, count_servers=lambda: len(chain)),
                confirmations=confirmations,
                search=DepositSearch(store, chain),
                ready=partial(_require_ready, chain),
                count_servers=chain.count_servers,
            )
            tasks.cancel_scope.cancel()
    finally:
        with anyio.move_on_after(2, shield=True):
            await chain.aclose()


def terms_of(settings: Settings) -> QuoteTerms:
    """Return the terms of quotes that the settings define. Raises NotAnAccountKey."""
    if settings.binding == "shared_wallet":
        wallet: Callable[[int], bytes] | bytes = bytes.fromhex((settings.shared_wallet or "")[2:])
    else:
        wallet = DepositKey(settings.xpub.get_secret_value() if settings.xpub else "").address
    return QuoteTerms(
        wallet,
        life_s=settings.quote_minutes * 60,
        first_index=settings.first_index,
        most=None if settings.agree_from_usd is None else settings.agree_from_usd * ATOMIC - 1,
        per_minute=settings.quotes_per_minute,
    )


def rules_of(settings: Settings, host: str) -> Rules:
    """Return the rules for claims that the settings define."""
    return Rules(
        policy_of(settings),
        shared=settings.binding == "shared_wallet",
        host=host,
        grace_s=settings.grace_minutes * 60,
        credit_late=settings.late == "credit",
        wait_s=settings.wait_s,
    )


async def _require_ready(chain: RpcPool) -> None:
    """Raise ChainUnavailable if no server answers: nothing is offered while a payment could not be seen."""
    try:
        await chain.check_ready()
    except ChainDown:
        raise unavailable("The chain cannot be read at the moment, so no credits are sold.") from None


async def _log_when_ready(chain: RpcPool, clock: Clock) -> None:
    """Check from the start whether the RPC servers are the right ones, log the result, and return once one is."""
    while True:
        try:
            await chain.check_ready()
        except ChainDown as down:
            log.error("credits cannot be sold", extra={"reason": str(down)})
            await clock.sleep(LOOK_S)
            continue
        log.info("credits can be bought", extra={"servers": len(chain)})
        return
