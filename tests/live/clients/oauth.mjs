// OAuth by the TypeScript SDK's own code: `oauth.mjs URL CALLBACK`. It prints what a browser shall open, reads the
// address that the browser was sent back to, calls two tools and prints what came of it, one JSON object a line.
import { createInterface } from "node:readline/promises";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, callback] = process.argv.slice(2);
const say = (found) => console.log(JSON.stringify(found));
const state = "a state & more";
const kept = {};

const provider = {
  redirectUrl: callback,
  clientMetadata: { client_name: "TypeScript SDK", redirect_uris: [callback], token_endpoint_auth_method: "none" },
  state: () => state,
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  redirectToAuthorization: (address) => say({ open: address.href }),
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  codeVerifier: () => kept.verifier,
};

const connect = async () => {
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
  const client = new Client({ name: "toolserver-tests", version: "1" });
  await client.connect(transport);
  return client;
};

const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
const refused = await new Client({ name: "toolserver-tests", version: "1" }).connect(transport).then(() => null, (e) => e);
if (!(refused instanceof UnauthorizedError)) throw refused ?? new Error("it was not refused");

const lines = createInterface({ input: process.stdin });
const answer = new URL((await lines[Symbol.asyncIterator]().next()).value).searchParams;
lines.close();
if (answer.get("state") !== state) throw new Error("another state came back");
await transport.finishAuth(answer.get("code"));
const client = await connect();
const call = async (name) => JSON.parse((await client.callTool({ name, arguments: {} })).content[0].text);
const premium = await call("premium_briefing");
const balance = await call("payment_balance");
say({ premium, balance, client: kept.client, iss: answer.get("iss"), expires_in: kept.tokens.expires_in });
const first = kept.tokens;
kept.tokens = { ...first, access_token: `svc_access_${"0".repeat(64)}` }; // as after an hour: it refreshes by itself
const again = await connect();
say({ refreshed: kept.tokens.refresh_token !== first.refresh_token, tools: (await again.listTools()).tools.length });
