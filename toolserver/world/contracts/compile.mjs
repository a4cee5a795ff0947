// Compiles the contracts beside it into compiled.json. Run after a change:
//   npm install --ignore-scripts && node compile.mjs
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import solc from "solc";

const folder = new URL("./", import.meta.url);
const names = readdirSync(folder).filter((name) => name.endsWith(".sol")).sort();
const sources = Object.fromEntries(names.map((name) => [name, { content: readFileSync(new URL(name, folder), "utf8") }]));
const settings = {
  optimizer: { enabled: true, runs: 200 },
  evmVersion: "paris",
  metadata: { bytecodeHash: "none", appendCBOR: false },
  outputSelection: { "*": { "*": ["evm.bytecode.object", "evm.deployedBytecode.object"] } },
};
const made = JSON.parse(solc.compile(JSON.stringify({ language: "Solidity", sources, settings })));
for (const said of made.errors ?? []) {
  console.error(said.formattedMessage);
}
if ((made.errors ?? []).some((said) => said.severity === "error")) {
  process.exit(1);
}
const contracts = {};
for (const found of Object.values(made.contracts)) {
  for (const [name, { evm }] of Object.entries(found)) {
    contracts[name] = { bytecode: "0x" + evm.bytecode.object, runtime: "0x" + evm.deployedBytecode.object };
  }
}
const hash = createHash("sha256");
names.forEach((name) => hash.update(sources[name].content));
const file = { compiler: solc.version(), sources_sha256: hash.digest("hex"), contracts };
writeFileSync(new URL("compiled.json", folder), JSON.stringify(file, null, 2) + "\n");
