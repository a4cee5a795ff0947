// The official x402 client pays for a call and for a top-up: `x402.mjs URL KEY`. Prints JSON.
import { ExactEvmScheme } from "@x402/evm";
import { wrapFetchWithPaymentFromConfig } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";
import { key, payTwice } from "./pay_twice.mjs";

const schemes = [{ network: "eip155:8453", client: new ExactEvmScheme(privateKeyToAccount(key)) }];
const wrap = (send) => wrapFetchWithPaymentFromConfig(send, { schemes });
await payTwice(wrap, "payment-signature", { response: "payment-response" });
