// A chat of the TypeScript SDK that can open addresses: `elicit.mjs URL TOKEN TOOL`. It prints what a person shall open,
// reads what the person says (accept, decline or cancel), and prints what came of the call, one JSON object a line.
import { createInterface } from "node:readline/promises";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [url, token, tool] = process.argv.slice(2);
const say = (found) => console.log(JSON.stringify(found));
const lines = createInterface({ input: process.stdin });
const answers = lines[Symbol.asyncIterator]();

const client = new Client(
  { name: "toolserver-tests", version: "1" },
  { versionNegotiation: { mode: "auto" }, capabilities: { elicitation: { url: {} } } },
);
client.setRequestHandler("elicitation/create", async ({ params }) => {
  say({ mode: params.mode, open: params.url, message: params.message });
  return { action: (await answers.next()).value };
});
const headers = token ? { Authorization: `Bearer ${token}` } : {};
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
const result = await client.callTool({ name: tool, arguments: {} }, { timeout: 120_000 });
say({ failed: result.isError ?? false, answer: JSON.parse(result.content[0].text) });
lines.close();
await client.close();
