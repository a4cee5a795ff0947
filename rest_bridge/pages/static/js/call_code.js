// Writes one call as code: curl, Python, TypeScript, an MCP message and LangChain, with exactly the arguments in the form.

/** Return [label, code, language] rows. `tool` is the description in the page, `given` the arguments, `site` the public address. */
export function writeCode(tool, given, site) {
  const call = placeArguments(tool, given);
  const address = site + call.path + (call.query.size ? `?${call.query}` : "");
  const authorized = tool.auth === "bearer"; // the token comes from the environment variable TOOLSERVER_TOKEN
  return [
    ["curl", curl(tool.method, address, call.body, authorized), "sh"],
    ["Python", python(tool.method, site + call.path, call, authorized), "python"],
    ["TypeScript", typescript(tool.method, address, call.body, authorized), "js"],
    ["MCP", mcp(tool.name, given), "json"],
    ["LangChain", langchain(tool.name, site, given, authorized), "python"],
  ];
}

/** Return where each argument goes: {path, query, body}. */
export function placeArguments(tool, given) {
  let path = tool.path;
  const query = new URLSearchParams();
  let body = tool.takes_body ? {} : undefined;
  for (const [name, value] of Object.entries(given)) {
    const place = tool.places[name];
    if (place === "path") path = path.replace(`{${name}}`, encodeURIComponent(value));
    else if (place === "query") query.set(name, typeof value === "object" ? [value].flat().join(",") : String(value));
    else body[name] = value;
  }
  return { path, query, body };
}

function curl(method, address, body, authorized) {
  const lines = [`curl ${method === "GET" || method === "POST" ? "" : `-X ${method} `}'${quoteShell(address)}'`];
  if (authorized) lines.push('-H "Authorization: Bearer $TOOLSERVER_TOKEN"');
  if (body !== undefined) lines.push("-H 'Content-Type: application/json'", `-d '${quoteShell(JSON.stringify(body))}'`);
  return lines.join(" \\\n  ");
}

function quoteShell(words) {
  return words.replaceAll("'", "'\\''");
}

function python(method, address, { query, body }, authorized) {
  const more = [];
  if (query.size) more.push(`    params=${toPython(Object.fromEntries(query))},`);
  if (body !== undefined) more.push(`    json=${toPython(body)},`);
  if (authorized) more.push(`    headers={"Authorization": "Bearer " + os.environ["TOOLSERVER_TOKEN"]},`);
  more.push("    timeout=30,");
  const open = `answer = httpx.request(\n    "${method}",\n    ${JSON.stringify(address)},`;
  return [...(authorized ? ["import os", ""] : []), "import httpx", "", open, ...more, ")", "answer.raise_for_status()", "print(answer.json())"].join("\n");
}

function toPython(value) {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (Array.isArray(value)) return `[${value.map(toPython).join(", ")}]`;
  if (typeof value === "object") {
    return `{${Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${toPython(one)}`).join(", ")}}`;
  }
  return JSON.stringify(value);
}

function typescript(method, address, body, authorized) {
  const headers = [];
  if (authorized) headers.push("Authorization: `Bearer ${process.env.TOOLSERVER_TOKEN}`");
  if (body !== undefined) headers.push('"Content-Type": "application/json"');
  const options = [];
  if (method !== "GET") options.push(`  method: "${method}",`);
  if (headers.length) options.push(`  headers: { ${headers.join(", ")} },`);
  if (body !== undefined) options.push(`  body: JSON.stringify(${JSON.stringify(body)}),`);
  const asked = options.length ? `fetch(${JSON.stringify(address)}, {\n${options.join("\n")}\n})` : `fetch(${JSON.stringify(address)})`;
  return `const answer = await ${asked};\nif (!answer.ok) throw new Error(await answer.text());\nconsole.log(await answer.json());`;
}

function mcp(name, given) {
  const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: given } };
  return JSON.stringify(message, null, 2);
}

function langchain(name, site, given, authorized) {
  const headers = authorized ? ', "headers": {"Authorization": "Bearer " + os.environ["TOOLSERVER_TOKEN"]}' : "";
  return `# pip install langchain-mcp-adapters
import asyncio${authorized ? "\nimport os" : ""}

from langchain_mcp_adapters.client import MultiServerMCPClient

url = ${JSON.stringify(`${site}/api/mcp?tools=${name}`)}
server = {"transport": "streamable_http", "url": url${headers}}


async def main():
    tools = await MultiServerMCPClient({"toolserver": server}).get_tools()
    tool = next(tool for tool in tools if tool.name == ${JSON.stringify(name)})
    print(await tool.ainvoke(${toPython(given)}))


asyncio.run(main())`;
}
