// One stack: how it is, and its pages.

import { html, Problem, Status, Tabs, useTitle } from "../parts.js";
import { Events } from "./stack/events.js";
import { HealthPage } from "./stack/health.js";
import { useStack } from "./stack/live.js";
import { Overview } from "./stack/overview.js";
import { Picture } from "./stack/picture.js";
import { RolloutsPage } from "./stack/rollouts.js";

/** Name in the address -> title, and what shows it. */
const PAGES = {
  overview: ["Overview", Overview],
  picture: ["Picture", Picture],
  rollouts: ["Rollouts", RolloutsPage],
  health: ["Health", HealthPage],
  events: ["Events", Events],
};

function Progress({ explanation }) {
  const { done, planned } = explanation.progress ?? {};
  if (!planned || done >= planned) return null;
  const seconds = explanation.estimate?.seconds;
  const left = seconds == null ? "" : `, about ${Math.ceil(seconds)} s left`;
  return html`<p><progress max=${planned} value=${done} aria-label="progress"></progress> ${done} of ${planned}${left}</p>`;
}

export function Stack({ project, name, id, tab = "overview" }) {
  useTitle(name);
  const path = `stacks/${encodeURIComponent(name)}/${encodeURIComponent(id)}`;
  const here = `#/${encodeURIComponent(project)}/${path}`;
  const { found, error, events } = useStack(project, path, id);
  const [, Page] = PAGES[tab] ?? PAGES.overview;
  const up = found?.stack.parent ? null : html`<p><a href=${`#/${encodeURIComponent(project)}/stacks`}>All stacks</a></p>`;
  return html`
    ${up}
    <h1>${name}</h1>
    ${error && html`<${Problem} error=${error} />`}
    ${found &&
    html`<p role="status"><${Status} value=${found.stack.stack_status} /> <span class="quiet">${found.stack.stack_status_reason}</span></p>
      <${Progress} explanation=${found.explanation} />`}
    <${Tabs} here=${here} open=${tab} pages=${Object.entries(PAGES).map(([key, [title]]) => [key, title])} />
    ${found && html`<${Page} project=${project} path=${path} here=${here} found=${found} events=${events} />`}
  `;
}
