// Serve one tool by the TypeScript SDK, stateless and with JSON answers, as its documentation shows.
// PAYLOAD names the file with the answer, which is sent as text and as structured content.
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node";
import { McpServer } from "@modelcontextprotocol/server";

const text = readFileSync(process.env.PAYLOAD, "utf8");
const structuredContent = JSON.parse(text);

function makeServer() {
  const server = new McpServer({ name: "peer", version: "1.0.0" });
  server.registerTool("btc_price", { description: "The bitcoin price." }, async () => ({
    content: [{ type: "text", text }],
    structuredContent,
  }));
  return server;
}

const http = createServer(async (request, response) => {
  const transport = new NodeStreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
  const server = makeServer();
  response.on("close", () => server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response);
});

http.listen(0, "127.0.0.1", () => {
  console.log(JSON.stringify({ base_url: `http://127.0.0.1:${http.address().port}` }));
});
