"""QR codes: of payments and of nothing else, as pictures that load nothing."""

from urllib.parse import quote

import pytest

from rest_bridge.asgi import parse_request
from rest_bridge.pages.qr import draw_qr, serve_qr
from toolserver.errors import InvalidArguments

USDC, WALLET = f"0x{'8' * 40}", f"0x{'a' * 40}"
PAYMENT = f"ethereum:{USDC}@8453/transfer?address={WALLET}&uint256=5000000"


async def asked(query):
    scope = {"path": "/buy/qr.svg", "query_string": query.encode(), "headers": []}
    return await serve_qr(scope, parse_request(scope))


async def test_a_payment_is_a_picture_that_stands_alone_and_is_kept_by_its_reader_only():
    reply = await asked(f"payment={PAYMENT.replace('?', '%3F').replace('&', '%26').replace('=', '%3D')}")
    headers = dict(reply.headers)
    assert headers[b"content-type"] == b"image/svg+xml"
    assert headers[b"cache-control"] == b"private, max-age=3600"
    assert b'xmlns="http://www.w3.org/2000/svg"' in reply.body
    assert WALLET.encode() not in reply.body


@pytest.mark.parametrize("payment", ["", "https://evil.example/", PAYMENT.replace("@8453", ""), PAYMENT + "0" * 17])
async def test_no_other_text_is_drawn(payment):
    with pytest.raises(InvalidArguments, match="EIP-681"):
        await asked(f"payment={payment.replace('?', '%3F').replace('&', '%26').replace('=', '%3D')}")


def test_in_a_page_it_is_markup_without_a_name_space():
    assert draw_qr("ethereum:0x1").startswith("<svg ")
    assert "xmlns" not in draw_qr("ethereum:0x1")


def test_a_code_has_the_smallest_size_that_survives_some_dirt_and_a_narrow_border():
    assert 'viewBox="0 0 25 25"' in draw_qr("x" * 14)  # 21 modules and 2 at each side
    assert 'viewBox="0 0 29 29"' in draw_qr("x" * 15)  # more than level M holds in 21
    assert "<title>Payment as a QR code</title>" in draw_qr("x")


@pytest.mark.parametrize(
    ("payment", "is_drawn"),
    [
        (PAYMENT, True),
        (PAYMENT.replace("5000000", "9" * 16), True),
        (PAYMENT.replace("5000000", "9" * 17), False),
        (PAYMENT.replace("@8453", "@" + "1" * 9), True),
        (PAYMENT.replace("@8453", "@" + "1" * 10), False),
        (PAYMENT.replace(WALLET, WALLET[:-1]), False),
        (PAYMENT + " ", False),
    ],
)
async def test_a_payment_has_addresses_a_chain_and_an_amount_of_their_lengths(payment, is_drawn):
    query = f"payment={quote(payment, safe='')}"
    if is_drawn:
        assert (await asked(query)).status == 200
    else:
        with pytest.raises(InvalidArguments) as refused:
            await asked(query)
        assert refused.value.extra["errors"] == [
            {"loc": "payment", "msg": "must be an EIP-681 transfer", "type": "value_error"}
        ]
