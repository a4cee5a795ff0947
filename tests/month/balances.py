"""Reads what addresses held after given blocks from a node. It shares no code with the product.

    python -m tests.month.balances NODE BLOCK[,BLOCK…] [ADDRESS…]

Addresses that are not named are read from stdin. Each line of the output has a block, an address and a balance.
"""

import json
import sys
import urllib.request
from collections.abc import Iterator, Sequence

USDC = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"
TOGETHER = 200  # calls in one request


def read_balance(url: str, address: str, block: int) -> int:
    """What `balanceOf(address)` returns after a block."""
    ((_, _, held),) = read_balances(url, [address], [block])
    return held


def read_balances(url: str, addresses: Sequence[str], blocks: Sequence[int]) -> Iterator[tuple[int, str, int]]:
    """What each address held after each block: block, address, balance."""
    wanted = [(block, address) for block in blocks for address in addresses]
    for start in range(0, len(wanted), TOGETHER):
        part = wanted[start : start + TOGETHER]
        calls = [_call(number, address, block) for number, (block, address) in enumerate(part)]
        body = json.dumps(calls if len(calls) > 1 else calls[0]).encode()
        request = urllib.request.Request(url, data=body, headers={"content-type": "application/json"})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
            said = json.load(answer)
        results = {each["id"]: int(each["result"], 16) for each in (said if isinstance(said, list) else [said])}
        yield from ((block, address, results[number]) for number, (block, address) in enumerate(part))


def _call(number: int, address: str, block: int) -> dict[str, object]:
    data = f"0x70a08231{address.removeprefix('0x').lower():0>64}"
    return {"jsonrpc": "2.0", "id": number, "method": "eth_call", "params": [{"to": USDC, "data": data}, hex(block)]}


if __name__ == "__main__":
    node, numbers, *named = sys.argv[1:]
    for block, address, held in read_balances(
        node, named or sys.stdin.read().split(), list(map(int, numbers.split(",")))
    ):
        print(block, address, held)
