// The frame of the dashboard: which page the address asks for, whose project, and signing in.

import { render } from "./vendor/preact.js";
import { useEffect, useState } from "./vendor/hooks.js";
import { get, keepToken } from "./api.js";
import { html, Problem } from "./parts.js";
import { Cluster } from "./pages/cluster.js";
import { Clusters } from "./pages/clusters.js";
import { Service } from "./pages/service.js";
import { Stack } from "./pages/stack.js";
import { Stacks } from "./pages/stacks.js";

const PROJECT = "default";
/** Name in the address -> title, and what shows it: of the project, and of what follows in the address. */
const PAGES = {
  stacks: ["Stacks", (project, [name, id, tab]) =>
    name && id ? html`<${Stack} key=${id} project=${project} name=${name} id=${id} tab=${tab} />` : html`<${Stacks} project=${project} />`],
  clusters: ["Clusters", (project, [id, tab]) =>
    id ? html`<${Cluster} key=${id} project=${project} id=${id} tab=${tab} />` : html`<${Clusters} key=${project} project=${project} />`],
  service: ["Service", (project) => html`<${Service} key=${project} project=${project} />`],
};

function place() {
  let parts = [];
  try {
    parts = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  } catch {
    // An address with a stray % leads to no page: the stacks are shown.
  }
  const [project, page, ...below] = parts;
  const known = Object.hasOwn(PAGES, page);
  return { project: project || localStorage.getItem("project") || PROJECT, page: known ? page : "stacks", below: known ? below : [] };
}

function usePlace() {
  const [found, setFound] = useState(place);
  useEffect(() => {
    const moved = () => setFound(place());
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  return found;
}

/** Whether the project may be seen; asked once, so that pages need not. */
function useAccess(project, turn) {
  const [found, setFound] = useState({});
  useEffect(() => {
    let mine = true;
    get(project, "stacks", { limit: 1 }).then(
      () => mine && setFound({ project }),
      (error) => mine && setFound({ project, error }),
    );
    return () => {
      mine = false;
    };
  }, [project, turn]);
  return found.project === project ? found : {};
}

function SignIn({ error, done }) {
  const [token, setToken] = useState("");
  const send = (event) => {
    event.preventDefault();
    keepToken(token.trim());
    done();
  };
  return html`
    <h1>Sign in</h1>
    <${Problem} error=${error} />
    <p>This service asks for a token: <code>openstack token issue -f value -c id</code> gives you one. It stays in this window.</p>
    <form onSubmit=${send}>
      <label>Token <input type="password" autocomplete="off" value=${token} onInput=${(event) => setToken(event.target.value)} required /></label>
      <button>Sign in</button>
    </form>
  `;
}

function ProjectChoice({ project, page }) {
  const send = (event) => {
    event.preventDefault();
    const chosen = new FormData(event.target).get("project").trim();
    if (!chosen) return;
    localStorage.setItem("project", chosen);
    location.hash = `#/${encodeURIComponent(chosen)}/${page}`;
  };
  return html`<form onSubmit=${send}>
    <label>Project <input name="project" value=${project} key=${project} size="12" /></label> <button>Show</button>
  </form>`;
}

function App() {
  const { project, page, below } = usePlace();
  const [turn, setTurn] = useState(0);
  const access = useAccess(project, turn);
  const here = `#/${encodeURIComponent(project)}`;
  const denied = access.error && (access.error.status === 401 || access.error.status === 403);
  return html`
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>To the content</a>
    <header class="top">
      <strong>Homeostat</strong>
      <nav class="pages" aria-label="pages">
        ${Object.entries(PAGES).map(([key, [title]]) => html`<a href=${`${here}/${key}`} aria-current=${key === page ? "page" : null}>${title}</a>`)}
      </nav>
      <${ProjectChoice} project=${project} page=${page} />
    </header>
    <main id="main" tabindex="-1">
      ${denied ? html`<${SignIn} error=${access.error} done=${() => setTurn(turn + 1)} />` : access.project ? PAGES[page][1](project, below) : html`<p class="quiet">One moment…</p>`}
    </main>
  `;
}

const root = document.getElementById("app");
root.replaceChildren();
render(html`<${App} />`, root);
