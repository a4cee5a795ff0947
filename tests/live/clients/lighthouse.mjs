// node lighthouse.mjs <chromium> <address>: the four scores of a page on a throttled phone, the audits that cost it points,
// counts of what makes a page slow, and when its largest part is painted, in milliseconds of that phone, as JSON.
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
  const sum = (items, name) => (items ?? []).reduce((total, item) => total + (item[name] ?? 0), 0);
  const { audits } = lhr;
  const counts = {
    requests: audits["network-requests"].details.items.length,
    bytes: sum(audits["network-requests"].details.items, "transferSize"),
    elements: audits["dom-size-insight"].details?.debugData?.totalElements ?? 0,
    blocking: (audits["render-blocking-insight"].details?.items ?? []).length,
    shift: audits["cumulative-layout-shift"].numericValue,
  };
  const paint = Math.round(audits["largest-contentful-paint"].numericValue);
  console.log(JSON.stringify({ address: lhr.finalDisplayedUrl, scores, poor, counts, paint, problem: lhr.runtimeError?.message ?? null }));
} finally {
  await chrome.kill();
}
