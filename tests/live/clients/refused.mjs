// The first generation of the TypeScript SDK, which checks results hardest: `refused.mjs URL CALLS`, where CALLS is a JSON
// list of names and arguments. Prints the names that it lists and what a caller gets to read of each call, as JSON.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, calls] = process.argv.slice(2);
const client = new Client({ name: "toolserver-tests", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const texts = [];
for (const [name, args] of JSON.parse(calls)) {
  const read = await client.callTool({ name, arguments: args }).then((r) => r.content[0].text, (error) => String(error));
  texts.push(read);
}
await client.close();
console.log(JSON.stringify({ tools, texts }));
