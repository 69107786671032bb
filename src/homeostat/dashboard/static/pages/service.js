// The service itself: workers, shards, limits of requests, and what the doctor finds. Most of it is for admins.

import { useEffect, useState } from "../vendor/hooks.js";
import { get } from "../api.js";
import { Await, html, Moment, Status, useRepeated, useTitle } from "../parts.js";

const EVERY_MS = 3000;

/** What to say to those who may not see something. */
const denied = (what, rule) => (error) =>
  error.status === 403 && html`<p>${what} for admins: you lack the right <code>${rule}</code>. Ask the operator of the service.</p>`;

function Workers({ workers }) {
  if (!workers.length) return html`<p class="error">No worker runs: nothing goes on. Start one with <code>homeostat worker</code>.</p>`;
  return html`<div class="wide"><table>
    <thead><tr><th scope="col">Worker</th><th scope="col">Status</th><th scope="col">Shards</th><th scope="col">Last seen</th><th scope="col" class="rest">Since</th><th scope="col" class="rest">Version, board</th></tr></thead>
    <tbody>
      ${workers.map(
        (each) => html`<tr key=${each.name}>
          <th scope="row">${each.name}<div class="quiet">${each.host}, process ${each.pid}</div></th>
          <td><${Status} value=${each.alive ? "up" : "down"} /></td>
          <td>${each.shards}</td>
          <td><${Moment} at=${each.seen_at} /></td>
          <td class="rest"><${Moment} at=${each.started_at} /></td>
          <td class="rest">${each.version}, ${each.board}</td>
        </tr>`,
      )}
    </tbody>
  </table></div>`;
}

function State({ project }) {
  const asked = useRepeated(() => get(project, "service"), [project], EVERY_MS);
  const show = ({ service: { workers, shards, requests } }) => html`
    <${Workers} workers=${workers} />
    <h2>Shards</h2>
    <p>${shards.owned} are owned by workers, ${shards.waiting} wait for one${shards.waiting > 0 && `, one of them for ${shards.waiting_seconds.toFixed(1)} s`}, ${shards.set_aside} are set aside for a bug.</p>
    <h2>Requests to the cloud</h2>
    ${requests.length === 0
      ? html`<p>They are not limited (<code>--os-requests-per-second</code>), or none was sent yet.</p>`
      : html`<ul>${requests.map((each) => html`<li key=${each.service}><strong>${each.service || "all services"}</strong>: ${each.waiting_seconds > 0 ? `the next one waits ${each.waiting_seconds.toFixed(1)} s for its turn` : "within the limit"}</li>`)}</ul>`}`;
  return html`<h2>Workers</h2><${Await} asked=${asked} show=${show} instead=${denied("Workers and shards are", "service:show")} />`;
}

function SetAside({ found }) {
  if (!found.length) return null;
  return html`<h3>Set aside</h3>
    <ul>${found.map((each) => html`<li key=${`${each.stack_id} ${each.shard}`}><a href=${`#/${encodeURIComponent(each.project)}/stacks/${encodeURIComponent(each.stack_name)}/${each.stack_id}`}>${each.stack_name}</a>, shard ${each.shard}: ${each.reason}</li>`)}</ul>`;
}

/** It counts rows, so it is asked once, and again by those who want to know. */
function Doctor({ project }) {
  const [turn, setTurn] = useState(0);
  const [asked, setAsked] = useState({});
  useEffect(() => {
    let mine = true;
    setAsked({});
    get(project, "service/doctor").then(
      (value) => mine && setAsked({ value }),
      (error) => mine && setAsked({ error }),
    );
    return () => {
      mine = false;
    };
  }, [project, turn]);
  const show = ({ examination: { healthy, checks, set_aside: aside } }) => html`
    <p role="status">${healthy ? "Nothing fails." : "Something fails."} <button type="button" onClick=${() => setTurn(turn + 1)}>Examine again</button></p>
    <div class="wide"><table>
      <thead><tr><th scope="col">Check</th><th scope="col">Result</th><th scope="col">Found, and what to do</th></tr></thead>
      <tbody>
        ${checks.map((each) => html`<tr key=${each.name}><th scope="row">${each.name}</th><td><${Status} value=${each.level} /></td><td>${each.found}${each.remedy && html`<div class="quiet">→ ${each.remedy}</div>`}</td></tr>`)}
      </tbody>
    </table></div>
    <${SetAside} found=${aside} />
    <p class="quiet">What else <code>homeostat doctor</code> looks at, the things of the cloud, needs its files or its login: run it beside the service.</p>`;
  return html`<h2>Doctor</h2><${Await} asked=${asked} show=${show} instead=${denied("What the doctor finds names stacks of all projects, so it is", "service:examine")} />`;
}

export function Service({ project }) {
  useTitle("Service");
  const build = useRepeated(() => get(project, "build_info"), [project], 20 * EVERY_MS);
  return html`
    <h1>Service</h1>
    <${Await} asked=${build} show=${({ api }) => html`<p>Homeostat ${api.revision}</p>`} />
    <${State} project=${project} />
    <${Doctor} project=${project} />
  `;
}
