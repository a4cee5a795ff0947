// Make free and paid calls, and handle a refusal: `node dist/example.js ADDRESS [TOKEN]`, after `npm run build`.
import { ToolClient, ToolError } from "./client.ts";

declare const process: { argv: string[] }; // the only part of Node's types that is needed
const [address = "http://127.0.0.1:8080", token] = process.argv.slice(2);
const client = new ToolClient(address, token ? { token } : {});

const weather = await client.call("weather", { place: "Paris" });
console.log(weather.payload.data?.current.temperature_f, weather.payload.stale);

if (token) {
  const briefing = await client.call("premium_briefing", { include: "btc,earthquakes" });
  console.log(briefing.creditsRemaining, briefing.receipt !== null);
}

try {
  await client.call("payment_confirm", { tx_hash: "0x" + "0".repeat(64), nonce: "svc_buy_" + "0".repeat(32) });
} catch (error) {
  if (!(error instanceof ToolError)) throw error;
  console.log(error.code, error.status);
}
