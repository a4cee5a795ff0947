"""Submits signed authorisations to the USDC contract, from an account that pays the fees. Only
this module sends transactions.

It may always be run again with the same document: an authorisation that was used is not sent
a second time, and one that was sent and is not on the chain yet is reported with the hash of
its transaction.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from toolserver.clock import Clock
from toolserver.core.import_guard import recursion_limit_kept
from toolserver.core.json_rpc import JsonRpcClient, RpcRefused, RpcUnusable
from toolserver.core.outbound import NO_PROXIES, Proxies
from toolserver.errors import ToolserverError
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.transfer_authorization import Authorization
from toolserver.money.purchases.units import CHAIN_ID, USDC_TEXT

if TYPE_CHECKING:
    from eth_keys.datatypes import PrivateKey

TIMEOUT_S, MOST_BYTES = 10.0, 1 << 20
WAIT_S, POLL_S = 60.0, 1.0
HEADROOM = 1.25  # gas beyond the estimate
_ORACLE = "0x420000000000000000000000000000000000000F"  # the rollup's GasPriceOracle, which knows what data costs
DATA_FEE_SELECTOR = bytes.fromhex("f1c7a58b")  # getL1FeeUpperBound(uint256)
STATE_SELECTOR = bytes.fromhex("e94a0102")  # authorizationState(address,bytes32)
_SIZE = 420  # bytes of a transaction that submits an authorisation

Outcome = Literal["sent", "used before", "refused", "not seen yet", "reverted"]


class RelayDown(ToolserverError):
    """The RPC server gave no usable response. The text never names its address, which may contain a key."""


class RelayedTransfer(NamedTuple):
    """The outcome of one authorisation. `tx` is the hash of the transaction that carries it, if one was sent here."""

    outcome: Outcome
    tx: bytes | None = None


class ChainPrices(NamedTuple):
    """The price of gas, and that of the data of one submission, in wei."""

    gas_price: int
    data_fee: int


class Relay:
    """One RPC server to which transactions are sent. Made by `open_relay`."""

    def __init__(self, rpc: JsonRpcClient, clock: Clock) -> None:
        self._rpc, self._clock = rpc, clock

    async def read_prices(self) -> ChainPrices:
        """Return what a submission costs now; `data_fee` is 0 on a chain without the oracle. Raises RelayDown."""
        price = await self._ask("eth_gasPrice")
        data = f"0x{(DATA_FEE_SELECTOR + _SIZE.to_bytes(32, 'big')).hex()}"
        try:
            said = await self._ask("eth_call", {"to": _ORACLE, "data": data}, "latest")
        except RpcRefused:
            said = "0x"
        return ChainPrices(int(price, 16), int(said, 16) if len(said) > 2 else 0)

    async def is_used(self, payer: bytes, nonce: bytes) -> bool:
        """Return True if the payer's authorisation with this nonce was used or cancelled. Raises RelayDown."""
        data = STATE_SELECTOR + bytes(12) + payer + nonce
        said = await self._ask("eth_call", {"to": USDC_TEXT, "data": f"0x{data.hex()}"}, "latest")
        return int(said, 16) != 0

    async def submit(
        self, one: Authorization, signature: bytes, key: "PrivateKey", note: Callable[[bytes], Awaitable[None]]
    ) -> RelayedTransfer:
        """Send an authorisation and wait until it is in a block. `note` gets the transaction's hash before it is sent.

        Raises:
            RelayDown: the outcome is unknown; submit it again.
        """
        if await self.is_used(one.payer, one.nonce):
            return RelayedTransfer("used before")
        sender = key.public_key.to_canonical_address()
        data = f"0x{one.call(signature).hex()}"
        call = {"from": checksum_address(sender), "to": USDC_TEXT, "data": data}
        try:
            gas = int(await self._ask("eth_estimateGas", call), 16)
        except RpcRefused:  # it would revert: too small a balance, expired, or blocked by the token's issuer
            return RelayedTransfer("refused")
        raw, tx = await self._sign(sender, key, data, int(gas * HEADROOM))
        await note(tx)
        try:
            await self._ask("eth_sendRawTransaction", f"0x{raw.hex()}")
        except RpcRefused:  # for example, known already, or too little ether for the fee
            return RelayedTransfer("refused", None) if await self._is_unknown(tx) else await self._wait(tx)
        return await self._wait(tx)

    async def follow(self, tx: bytes) -> RelayedTransfer | None:
        """Wait for a transaction that was sent before. Return None if the server does not know it. Raises RelayDown."""
        return None if await self._is_unknown(tx) else await self._wait(tx)

    async def is_made(self, tx: bytes) -> bool:
        """Return True if a transaction is in a block and succeeded. Raises RelayDown."""
        receipt = await self._ask("eth_getTransactionReceipt", f"0x{tx.hex()}")
        return receipt is not None and int(receipt["status"], 16) == 1

    async def _sign(self, sender: bytes, key: "PrivateKey", data: str, gas: int) -> tuple[bytes, bytes]:
        """Return the signed transaction (EIP-1559) and its hash."""
        price = int(await self._ask("eth_gasPrice"), 16)
        transaction = {
            "chainId": CHAIN_ID,
            "nonce": int(await self._ask("eth_getTransactionCount", checksum_address(sender), "pending"), 16),
            "to": USDC_TEXT,
            "value": 0,
            "data": data,
            "gas": gas,
            "maxFeePerGas": 2 * price,
            "maxPriorityFeePerGas": min(price, 10**6),
        }
        with recursion_limit_kept():
            from eth_account import Account
        signed = Account.sign_transaction(transaction, key.to_bytes())
        return bytes(signed.raw_transaction), bytes(signed.hash)

    async def _is_unknown(self, tx: bytes) -> bool:
        return await self._ask("eth_getTransactionByHash", f"0x{tx.hex()}") is None

    async def _wait(self, tx: bytes) -> RelayedTransfer:
        for _ in range(int(WAIT_S / POLL_S)):
            receipt = await self._ask("eth_getTransactionReceipt", f"0x{tx.hex()}")
            if receipt is not None:
                return RelayedTransfer("sent" if int(receipt["status"], 16) == 1 else "reverted", tx)
            await self._clock.sleep(POLL_S)
        return RelayedTransfer("not seen yet", tx)

    async def _ask(self, method: str, *params: Any) -> Any:
        """Return the result of a request. Raises RpcRefused for an error of JSON-RPC, and RelayDown for any other."""
        try:
            return await self._rpc.call(method, *params)
        except RpcRefused:
            raise
        except RpcUnusable as error:
            raise RelayDown(str(error)) from None


@asynccontextmanager
async def open_relay(url: str, clock: Clock, proxies: Proxies = NO_PROXIES) -> AsyncIterator[Relay]:
    """Yield a server that is on the right chain. Raises RelayDown."""
    rpc = JsonRpcClient(url, timeout_s=TIMEOUT_S, most_bytes=MOST_BYTES, proxies=proxies)
    try:
        try:
            chain = int(await rpc.call("eth_chainId"), 16)
        except (RpcUnusable, TypeError, ValueError) as error:
            raise RelayDown(f"the RPC server does not say which chain it is on: {error}") from None
        if chain != CHAIN_ID:
            raise RelayDown(f"the RPC server is on chain {chain} instead of {CHAIN_ID}")
        yield Relay(rpc, clock)
    finally:
        await rpc.aclose()
