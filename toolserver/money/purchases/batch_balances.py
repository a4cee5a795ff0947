"""Reads many balances in one request, by code that runs in `eth_call`, so that no helper contract is deployed.

The code is sent as the creation of a contract, followed by the addresses as words. It calls `balanceOf` of the token
for each address and returns the balances as words. Nodes limit the result (EIP-170: 24,576 bytes), hence `BATCH`.
"""

from toolserver.money.purchases.units import USDC

BATCH = 500
_LENGTH = 0x57  # of the code below, after which the addresses begin

_CODE = (
    "6370a0823160e01b600052"  # memory[0:4] = selector of balanceOf(address)
    "6000"  # i = 0, counted in bytes
    "5b803860{length}90031115604d57"  # while i < size of the addresses, else go to 4d
    "60208160{length}01600439"  # memory[4:36] = the address at i
    "6020816040016024600073{token}5afa"  # memory[64+i:] = token.balanceOf(address), by STATICCALL
    "15605157"  # go to 51 if the call failed
    "602001600d56"  # i += 32, and again
    "5b6040f3"  # 4d: return memory[64:64+i]
    "5b60006000fd"  # 51: revert
)


def balances_code() -> bytes:
    """Return the code that reads balances of USDC. The caller appends 32 bytes for each address."""
    text = _CODE.format(length=f"{_LENGTH:02x}", token=USDC.hex())
    code = bytes.fromhex(text)
    if len(code) != _LENGTH:
        raise AssertionError(f"the code has {len(code)} bytes")
    return code
