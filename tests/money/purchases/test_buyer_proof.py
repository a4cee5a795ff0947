"""Who a buyer is: by texts that serve one purpose each, and by what the chain says of who paid."""

from functools import partial

import pytest
from eth_account import Account
from eth_account.messages import encode_defunct

from tests.calls.parts import START
from tests.money.purchases.parts import OTHER, PAYER, TX, TX2, Server, observed, receipt, transfer_log
from tests.money.purchases.wallet import private_key
from toolserver.clock import ManualClock
from toolserver.money.purchases.buyer_proof import (
    PaidTransfer,
    ProofMissing,
    TokenPayments,
    find_payers,
    find_signer,
    new_nonce,
    refund_text,
    reissue_text,
)
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.chain.rpc_pool import ChainDown, RpcPool
from toolserver.money.purchases.service import text_to_sign

OURS, AT = bytes([0xD0]) * 20, 1_800_000_000_000
ACCOUNT = Account.from_key(private_key(0, 0))
SIGNER = bytes.fromhex(ACCOUNT.address[2:])
REFUND = refund_text("h", "ab" * 8, 5, OTHER, "rf_1", AT)


def pool(*servers):
    return RpcPool(
        [partial(lambda server: server, server) for server in servers], monotonic=ManualClock(START).monotonic
    )


def signed(text=REFUND):
    return "0x" + bytes(ACCOUNT.sign_message(encode_defunct(text=text)).signature).hex()


def test_texts_say_what_for_with_nonce_and_end_and_none_serves_for_another():
    end = "nonce rf_1 until 2027-01-15T08:00:00Z chain 8453"
    assert REFUND == f"h refund 5 credits of token abababababababab to {checksum_address(OTHER)} {end}"
    reissue = reissue_text("h", "ab" * 8, "ri_1", AT)
    assert reissue == "h replace the lost token abababababababab nonce ri_1 until 2027-01-15T08:00:00Z chain 8453"
    assert len({text.split()[1] for text in (REFUND, reissue, text_to_sign("h", "memo", TX))}) == 3


def test_a_nonce_names_its_kind_and_is_never_the_same():
    assert new_nonce("rf").startswith("rf_")
    assert len({new_nonce("ri") for _ in range(100)}) == 100


async def test_payers_are_those_of_the_transfers_to_our_address_and_of_signed_payments():
    server = Server()
    logs = (transfer_log(OURS, 5), transfer_log(OURS, 5, 1, payer=OTHER), transfer_log(PAYER, 5, 2, payer=SIGNER))
    server.sees(observed(receipt(*logs)))
    payments = TokenPayments([PaidTransfer(TX, OURS)], [SIGNER])
    assert await find_payers(pool(server), payments) == [{SIGNER}, {PAYER, OTHER}]


async def test_two_servers_have_to_agree_about_who_paid():
    honest, lying = Server(), Server()
    honest.sees(observed(receipt(transfer_log(OURS, 5))))
    payments = TokenPayments([PaidTransfer(TX, OURS)], [])
    lying.sees(observed(receipt(transfer_log(OURS, 5, payer=OTHER))))
    with pytest.raises(ProofMissing, match="not seen"):
        await find_payers(pool(honest, lying), payments)
    lying.down = True
    with pytest.raises(ChainDown):
        await find_payers(pool(honest, lying), payments)
    with pytest.raises(ProofMissing, match="not seen"):
        await find_payers(pool(honest), TokenPayments([PaidTransfer(TX2, OURS)], []))


async def test_a_signature_of_the_exact_text_by_one_of_the_accounts_counts():
    assert await find_signer(pool(Server()), REFUND, signed(), [OTHER, SIGNER]) == SIGNER
    for text, signature, accounts in (
        (REFUND + " ", signed(), [SIGNER]),
        (REFUND, signed(), [OTHER]),
        (REFUND, signed(), []),
        (REFUND, "0x12", [SIGNER]),
        (REFUND, "no hex", [SIGNER]),
    ):
        with pytest.raises(ProofMissing):
            await find_signer(pool(Server()), text, signature, accounts)


async def test_the_word_of_a_contract_needs_two_servers_that_agree():
    one, two = Server(signed={OTHER}), Server(signed={OTHER})
    assert await find_signer(pool(one, two), REFUND, signed(), [OTHER]) == OTHER
    with pytest.raises(ProofMissing):
        await find_signer(pool(one), REFUND, signed(), [OTHER])
    two.signed.clear()
    with pytest.raises(ProofMissing):
        await find_signer(pool(one, two), REFUND, signed(), [OTHER])
    two.down = True
    with pytest.raises(ChainDown):
        await find_signer(pool(one, two), REFUND, signed(), [OTHER])
