// The frame of the dashboard: which page the address asks for, whose project, and signing in.

import { render } from "./vendor/preact.js";
import { useEffect, useState } from "./vendor/hooks.js";
import { get, keepToken } from "./api.js";
import { html, Problem } from "./parts.js";
import { Stack } from "./pages/stack.js";
import { Stacks } from "./pages/stacks.js";

const PROJECT = "default";

function place() {
  const parts = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  const [project = "", page = "stacks", name, id, tab] = parts;
  return { project: project || localStorage.getItem("project") || PROJECT, page, name, id, tab };
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

function ProjectChoice({ project }) {
  const send = (event) => {
    event.preventDefault();
    const chosen = new FormData(event.target).get("project").trim();
    if (!chosen) return;
    localStorage.setItem("project", chosen);
    location.hash = `#/${encodeURIComponent(chosen)}/stacks`;
  };
  return html`<form onSubmit=${send}>
    <label>Project <input name="project" value=${project} key=${project} size="12" /></label> <button>Show</button>
  </form>`;
}

function App() {
  const { project, name, id, tab } = usePlace();
  const [turn, setTurn] = useState(0);
  const access = useAccess(project, turn);
  const page = name && id ? html`<${Stack} key=${id} project=${project} name=${name} id=${id} tab=${tab} />` : html`<${Stacks} project=${project} />`;
  const denied = access.error && (access.error.status === 401 || access.error.status === 403);
  return html`
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>To the content</a>
    <header class="top">
      <strong>Homeostat</strong>
      <nav aria-label="pages"><a href=${`#/${encodeURIComponent(project)}/stacks`}>Stacks</a></nav>
      <${ProjectChoice} project=${project} />
    </header>
    <main id="main" tabindex="-1">
      ${denied ? html`<${SignIn} error=${access.error} done=${() => setTurn(turn + 1)} />` : access.project ? page : html`<p class="quiet">One moment…</p>`}
    </main>
  `;
}

const root = document.getElementById("app");
root.replaceChildren();
render(html`<${App} />`, root);
