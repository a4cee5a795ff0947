// Uses the browser's wallet (EIP-1193) to pay an offer and to sign for a payment.

const BASE = "0x2105"; // 8453
const TRANSFER = "0xa9059cbb"; // transfer(address,uint256)

/** Return the wallet, or null if the browser has none. */
export function findWallet() {
  return globalThis.ethereum?.request ? globalThis.ethereum : null;
}

/**
 * Pay an offer of the service. Resolves to the transaction hash. If all purchases share one address, the commitment
 * appended to the arguments shows which purchase is paid; otherwise it does no harm.
 */
export async function payByWallet(wallet, { wallet: to, amount_atomic, token_contract, memo_commitment }) {
  const [from] = await wallet.request({ method: "eth_requestAccounts" });
  await wallet.request({ method: "wallet_switchEthereumChain", params: [{ chainId: BASE }] });
  const data = TRANSFER + word(to) + word(BigInt(amount_atomic).toString(16)) + memo_commitment.slice(2);
  return wallet.request({ method: "eth_sendTransaction", params: [{ from, to: token_contract, data, value: "0x0" }] });
}

/** Resolve to the signature of the account that paid over a text (EIP-191). */
export async function signByWallet(wallet, text) {
  const [from] = await wallet.request({ method: "eth_requestAccounts" });
  const bytes = [...new TextEncoder().encode(text)].map((one) => one.toString(16).padStart(2, "0")).join("");
  return wallet.request({ method: "personal_sign", params: [`0x${bytes}`, from] });
}

function word(digits) {
  return digits.replace(/^0x/, "").toLowerCase().padStart(64, "0");
}
