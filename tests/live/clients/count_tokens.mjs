// Counts tokens of o200k_base: reads a file with a JSON list of texts, prints the list of their counts.
import { readFileSync } from "node:fs";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";

const texts = JSON.parse(readFileSync(process.argv[2], "utf8"));
console.log(JSON.stringify(texts.map((text) => countTokens(text))));
