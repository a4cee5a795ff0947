"""Finds on the chain the transaction that paid a purchase."""

from toolserver.errors import NotFound
from toolserver.money.purchases.chain.rpc_pool import ChainDown, RpcPool
from toolserver.money.purchases.quotes import MEMO, invalid, unavailable
from toolserver.money.purchases.store import SqlPurchaseStore, memo_hash


class DepositSearch:
    """Looks for transfers to the addresses of purchases."""

    def __init__(self, store: SqlPurchaseStore, chain: RpcPool) -> None:
        self._store, self._chain = store, chain

    async def find(self, memo: str) -> str | None:
        """Return the hash of the first transaction that paid a purchase, or None while there is none. Return None also
        where all purchases share one address: only the buyer can say which payment is for which purchase.

        Raises:
            InvalidArguments, NotFound: there is no purchase with this memo.
            ChainUnavailable: no server of the chain answers.
        """
        if not MEMO.fullmatch(memo):
            raise invalid("nonce", "must be the memo of a quote: svc_buy_ and 32 hexadecimal digits")
        purchase = await self._store.find_purchase(memo_hash(memo))
        if purchase is None:
            raise NotFound("There is no purchase with this memo.")
        if purchase.hd_index is None:
            return None
        if (credit := await self._store.find_credit(purchase.id)) is not None:
            return f"0x{credit.tx_hash.hex()}"
        try:
            tx_hash = await self._chain.find_transfer(purchase.address, purchase.created_at // 1000)
        except ChainDown:
            raise unavailable() from None
        return None if tx_hash is None else f"0x{tx_hash.hex()}"
