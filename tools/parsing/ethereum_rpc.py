"""Call Ethereum nodes over JSON-RPC: the requests to each host, and which answers are accepted."""

from typing import Any

from toolserver import Keys, Post, SourceChanged, SourceEmpty, SourceLimited, SourceRefused

HOSTS = (
    "https://ethereum-rpc.publicnode.com/",
    "https://eth.drpc.org/",
    "https://gateway.tenderly.co/public/mainnet",
    "https://rpc.flashbots.net/",
)
KEY = "ETH_RPC_URL"
ID = 1
LIMITED_CODES = {-32005, -32016, -32029, 15, 429}  # the public gateways use these numbers


def ask(keys: Keys, method: str, *params: Any) -> list[Post]:
    """Return the same call for every host, in the order in which the hosts are tried."""
    call = {"jsonrpc": "2.0", "id": ID, "method": method, "params": list(params)}
    own = [Post(keys[KEY], json=call, under=KEY)] if KEY in keys else []
    return [*own, *(Post(url, json=call) for url in HOSTS)]


def result(body: Any) -> Any:
    """Return the `result` of our own call.

    Raises:
        SourceLimited, SourceRefused: `error` is set, to an object or a text.
        SourceEmpty: `result` is null, so the node does not know the requested item.
    """
    if error := body.get("error"):
        raise _refusal(error)
    if body["id"] != ID:
        raise SourceChanged(f"id is {body['id']!r:.20}")
    if body["result"] is None:
        raise SourceEmpty("not found")
    return body["result"]


def _refusal(error: Any) -> SourceLimited | SourceRefused:
    """Describe an error without quoting its text: a node may quote the key of its URL."""
    code = error.get("code") if isinstance(error, dict) else None
    text = str(error).lower()
    if code in LIMITED_CODES or any(words in text for words in ("rate limit", "too many", "limit exceeded", "quota")):
        return SourceLimited(f"RPC error {code}")
    return SourceRefused(f"RPC error {code}")


def quantity(text: Any) -> int:
    """Return a hex quantity such as 0x1b as an integer. Raises ValueError, also for a number that is not hex."""
    if not isinstance(text, str) or not text.startswith("0x"):
        raise ValueError(f"not a quantity: {text!r:.40}")
    return int(text, 16)


def address(text: Any) -> str:
    """Return an address in lower case. Raises ValueError."""
    if not isinstance(text, str) or len(text) != 42:
        raise ValueError(f"not an address: {text!r:.60}")
    quantity(text)
    return text.lower()
