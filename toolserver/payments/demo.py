"""Selling credits on the simulated chain: what the demo sets."""

from pydantic import SecretStr

from toolserver.settings import Payments

HOSTS = ("mainnet.base.org", "base-rpc.publicnode.com")  # which the simulated world stands in for
XPUB = (  # m/44'/60'/7' of the mnemonic that every local chain uses: everybody has its keys
    "xpub6Ce9NcJvTk37JBtr1eY9EsMZtMiNE1eTP4tmjVpfv5jBrmMxag6m2Vx99tzFbrPSgbYYCGJE82UetSJzNurv8JAzgEx2Duh3aa4p5ZW2gHX"
)


def chain_url(world_url: str) -> str:
    """Where the simulated world serves JSON-RPC."""
    return f"{world_url}/u/{HOSTS[0]}/"


def demo_payments(world_url: str) -> Payments:
    """Settings under which credits can be bought in the simulated world."""
    urls = [SecretStr(f"{world_url}/u/{host}/") for host in HOSTS]
    return Payments(enabled=True, rpc_urls=urls, xpub=SecretStr(XPUB))
