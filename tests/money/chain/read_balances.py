"""Reads the balances of addresses after a block from a node, one by one. It shares no code with the product."""

import json
import sys
import urllib.request

USDC = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"


def read_balance(url: str, address: str, block: int) -> int:
    """What `balanceOf(address)` returns after a block."""
    call = [{"to": USDC, "data": f"0x70a08231{address.removeprefix('0x').lower():0>64}"}, hex(block)]
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": call}).encode()
    request = urllib.request.Request(url, data=body, headers={"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return int(json.load(answer)["result"], 16)


if __name__ == "__main__":
    node, at, *addresses = sys.argv[1:]
    for line in addresses or sys.stdin.read().split():
        print(line, read_balance(node, line, int(at)))
