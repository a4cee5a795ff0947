// The official x402 client of version 1 pays for a call and for a top-up: `x402v1.mjs URL KEY`. Prints JSON.
import { privateKeyToAccount } from "viem/accounts";
import { wrapFetchWithPayment } from "x402-fetch";
import { key, payTwice } from "./pay_twice.mjs";

const MOST = 5_000_000n;
const wrap = (send) => wrapFetchWithPayment(send, privateKeyToAccount(key), MOST);
await payTwice(wrap, "x-payment", { response: "payment-response", response_1: "x-payment-response" });
