// node lighthouse.mjs <chromium> <address>: the four scores of a page, and the audits that cost it points, as JSON.
import { launch } from "chrome-launcher";
import lighthouse from "lighthouse";

const [program, address] = process.argv.slice(2);
const chrome = await launch({ chromePath: program, chromeFlags: ["--headless=new", "--no-sandbox"], logLevel: "silent" });
try {
  const only = ["performance", "accessibility", "best-practices", "seo"];
  const { lhr } = await lighthouse(address, { port: chrome.port, onlyCategories: only, logLevel: "silent" });
  const scores = {};
  const poor = [];
  for (const [name, category] of Object.entries(lhr.categories)) {
    scores[name] = Math.round(category.score * 100);
    for (const { id, weight } of category.auditRefs) {
      const { score, displayValue } = lhr.audits[id];
      if (weight > 0 && score !== null && score < 1) poor.push(`${name}: ${id} ${score} ${displayValue ?? ""}`.trim());
    }
  }
  console.log(JSON.stringify({ address: lhr.finalDisplayedUrl, scores, poor, problem: lhr.runtimeError?.message ?? null }));
} finally {
  await chrome.kill();
}
