// The official x402 client of version 1 pays for a call and for a top-up: `x402v1.mjs URL KEY`. Prints JSON.
import { privateKeyToAccount } from "viem/accounts";
import { wrapFetchWithPayment } from "x402-fetch";

const [url, key] = process.argv.slice(2);
const MOST = 5_000_000n;
let payment = null;
const send = (input, init) => {
  const request = new Request(input, init);
  payment = request.headers.get("x-payment") ?? payment;
  return fetch(request);
};
const pay = wrapFetchWithPayment(send, privateKeyToAccount(key), MOST);
const seen = async (response) => ({
  status: response.status,
  body: await response.json(),
  response: JSON.parse(atob(response.headers.get("payment-response") ?? "bnVsbA==")),
  response_1: JSON.parse(atob(response.headers.get("x-payment-response") ?? "bnVsbA==")),
  receipt: response.headers.get("x-service-receipt"),
  payment,
});

const found = {};
found.call = await seen(await pay(`${url}/api/pro/report?history=30d`));
const body = JSON.stringify({ amount_usd: 1 });
const headers = { "content-type": "application/json" };
found.topup = await seen(await pay(`${url}/api/payment/topup`, { method: "POST", headers, body }));
console.log(JSON.stringify(found));
