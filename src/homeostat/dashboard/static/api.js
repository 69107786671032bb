// Requests to the API that has served this page. A token is kept for this window alone, and never in an address.

const TOKEN = "token";

/** An answer that says no. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function keepToken(token) {
  token ? sessionStorage.setItem(TOKEN, token) : sessionStorage.removeItem(TOKEN);
}

function headers(more) {
  const token = sessionStorage.getItem(TOKEN);
  return { Accept: "application/json", ...(token ? { "X-Auth-Token": token } : {}), ...more };
}

// The API is where the page is, whatever path a proxy has put before both.
const BASE = new URL("..", new URL(".", location.href));

function address(path, query) {
  const found = new URL(path, BASE);
  for (const [name, value] of Object.entries(query ?? {})) found.searchParams.set(name, value);
  return found;
}

const below = (project, path) => `v1/${encodeURIComponent(project)}/${path}`;

async function answered(path, query, options) {
  const answer = await fetch(address(path, query), { redirect: "follow", ...options });
  if (answer.ok) return answer;
  let message = `${answer.status} ${answer.statusText}`;
  try {
    message = (await answer.json()).error.message;
  } catch {
    // It is no fault of the API: a proxy may have answered.
  }
  throw new Refused(answer.status, message);
}

async function changed(method, path, body, more, query) {
  const options = { method, headers: headers({ "Content-Type": "application/json", ...more }) };
  const answer = await answered(path, query, body === undefined ? options : { ...options, body: JSON.stringify(body) });
  const text = await answer.text();
  return { value: text ? JSON.parse(text) : null, tag: answer.headers.get("ETag") };
}

/** The JSON of a GET. */
export async function get(project, path, query) {
  return (await answered(below(project, path), query, { headers: headers() })).json();
}

/** What a GET gives as text for people: YAML. */
export async function getText(project, path) {
  return (await answered(below(project, path), {}, { headers: headers({ Accept: "application/yaml" }) })).text();
}

/** The JSON of an answer to a request that changes something; null where there is none. */
export async function send(method, project, path, body, query) {
  return (await changed(method, below(project, path), body, {}, query)).value;
}

/**
 * As `send`, for one revision of a stack: refused if the stack has moved since.
 *
 * @param match - the `tag` of an earlier answer, which was of that revision; null for any
 * @returns the `value` of the answer, and its own `tag`
 */
export async function sendFor(match, method, project, path, body, query) {
  return changed(method, below(project, path), body, match ? { "If-Match": match } : {}, query);
}

// The Clustering API names no project in its paths: a header does. Another one says which of its forms is understood.
const clustering = (project) => ({ "X-Project-Id": project, "OpenStack-API-Version": "clustering 1.14" });

/** As `get`, of the Clustering API. */
export async function getClustering(project, path, query) {
  return (await answered(`clustering/v1/${path}`, query, { headers: headers(clustering(project)) })).json();
}

/** As `send`, to the Clustering API. */
export async function sendClustering(method, project, path, body) {
  return (await changed(method, `clustering/v1/${path}`, body, clustering(project))).value;
}

/**
 * Follow the events of a stack as they happen, until `signal` ends it.
 *
 * @param path - of the events
 * @param query - of the request
 * @param after - id of the last event that is known
 * @param take - called with each event
 * @returns whether no event will ever follow
 */
export async function follow(project, path, query, after, take, signal) {
  const accept = headers({ Accept: "text/event-stream" });
  const answer = await answered(below(project, path), after ? { ...query, marker: after } : query, { headers: accept, signal });
  if (answer.status === 204) return true;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return false;
    text += value.replaceAll("\r\n", "\n");
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const data = block.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim());
      if (data.length) take(JSON.parse(data.join("\n")));
    }
  }
}
