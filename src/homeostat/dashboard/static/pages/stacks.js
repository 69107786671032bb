// The stacks of a project: searched by name, tag or status, and live.

import { useState } from "../vendor/hooks.js";
import { get } from "../api.js";
import { fits, html, Moment, Problem, Search, Status, useRepeated, useTitle } from "../parts.js";

const EVERY_MS = 2000;
const STACKS_MAX = 1000;
const SHOWN_MAX = 500;

const words = (stack) => [stack.stack_name, stack.stack_status, stack.description, ...(stack.tags ?? [])];

export function Stacks({ project }) {
  useTitle(`Stacks of ${project}`);
  const [wanted, setWanted] = useState("");
  const { value, error } = useRepeated(() => get(project, "stacks", { limit: STACKS_MAX }), [project], EVERY_MS);
  const found = (value?.stacks ?? []).filter((each) => fits(words(each), wanted));
  return html`
    <h1>Stacks</h1>
    ${error && html`<${Problem} error=${error} />`}
    <${Search} value=${wanted} search=${setWanted} what="name, tag or status" />
    ${value && html`<p class="quiet" role="status">${found.length} of ${value.stacks.length < STACKS_MAX ? value.stacks.length : `the first ${STACKS_MAX}`} stacks</p>`}
    ${value && !value.stacks.length && html`<p>There is no stack yet. Make one with <code>homeostat up</code>, or with your OpenStack client.</p>`}
    ${found.length > 0 &&
    html`<div class="wide">
      <table>
        <thead>
          <tr><th scope="col">Name</th><th scope="col">Status</th><th scope="col" class="rest">Tags</th><th scope="col" class="rest">Updated</th></tr>
        </thead>
        <tbody>
          ${found.slice(0, SHOWN_MAX).map(
            (each) => html`<tr key=${each.id}>
              <td><a href=${`#/${encodeURIComponent(project)}/stacks/${encodeURIComponent(each.stack_name)}/${each.id}`}>${each.stack_name}</a></td>
              <td><${Status} value=${each.stack_status} /></td>
              <td class="rest">${(each.tags ?? []).join(", ")}</td>
              <td class="rest"><${Moment} at=${each.updated_time ?? each.creation_time} /></td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>`}
    ${found.length > SHOWN_MAX && html`<p class="quiet">Search for more: the first ${SHOWN_MAX} are shown.</p>`}
  `;
}
