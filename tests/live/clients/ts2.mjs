// The second generation of the TypeScript SDK: `ts2.mjs URL TOKEN auto|legacy`. Prints JSON.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [url, token, mode] = process.argv.slice(2);
const seen = (r) => ({ failed: r.isError ?? false, structured: r.structuredContent ?? null, text: r.content[0].text, meta: r._meta ?? null });

async function connected(headers = {}) {
  const client = new Client({ name: "toolserver-tests", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  return client;
}

const found = {};
const client = await connected();
found.version = client.getNegotiatedProtocolVersion();
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
