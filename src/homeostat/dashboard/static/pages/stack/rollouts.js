// Rollouts that are in progress in a stack: steps, members, failures, and for what each waits.

import { get } from "../../api.js";
import { html, useRepeated } from "../../parts.js";

const EVERY_MS = 2000;
const NESTED_DEPTH = 50;

function Rollout({ found }) {
  const { members, failures } = found;
  const steps = found.settings.steps.length || members.total;
  const place = found.path.join("/");
  return html`<section aria-label=${`rollout of ${place}`}>
    <p>
      <strong>${place}</strong>: ${found.pattern} of ${found.gives}, ${found.state.toLowerCase()}, step ${found.step} of ${steps}
    </p>
    <p>
      <progress max=${members.total || 1} value=${members.updated} aria-label=${`members of ${place} that have what is new`}></progress>
      ${" "}${members.updated} of ${members.total} members have what is new; of this step ${members.step.succeeded} succeeded, ${members.step.failed} failed, ${members.step.waiting} have yet to report
    </p>
    ${failures.count > 0 && html`<p>${failures.count} failed of ${failures.max} that may${failures.members.length > 0 && `: ${failures.members.map((each) => each.reason).join("; ")}`}</p>`}
    <p class="quiet">${found.reason} Released by: ${found.released_by}.</p>
  </section>`;
}

export function Rollouts({ project, path }) {
  const ask = () => get(project, `${path}/rollouts`, { nested_depth: NESTED_DEPTH });
  const { value } = useRepeated(ask, [project, path], EVERY_MS);
  if (!value?.rollouts.length) return null;
  return html`<h2>Rollouts</h2>
    ${value.rollouts.map((each) => html`<${Rollout} key=${`${each.stack_id} ${each.resource_name}`} found=${each} />`)}`;
}
