// How a stack is: its resources, with what waits and why; rollouts, health, outputs.

import { useMemo } from "../../vendor/hooks.js";
import { html, Status } from "../../parts.js";
import { Health } from "./health.js";
import { RESOURCES_MAX } from "./live.js";
import { Rollouts } from "./rollouts.js";

function nested(project, resource) {
  const link = resource.links?.find((each) => each.rel === "nested");
  const found = link && /\/stacks\/([^/]+)\/([^/]+)$/.exec(link.href);
  return found ? `#/${encodeURIComponent(project)}/stacks/${found[1]}/${found[2]}` : null;
}

function Resources({ project, resources, reasons }) {
  const why = useMemo(() => new Map(reasons.map((each) => [each.resource_name, each])), [reasons]);
  return html`<div class="wide">
    <table>
      <thead>
        <tr><th scope="col">Name</th><th scope="col" class="rest">Type</th><th scope="col">Status</th><th scope="col">What waits, and why</th></tr>
      </thead>
      <tbody>
        ${resources.map((each) => {
          const below = nested(project, each);
          const reason = why.get(each.resource_name);
          return html`<tr key=${each.resource_name}>
            <td>${below ? html`<a href=${below}>${each.resource_name}</a>` : each.resource_name}</td>
            <td class="rest">${each.resource_type}</td>
            <td><${Status} value=${each.resource_status} /></td>
            <td>${reason ? [reason.reason, reason.released_by && `released by: ${reason.released_by}`].filter(Boolean).join("; ") : ""}</td>
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
    ${found.large && html`<p class="quiet">It has more than ${RESOURCES_MAX} resources, with all that is nested in it: shown are those that wait.</p>`}
    <${Resources} project=${project} resources=${found.resources} reasons=${found.explanation.resources} />
    <${Rollouts} project=${project} path=${path} />
    <${Health} project=${project} path=${path} />
    <${Outputs} outputs=${found.stack.outputs} />
  `;
}
