// node read_feed.mjs <address>: an Atom feed as somebody else's parser reads it, as JSON.
import { detectAtomFeed, parseAtomFeed } from "feedsmith";

const answer = await fetch(process.argv[2]);
const text = await answer.text();
console.log(JSON.stringify({ type: answer.headers.get("content-type"), atom: detectAtomFeed(text), feed: parseAtomFeed(text) }));
