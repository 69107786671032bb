// How a stack is: its resources, with what waits and why; rollouts, health, outputs.

import { html, Status } from "../../parts.js";
import { Health } from "./health.js";
import { nestedAddress, waitsFor } from "./reasons.js";
import { Rollouts } from "./rollouts.js";

const ROWS_MAX = 1000;

/** The rows of the table; of a stack with too many resources, those that wait. */
function rows({ graph, explanation }) {
  if (graph.listed) return graph.resources.slice(0, ROWS_MAX);
  return explanation.resources
    .filter((each) => each.path.length === 1)
    .map((each) => ({ name: each.resource_name, type: each.resource_type, status: each.resource_status }));
}

function Resources({ project, found }) {
  const why = new Map(found.explanation.resources.filter((each) => each.path.length === 1).map((each) => [each.resource_name, each]));
  const shown = rows(found);
  const all = Math.max(found.graph.planned, found.graph.resources.length);
  return html`
    ${shown.length < all && html`<p class="quiet">${found.graph.listed ? `The first ${ROWS_MAX} of ${all} resources.` : `It has ${all} resources; shown are those that wait.`}</p>`}
    <div class="wide">
      <table>
        <thead>
          <tr><th scope="col">Name</th><th scope="col" class="rest">Type</th><th scope="col">Status</th><th scope="col">What waits, and why</th></tr>
        </thead>
        <tbody>
          ${shown.map((each) => {
            const below = nestedAddress(project, each);
            return html`<tr key=${each.name}>
              <td>${below ? html`<a href=${below}>${each.name}</a>` : each.name}</td>
              <td class="rest">${each.type}</td>
              <td><${Status} value=${each.status} /></td>
              <td>${each.unhealthy ? `marked unhealthy${each.unhealthy.reason ? `: ${each.unhealthy.reason}` : ""}; ` : ""}${waitsFor(each, why.get(each.name))}</td>
            </tr>`;
          })}
        </tbody>
      </table>
    </div>`;
}

function Outputs({ outputs }) {
  if (!outputs?.length) return null;
  return html`<h2>Outputs</h2>
    ${outputs.map(
      (each) => html`<details key=${each.output_key} open=${outputs.length < 4}>
        <summary>${each.output_key}${each.description && each.description !== "No description given" ? html` <span class="quiet">${each.description}</span>` : ""}</summary>
        <pre>${each.output_error ?? (typeof each.output_value === "string" ? each.output_value : JSON.stringify(each.output_value, null, 2))}</pre>
      </details>`,
    )}`;
}

export function Overview({ project, path, found }) {
  return html`
    <h2>Resources</h2>
    <${Resources} project=${project} found=${found} />
    <${Rollouts} project=${project} path=${path} />
    <${Health} project=${project} path=${path} />
    <${Outputs} outputs=${found.stack.outputs} />
  `;
}
