// What both official x402 clients do here: they pay for a call and for a top-up, and what came of it is printed as JSON.
const [url, key] = process.argv.slice(2);
const none = "bnVsbA=="; // null

export { key };

// Pays by `wrap(send)`; the payment that goes along stands in the header `paid`, how it was settled in those of `settled`.
export async function payTwice(wrap, paid, settled) {
  let payment = null;
  const send = (input, init) => {
    const request = new Request(input, init);
    payment = request.headers.get(paid) ?? payment;
    return fetch(request);
  };
  const pay = wrap(send);
  const seen = async (response) => ({
    status: response.status,
    body: await response.json(),
    ...Object.fromEntries(
      Object.entries(settled).map(([name, header]) => [name, JSON.parse(atob(response.headers.get(header) ?? none))]),
    ),
    receipt: response.headers.get("x-service-receipt"),
    payment,
  });
  const call = await seen(await pay(`${url}/api/pro/report?history=30d`));
  const body = JSON.stringify({ amount_usd: 1 });
  const headers = { "content-type": "application/json" };
  const topup = await seen(await pay(`${url}/api/payment/topup`, { method: "POST", headers, body }));
  console.log(JSON.stringify({ call, topup }));
}
