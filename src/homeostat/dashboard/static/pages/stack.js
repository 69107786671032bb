// One stack: how it is, and its pages.

import { html, Moment, Problem, Status, Tabs, useTitle } from "../parts.js";
import { Change } from "./stack/change.js";
import { Drift } from "./stack/drift.js";
import { Events } from "./stack/events.js";
import { HealthPage } from "./stack/health.js";
import { useStack } from "./stack/live.js";
import { Maintenance } from "./stack/maintenance.js";
import { Overview } from "./stack/overview.js";
import { Picture } from "./stack/picture.js";
import { RolloutsPage } from "./stack/rollouts.js";
import { Template } from "./stack/template.js";

/** Name in the address -> title, and what shows it. */
const PAGES = {
  overview: ["Overview", Overview],
  picture: ["Picture", Picture],
  rollouts: ["Rollouts", RolloutsPage],
  health: ["Health", HealthPage],
  events: ["Events", Events],
  template: ["Template", Template],
  change: ["Change", Change],
  drift: ["Drift", Drift],
  maintenance: ["Maintenance", Maintenance],
};
/** Pages of what is there: a deleted stack has none of them. */
const OF_LIVE = ["change", "drift", "maintenance"];

function Progress({ explanation }) {
  const { done, planned } = explanation.progress ?? {};
  if (!planned || done >= planned) return null;
  const seconds = explanation.estimate?.seconds;
  const left = seconds == null ? "" : `, about ${Math.ceil(seconds)} s left`;
  return html`<p><progress max=${planned} value=${done} aria-label="progress"></progress> ${done} of ${planned}${left}</p>`;
}

function Lock({ lock }) {
  if (!lock) return null;
  return html`<p class="lock" role="status">
    Locked${lock.level === "all" ? " with all that is in it" : ""}${lock.owner ? ` by ${lock.owner}` : ""} since <${Moment} at=${lock.locked_at} />${lock.expires_at && html` until <${Moment} at=${lock.expires_at} />`}${lock.reason ? `: ${lock.reason}` : ""}
  </p>`;
}

export function Stack({ project, name, id, tab = "overview" }) {
  useTitle(name);
  const path = `stacks/${encodeURIComponent(name)}/${encodeURIComponent(id)}`;
  const here = `#/${encodeURIComponent(project)}/${path}`;
  const { found, error, events } = useStack(project, path, id);
  const open = Object.hasOwn(PAGES, tab) ? tab : "overview";
  const isGone = found?.stack.stack_status === "DELETE_COMPLETE" && OF_LIVE.includes(open);
  const [, Page] = PAGES[open];
  const up = found?.stack.parent ? null : html`<p><a href=${`#/${encodeURIComponent(project)}/stacks`}>All stacks</a></p>`;
  return html`
    ${up}
    <h1>${name}</h1>
    ${error && html`<${Problem} error=${error} />`}
    ${found &&
    html`<p role="status"><${Status} value=${found.stack.stack_status} /> <span class="quiet">${found.stack.stack_status_reason}</span></p>
      <${Lock} lock=${found.stack.lock} />
      <${Progress} explanation=${found.explanation} />`}
    <${Tabs} here=${here} open=${open} pages=${Object.entries(PAGES).map(([key, [title]]) => [key, title])} />
    ${isGone && html`<p>The stack is deleted.</p>`}
    ${found && !isGone && html`<${Page} project=${project} path=${path} here=${here} found=${found} events=${events} />`}
  `;
}
