"""Sells credits on the simulated chain: the settings of the demo, and a purchase to paste into a shell.

All keys behind the demo's addresses are public: those of the mnemonic that every local chain uses.
"""

import msgspec
from pydantic import SecretStr

from toolserver.core.http import HttpClient, Unreachable
from toolserver.errors import ChainUnavailable, InvalidArguments
from toolserver.settings import PaymentSettings, X402Settings

WITHIN_S = 5.0
_JSON = {"content-type": "application/json"}

HOSTS = ("mainnet.base.org", "base-rpc.publicnode.com")  # the RPC servers that the simulated world replaces
XPUB = (  # m/44'/60'/7' of the mnemonic that every local chain uses: its private keys are public
    "xpub6Ce9NcJvTk37JBtr1eY9EsMZtMiNE1eTP4tmjVpfv5jBrmMxag6m2Vx99tzFbrPSgbYYCGJE82UetSJzNurv8JAzgEx2Duh3aa4p5ZW2gHX"
)
PAY_TO = "0xf9b8d95B9e9C17E3d923A68E8773BC323594DBc9"  # m/44'/60'/8'/0/0 of that mnemonic
FACILITATOR = "x402.example"


def chain_url(world_url: str) -> str:
    """Return the URL at which the simulated world serves JSON-RPC."""
    return f"{world_url}/u/{HOSTS[0]}/"


def demo_payments(world_url: str) -> PaymentSettings:
    """Return the settings under which credits can be bought in the simulated world."""
    urls = [SecretStr(f"{world_url}/u/{host}/") for host in HOSTS]
    return PaymentSettings(enabled=True, rpc_urls=urls, xpub=SecretStr(XPUB))


def demo_x402(world_url: str, given: X402Settings | None = None) -> X402Settings:
    """Return the settings under which calls and credits can be paid by x402 in the simulated world.

    What the settings say is kept, on or off, except the facilitator of an earlier world, which
    the operator's shell of a demo names.
    """
    is_said = given is not None and "enabled" in given.model_fields_set
    if given is not None and is_said and not str(given.facilitator_url).endswith(f"/u/{FACILITATOR}"):
        return given
    return X402Settings(enabled=True, facilitator_url=f"{world_url}/u/{FACILITATOR}", pay_to=PAY_TO)


_SEQUENCE = """\
ask() { curl -sS --noproxy '*' -H 'Content-Type: application/json' "$@"; }
field() { python3 -c 'import json,sys; d=json.load(sys.stdin); print(d[sys.argv[1]] if sys.argv[1] in d else d)' "$1"; }

quote=$(ask -d '{"amount_usd": 5}' BASE/api/payment/buy-credits)
wallet=$(printf %s "$quote" | field wallet); memo=$(printf %s "$quote" | field memo)
tx=$(ask -d '{"to": "'"$wallet"'", "amount_usd": 5}' WORLD/_sim/chain/transfer | field tx_hash)
token=$(ask -d '{"tx_hash": "'"$tx"'", "nonce": "'"$memo"'"}' BASE/api/payment/confirm | field token)
echo "paid 5 USDC to $wallet in $tx; the token: $token"
ask -H "Authorization: Bearer $token" BASE/api/payment/balance; echo
"""


def paste_sequence(base_url: str, world_url: str) -> str:
    """Return shell commands that buy credits in a running demo: quote, pay, confirm, use. They need curl and python3.

    The confirmation waits for blocks of the simulated chain, which come as fast as Base's: about eight seconds.
    """
    return _SEQUENCE.replace("BASE", base_url).replace("WORLD", world_url)


async def pay_by_demo_wallet(world_url: str, to: str, amount_usd: float) -> str:
    """Send USDC on the simulated chain from an account whose key is public there, and return the transaction's hash.

    Raises:
        InvalidArguments: the world refuses the payment; the text quotes its reason.
        ChainUnavailable: the world cannot be reached.
    """
    client = HttpClient(world_url)
    body = msgspec.json.encode({"to": to, "amount_usd": amount_usd})
    try:
        answer = await client.ask("POST", "_sim/chain/transfer", body=body, headers=_JSON, within_s=WITHIN_S)
    except Unreachable:
        raise ChainUnavailable("The simulated world cannot be reached.", headers={"Retry-After": "3"}) from None
    finally:
        await client.aclose()
    said = msgspec.json.decode(answer.body)
    if answer.status != 200:
        raise InvalidArguments(f"The simulated world says: {said['error']}", errors=[])
    return str(said["tx_hash"])
