// The official x402 client pays for a call and for a top-up: `x402.mjs URL KEY`. Prints JSON.
import { ExactEvmScheme } from "@x402/evm";
import { wrapFetchWithPaymentFromConfig } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";

const [url, key] = process.argv.slice(2);
const schemes = [{ network: "eip155:8453", client: new ExactEvmScheme(privateKeyToAccount(key)) }];
let payment = null;
const send = (input, init) => {
  const request = new Request(input, init);
  payment = request.headers.get("payment-signature") ?? payment;
  return fetch(request);
};
const pay = wrapFetchWithPaymentFromConfig(send, { schemes });
const seen = async (response) => ({
  status: response.status,
  body: await response.json(),
  response: JSON.parse(atob(response.headers.get("payment-response") ?? "bnVsbA==")),
  receipt: response.headers.get("x-service-receipt"),
  payment,
});

const found = {};
found.call = await seen(await pay(`${url}/api/pro/report?history=30d`));
const body = JSON.stringify({ amount_usd: 1 });
const headers = { "content-type": "application/json" };
found.topup = await seen(await pay(`${url}/api/payment/topup`, { method: "POST", headers, body }));
console.log(JSON.stringify(found));
