"""Names the chain and the token in which payments are made."""

from toolserver.money.purchases.credit_price import ATOMIC

CHAIN_ID = 8453
NETWORK = f"eip155:{CHAIN_ID}"
CHAIN = "base"
USDC_TEXT = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
USDC = bytes.fromhex(USDC_TEXT[2:])
DECIMALS = 6
LEAST = ATOMIC  # the smallest purchase, 1 USD
