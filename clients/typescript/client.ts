// A small client on `fetch`, for Node 20 and later, Deno, Bun and browsers. The types of the tools are in tools.ts.
import type { Tools } from "./tools.ts";

type Place = "path" | "query" | "body";
interface Route { method: string; path: string; auth: "none" | "bearer"; arguments: Record<string, Place> }

/** `body` is the text of the response, which the receipt of a paid call covers. */
export interface ToolAnswer<Payload> {
  payload: Payload;
  body: string;
  headers: Headers;
  receipt: string | null;
  creditsRemaining: number | null;
}

/** A refused call: `code` is one of the service's error codes, `body` the whole error. */
export class ToolError extends Error {
  readonly code: string;
  readonly retryAfterSeconds: number | null;
  constructor(readonly status: number, readonly body: Record<string, unknown>) {
    super(String(body["detail"] ?? body["error"]));
    this.name = "ToolError";
    this.code = String(body["error"]);
    this.retryAfterSeconds = typeof body["retry_after_seconds"] === "number" ? body["retry_after_seconds"] : null;
  }
}

/** The service did not send an answer of its own: another server, a broken body, or an address elsewhere. */
export class NotFromService extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "NotFromService";
  }
}

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE"], mostBody = 16 * 1024 * 1024;

/** After an origin, such a path cannot change the origin. */
const ownPath = /^\/(?:[A-Za-z0-9._~/-]|\{[a-z0-9_]+\})*$/;

/** The text of a body of at most 16 MB. */
async function readText(response: Response): Promise<string> {
  const parts: string[] = [], decoder = new TextDecoder();
  let size = 0;
  const reader = response.body?.getReader();
  while (reader !== undefined) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.byteLength;
    if (size > mostBody) {
      await reader.cancel();
      throw new NotFromService(`the answer is larger than ${mostBody} bytes`);
    }
    parts.push(decoder.decode(value, { stream: true }));
  }
  return parts.join("") + decoder.decode();
}

function readObject(text: string, status: number): Record<string, unknown> {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw new NotFromService(`status ${status}, without JSON`, { cause: error });
  }
  if (typeof content !== "object" || content === null || Array.isArray(content))
    throw new NotFromService(`status ${status}, without a JSON object`);
  return content as Record<string, unknown>;
}

export interface ClientOptions {
  /** The bearer token that pays for calls. It is sent only over https, or on this machine. */
  token?: string;
  /** The number of retries, for calls that are safe to repeat. */
  retries?: number;
  /** The longest time that a call waits when the service asks for a pause. */
  patienceSeconds?: number;
  fetch?: typeof fetch;
}

/** Arguments may be left out entirely when a tool requires none. */
type Given<Arguments> = {} extends Arguments ? [arguments_?: Arguments, key?: string] : [arguments_: Arguments, key?: string];

export class ToolClient {
  private routes: Promise<Record<string, Route>> | undefined;
  private readonly base: string;

  constructor(baseUrl: string, private readonly options: ClientOptions = {}) {
    this.base = baseUrl.replace(/\/api\/mcp$/, "").replace(/\/$/, "");
    const { protocol, hostname } = new URL(this.base);
    if (options.token && protocol !== "https:" && !["localhost", "127.0.0.1", "[::1]"].includes(hostname))
      throw new Error(`${baseUrl} must begin with https://, because the token is sent to it`);
  }

  /** Call a tool. Paid calls with the same `key` are charged once; without one, each call gets its own key. */
  async call<Name extends keyof Tools>(
    name: Name,
    ...[given = {} as Tools[Name]["arguments"], key]: Given<Tools[Name]["arguments"]>
  ): Promise<ToolAnswer<Tools[Name]["payload"]>> {
    const routes = await (this.routes ??= this.readRoutes());
    const route = Object.hasOwn(routes, name) ? routes[name] : undefined;
    if (route === undefined) throw new ToolError(404, { error: "not_found", detail: `The service has no tool called ${name}` });
    const response = await this.send(...this.write(route, given, key));
    const body = await readText(response), credits = response.headers.get("x-credits-remaining");
    return {
      payload: readObject(body, response.status) as unknown as Tools[Name]["payload"],
      body,
      headers: response.headers,
      receipt: response.headers.get("x-service-receipt"),
      creditsRemaining: credits === null ? null : Number(credits),
    };
  }

  private async readRoutes(): Promise<Record<string, Route>> {
    try {
      const answer = await this.send(`${this.base}/api/llm-tools?format=routes`, { method: "GET" });
      const routes = readObject(await readText(answer), answer.status)["routes"];
      if (typeof routes !== "object" || routes === null) throw new NotFromService("a list of tools without routes");
      return routes as Record<string, Route>;
    } catch (error) {
      this.routes = undefined; // requested again with the next call
      throw error;
    }
  }

  private write(route: Route, given: object, key?: string): [string, RequestInit] {
    if (!ownPath.test(route.path) || !methods.includes(route.method))
      throw new NotFromService("the service lists this tool under an address that is not its own");
    const query = new URLSearchParams(), body: Record<string, unknown> = {};
    const elsewhere: Place = route.method === "POST" || route.method === "PATCH" ? "body" : "query";
    let path = route.path;
    for (const [name, value] of Object.entries(given)) {
      if (value === null || value === undefined) continue;
      const place = route.arguments[name] ?? elsewhere;
      if (place === "path") path = path.replace(`{${name}}`, encodeURIComponent(String(value)));
      else if (place === "query") query.set(name, String(value));
      else body[name] = value;
    }
    const headers: Record<string, string> = { accept: "application/json" };
    if (this.options.token) headers["authorization"] = `Bearer ${this.options.token}`;
    if (this.options.token && route.auth === "bearer") headers["idempotency-key"] = key ?? crypto.randomUUID();
    const more = Object.keys(body).length ? { body: JSON.stringify(body) } : {};
    if ("body" in more) headers["content-type"] = "application/json";
    return [`${this.base}${path}${query.size ? `?${query}` : ""}`, { method: route.method, headers, redirect: "error", ...more }];
  }

  private async send(url: string, init: RequestInit): Promise<Response> {
    const { retries = 2, patienceSeconds = 10, fetch: ask = fetch } = this.options;
    for (let attempt = 0, waited = 0; ; attempt++) {
      let failure: unknown, pause: number | null;
      try {
        const response = await ask(url, init);
        if (response.ok) return response;
        const error = new ToolError(response.status, readObject(await readText(response), response.status));
        failure = error;
        pause = [402, 429, 503].includes(error.status) ? error.retryAfterSeconds : null;
      } catch (error) {
        failure = error;
        pause = init.method === "POST" ? null : 0.25 * 2 ** attempt * (1 + Math.random());
      }
      if (pause === null || attempt === retries || waited + pause > patienceSeconds) throw failure;
      waited += pause;
      await new Promise((resume) => setTimeout(resume, 1000 * (pause ?? 0)));
    }
  }
}
