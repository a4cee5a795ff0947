// The first generation of the TypeScript SDK, which checks results hardest: `ts1.mjs URL TOKEN`. Prints JSON.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, token] = process.argv.slice(2);
const seen = (r) => ({ failed: r.isError ?? false, structured: r.structuredContent ?? null, text: r.content[0].text, meta: r._meta ?? null });

async function connected(headers = {}) {
  const client = new Client({ name: "toolserver-tests", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  return client;
}

const found = {};
const client = await connected();
found.tools = (await client.listTools()).tools.map((tool) => tool.name);
found.free = seen(await client.callTool({ name: "sample_echo", arguments: { text: "hé" } }));
found.unpaid = seen(await client.callTool({ name: "sample_oracle", arguments: {} }));
found.wrong = seen(await client.callTool({ name: "sample_echo", arguments: { text: "x".repeat(101) } }));
found.unknown = await client.callTool({ name: "nope" }).then(() => null, (error) => error.code);
await client.close();
const paying = await connected({ Authorization: `Bearer ${token}` });
await paying.listTools();
found.paid = seen(await paying.callTool({ name: "sample_oracle", arguments: {} }));
await paying.close();
console.log(JSON.stringify(found));
