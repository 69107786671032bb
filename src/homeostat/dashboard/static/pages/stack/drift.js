// What is not as it was asked for: in the template, as last applied, and as it is.

import { useState } from "../../vendor/hooks.js";
import { get, send } from "../../api.js";
import { Action, html, Moment, Problem, Status, useRepeated } from "../../parts.js";
import { shown } from "./plan.js";

const EVERY_MS = 3000;
const EVERY_LARGE_MS = 30_000;
const NESTED_DEPTH = 50;
const LISTED_MAX = 1000;
const SHOWN_MAX = 500;

/** How many resources a stack has, with those of its nested stacks. */
export const countAll = ({ planned, resources }) => resources.reduce((sum, { nested }) => sum + (nested?.planned ?? 0), planned);

/** Whether a stack has so much in it that not all of it is asked for. */
export const isLarge = ({ graph }) => countAll(graph) > LISTED_MAX;

async function differing(project, path, large) {
  const query = { with_differences: true, ...(large ? {} : { nested_depth: NESTED_DEPTH }) };
  const [{ resources }, { convergence }] = await Promise.all([get(project, `${path}/resources`, query), get(project, `${path}/convergence`)]);
  return { count: resources.length, differing: resources.filter((each) => each.differences.length || wrong(each)), convergence };
}

/** What is wrong with a resource as a whole; "" where its properties say it. */
function wrong(resource) {
  const { observed, unhealthy } = resource;
  if (unhealthy) return `marked unhealthy: ${unhealthy.reason}`;
  if (resource.resource_status.startsWith("INIT")) return "not made yet";
  if (observed?.presence === "absent") return observed.reason || "it is gone";
  if (!resource.resource_status.endsWith("COMPLETE")) return resource.resource_status_reason;
  return observed?.left_alone && !observed.drift.length ? observed.left_alone : "";
}

/** Name of a resource, below the group or stack that it is nested in. */
function place(resource) {
  return resource.parent_resource ? `${resource.parent_resource}/${resource.resource_name}` : resource.resource_name;
}

function Resource({ found }) {
  const why = wrong(found);
  return html`<section aria-label=${place(found)} class="differs">
    <h3>${place(found)} <span class="quiet">${found.resource_type}</span> <${Status} value=${found.resource_status} /></h3>
    ${why && html`<p>${why}</p>`}
    ${found.differences.length > 0 &&
    html`<div class="wide">
      <table>
        <thead><tr><th scope="col">Property</th><th scope="col">Template</th><th scope="col">Last applied</th><th scope="col">Live</th><th scope="col" class="rest">Since</th></tr></thead>
        <tbody>
          ${found.differences.map(
            (each) => html`<tr key=${each.property}>
              <th scope="row">${each.property}</th>
              <td>${shown(each.template)}</td>
              <td>${shown(each.applied)}</td>
              <td>${each.since ? html`<strong>${shown(each.observed)}</strong>` : shown(each.observed ?? each.applied)}</td>
              <td class="rest"><${Moment} at=${each.since} /></td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>`}
  </section>`;
}

export function Drift({ project, path, found }) {
  if (!found.graph.listed) {
    return html`<h2>Drift</h2>
      <p>It has ${found.graph.planned} resources, too many to compare all of them here. What is not at rest is on the overview; <code>homeostat observe</code> looks at all, and lists what differs.</p>`;
  }
  return html`<${Differences} project=${project} path=${path} found=${found} />`;
}

function Differences({ project, path, found }) {
  const large = isLarge(found);
  const [askedAt, setAskedAt] = useState("");
  const [turn, setTurn] = useState(0);
  const { value, error } = useRepeated(() => differing(project, path, large), [project, path, large, turn], large ? EVERY_LARGE_MS : EVERY_MS);
  const act = (action) => send("POST", project, `${path}/actions`, { [action]: null });
  const look = async () => {
    setAskedAt((await act("observe")).observe.asked_at);
    setTurn(turn + 1);
  };
  const since = value?.convergence.looked_at;
  const isAwaited = askedAt && (since ?? "") < askedAt;
  return html`<h2>Drift</h2>
    <p class="buttons">
      <${Action} label="Look now" says=${null} run=${look} />
      <${Action}
        label="Converge"
        says=${html`<p>Everything is looked at, what differs is brought back, and what has failed is tried again, whatever the switches say.</p>
          ${value?.differing.length > 0 && html`<p>That is: ${value.differing.slice(0, 20).map(place).join(", ")}${value.differing.length > 20 ? ", …" : ""}.</p>`}`}
        run=${() => act("converge")}
      />
    </p>
    ${error && html`<${Problem} error=${error} />`}
    ${!value && !error && html`<p class="quiet">One moment…</p>`}
    ${value &&
    html`<p role="status">
        ${value.differing.length === 0 ? "Nothing differs" : `${value.differing.length} of ${value.count} resources differ`};
        ${since ? html` looked at <${Moment} at=${since} />` : " not all of it was looked at yet"}${isAwaited ? "; a look is on its way" : ""}.
      </p>
      ${value.convergence.blind && html`<p class="error">Some of it cannot be looked at: ${value.convergence.blind}</p>`}
      ${value.convergence.enabled === false && html`<p>Convergence is switched off: what differs is left alone.</p>`}
      ${large && html`<p class="quiet">Groups and nested stacks have pages of their own, with what differs in them.</p>`}
      ${value.differing.slice(0, SHOWN_MAX).map((each) => html`<${Resource} key=${`${each.links[1].href} ${each.resource_name}`} found=${each} />`)}
      ${value.differing.length > SHOWN_MAX && html`<p class="quiet">The first ${SHOWN_MAX} are shown.</p>`}`}`;
}
