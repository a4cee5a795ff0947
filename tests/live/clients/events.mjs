// The AI SDK's client of MCP Events: `events.mjs URL TOKEN`. Subscribes, is woken, verifies, ends. Prints JSON.
import http from "node:http";
import { createMCPClient, experimental_createMCPEventWebhook } from "@ai-sdk/mcp";

const [url, token] = process.argv.slice(2);
const rows = new Map();
const store = {
  get: async (key) => rows.get(key),
  getById: async (id) => [...rows.values()].find((row) => row.id === id),
  set: async (row) => void rows.set(row.key, row),
  update: async (key, patch) => void rows.set(key, { ...rows.get(key), ...patch }),
  delete: async (key) => void rows.delete(key),
};
let woken;
const event = new Promise((resolve) => (woken = resolve));
const found = { statuses: [], complaints: [] };
const take = experimental_createMCPEventWebhook({
  store,
  onEvent: async (arrived) => woken(arrived),
  onError: (error) => found.complaints.push(String(error)),
});
const receipts = [];
const receiver = http.createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const answer = await take(
    new Request(`http://127.0.0.1${request.url}`, { method: request.method, headers: request.headers, body }),
  );
  found.statuses.push(answer.status);
  if (request.headers["x-service-receipt-id"]) receipts.push([request.headers["x-service-receipt-id"], body.toString()]);
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.end(Buffer.from(await answer.arrayBuffer()));
});
await new Promise((resolve) => receiver.listen(0, "127.0.0.1", resolve));
const client = await createMCPClient({
  transport: { type: "http", url, headers: { Authorization: `Bearer ${token}` } },
  experimental_events: { store },
});
const events = client.experimental_events;
found.events = (await events.list()).events.map((listed) => listed.name);
const callback = `http://127.0.0.1:${receiver.address().port}/hook?k=%7E1`;
const delivery = { mode: "webhook", url: callback, allowInsecureLocalhost: true };
const wanted = { name: "price.crossed", arguments: { symbol: "BTC", below: 1e9 }, delivery };
found.subscribed = await events.subscribe(wanted);
const { subscription, event: arrived } = await event;
found.woken = { id: subscription.id, event: arrived };
found.renewed = await events.refresh({ id: found.subscribed.id });
await events.unsubscribe({ id: found.subscribed.id });
found.left = rows.size;
found.refused = await events
  .subscribe({ name: "price.crossed", arguments: { symbol: "BTC" }, delivery })
  .then(() => null, (error) => error.code ?? error.message);
await client.close();
receiver.close();
receiver.closeAllConnections();
[[found.receipt, found.body]] = receipts;
console.log(JSON.stringify(found));
