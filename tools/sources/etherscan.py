"""Read Etherscan's gas oracle for Ethereum (JSON, needs `ETHERSCAN_API_KEY`).

https://docs.etherscan.io/api-reference/endpoint/gasoracle
"""

from typing import Any, NamedTuple

from tools.parsing.fields import optional, positive
from tools.sources.hosts import HOUR, other
from toolserver import Get, Keys, Licence, Source, SourceChanged, SourceError, SourceLimited, SourceRefused

API = "https://api.etherscan.io/v2/api"
LICENCE = Licence("no", "Powered by Etherscan.io APIs", "https://etherscan.io/terms")


class GasOracle(NamedTuple):
    """The price of gas in gwei, base fee included, as of a block."""

    safe_gwei: float
    propose_gwei: float
    fast_gwei: float
    base_fee_gwei: float | None
    block: int


def request(query: None, keys: Keys) -> Get | None:
    key = keys.get("ETHERSCAN_API_KEY")
    if not key:
        return None
    return Get(API, params={"chainid": "1", "module": "gastracker", "action": "gasoracle", "apikey": key})


def parse(body: Any, query: None) -> GasOracle:
    """Return the oracle's prices. A text in place of the object is an error message, with status 200."""
    result = body["result"]
    if body["status"] != "1" or not isinstance(result, dict):
        raise _failure(str(result).lower())
    return GasOracle(
        safe_gwei=positive(result["SafeGasPrice"]),
        propose_gwei=positive(result["ProposeGasPrice"]),
        fast_gwei=positive(result["FastGasPrice"]),
        base_fee_gwei=optional(positive, result.get("suggestBaseFee")),
        block=int(positive(result["LastBlock"])),
    )


def _failure(text: str) -> SourceError:
    """Return the error in our own words, because the text of the upstream may contain the key."""
    if "rate limit" in text:
        return SourceLimited("rate limit")
    return SourceRefused("API key") if "api key" in text else SourceChanged("no oracle")


GAS_ORACLE = Source(
    "Etherscan.gas_oracle",
    request,
    parse,
    licence=LICENCE,
    hosts=other("etherscan"),
    fresh_s=15,
    moves=lambda oracle: oracle.block,
    keep_s=HOUR,
    timeout_s=6,
)
