// One cluster: its nodes with what was found of each, policies, what goes on and went on, and how to change it.

import { useState } from "../vendor/hooks.js";
import { get, getClustering, sendClustering } from "../api.js";
import { Action, Await, fits, html, Moment, Problem, Search, Status, Tabs, useRepeated, useTitle } from "../parts.js";
import { Receivers } from "./clusters.js";
import { HealthPage, Verdicts } from "./stack/health.js";

const EVERY_MS = 1500;
const NODES_MAX = 1000;
const SHOWN_MAX = 50;
const json = (value) => JSON.stringify(value, null, 2);

async function lookAt(project, id) {
  const { cluster } = await getClustering(project, `clusters/${encodeURIComponent(id)}`);
  // A cluster is a stack of its id; the address of a stack has its name, too.
  const [{ nodes }, { stack }] = await Promise.all([
    getClustering(project, "nodes", { cluster_id: cluster.id, limit: NODES_MAX }),
    get(project, `stacks/${cluster.id}`),
  ]);
  return { cluster, nodes, stack };
}

// -- what can be done with it ----------------------------------------------------------------------------------------

function number(data, name) {
  const given = data.get(name).trim();
  return given === "" ? undefined : Number(given);
}

function Steering({ project, cluster }) {
  const act = (name, data) => sendClustering("POST", project, `clusters/${cluster.id}/actions`, { [name]: data });
  const resize = (desired, least, most) =>
    act("resize", { adjustment_type: "EXACT_CAPACITY", number: desired, min_size: least, max_size: most });
  const { desired_capacity: desired, min_size: least, max_size: most } = cluster;
  const back = () => resize(desired, least, most);
  const bounds = `It has ${desired} now, ${least} at least and ${most < 0 ? "any number" : most} at most. Policies may change how many come or go, and say which.`;
  const counted = (word) => html`<p><label>Nodes that ${word} <input name="count" type="number" min="1" value="1" required /></label></p>`;
  const common = { about: `the cluster ${cluster.name}`, done: "begun" };
  return html`<div class="buttons">
    <${Action} ...${common} label="Resize" undo=${back} run=${(data) => resize(number(data, "desired"), number(data, "least"), number(data, "most"))}
      says=${`Nodes are made or deleted until there are as many as you say. ${bounds}`}
      fields=${html`<p class="buttons">
        <label>Nodes <input name="desired" type="number" min="0" value=${desired} required /></label>
        <label>At least <input name="least" type="number" min="0" value=${least} /></label>
        <label>At most (-1: any) <input name="most" type="number" min="-1" value=${most} /></label>
      </p>`} />
    <${Action} ...${common} label="Scale out" undo=${back} run=${(data) => act("scale_out", { count: number(data, "count") })}
      says=${`So many nodes are made. ${bounds}`} fields=${counted("come")} />
    <${Action} ...${common} label="Scale in" danger=${true} undo=${back} run=${(data) => act("scale_in", { count: number(data, "count") })}
      says=${`So many nodes are deleted. ${bounds} To undo it makes new nodes, not the same ones.`} fields=${counted("go")} />
    <${Action} ...${common} label="Check" run=${() => act("check", {})} says="All nodes are looked at now. Nothing is changed by that." />
    <${Action} ...${common} label="Recover" run=${() => act("recover", {})}
      says="Nodes that are not well are recovered as the health policy says; without one they are made again. Those that are well stay." />
  </div>`;
}

function NodeSteering({ project, node }) {
  const act = (name) => sendClustering("POST", project, `nodes/${node.id}/actions`, { [name]: {} });
  const common = { about: `the node ${node.name}`, done: "begun" };
  return html`<div class="buttons">
    <${Action} ...${common} label="Check" run=${() => act("check")} says=${`${node.name} is looked at now. Nothing is changed by that.`} />
    <${Action} ...${common} label="Recover" run=${() => act("recover")} says=${`${node.name} is recovered as the health policy says; without one it is made again.`} />
    <${Action} ...${common} label="Delete" danger=${true} run=${() => sendClustering("DELETE", project, `nodes/${node.id}`)}
      says=${`${node.name} is deleted with what it is made of (${node.physical_id || "nothing yet"}), and no other one is made for it: the cluster wants one less. That cannot be undone.`} />
  </div>`;
}

// -- its pages -------------------------------------------------------------------------------------------------------

function Nodes({ project, found }) {
  const [wanted, setWanted] = useState("");
  const fit = found.nodes.filter((each) => fits([each.name, each.status, each.role, each.physical_id, each.data.health?.finding], wanted));
  return html`<h2>Nodes</h2>
    ${found.nodes.length > 1 && html`<${Search} value=${wanted} search=${setWanted} what="name, status or server" />`}
    <div class="wide"><table class="folds">
      <thead><tr><th scope="col">Node</th><th scope="col">Status</th><th scope="col">Health</th><th scope="col" class="rest">Server or stack</th><th scope="col">Do</th></tr></thead>
      <tbody>
        ${fit.slice(0, SHOWN_MAX).map((node) => {
          const health = node.data.health;
          return html`<tr key=${node.id}>
            <th scope="row">${node.name}${node.role && html` <span class="quiet">${node.role}</span>`}</th>
            <td><${Status} value=${node.status} /> <span class="quiet">${node.status_reason}</span></td>
            <td>${health ? html`<details><summary><${Status} value=${health.finding} /></summary><${Verdicts} member=${health} /></details>` : "no policy"}</td>
            <td class="rest">${node.physical_id}</td>
            <td><${NodeSteering} project=${project} node=${node} /></td>
          </tr>`;
        })}
      </tbody>
    </table></div>
    ${fit.length > SHOWN_MAX && html`<p class="quiet">Search for more: the first ${SHOWN_MAX} of ${fit.length} are shown.</p>`}`;
}

function Profile({ project, found }) {
  const asked = useRepeated(() => getClustering(project, `profiles/${found.cluster.profile_id}`), [project, found.cluster.profile_id], 10 * EVERY_MS);
  return html`<h2>Profile</h2>
    <${Await} asked=${asked} show=${({ profile }) => html`<p>${profile.name}: ${profile.type}</p><details><summary>Spec</summary><pre>${json(profile.spec)}</pre></details>`} />`;
}

function Overview(props) {
  return html`<${Nodes} ...${props} /><${Profile} ...${props} />`;
}

function Policies({ project, found }) {
  const { cluster } = found;
  const asked = useRepeated(() => getClustering(project, `clusters/${cluster.id}/policies`), [project, cluster.id], EVERY_MS);
  const enable = (policy_id, enabled) =>
    sendClustering("POST", project, `clusters/${cluster.id}/actions`, { policy_update: { policy_id, enabled } });
  return html`<h2>Policies</h2>
    <${Await} asked=${asked} show=${({ cluster_policies: bound }) =>
      bound.length === 0
        ? html`<p>None is attached.</p>`
        : bound.map((each) => {
            const common = { about: `the policy ${each.policy_name}`, done: "begun" };
            return html`<section class="card" key=${each.id} aria-label=${`policy ${each.policy_name}`}>
              <h3>${each.policy_name} <span class="quiet">${each.policy_type}</span></h3>
              <p>${each.enabled ? "It is enabled." : "It is disabled."} ${each.last_op && html`It last acted at <${Moment} at=${each.last_op} />.`}</p>
              <div class="buttons">
                <${Action} ...${common} label="Disable" offered=${each.enabled} run=${() => enable(each.policy_id, false)} undo=${() => enable(each.policy_id, true)}
                  says=${`${each.policy_name} stays attached, and has no say in ${cluster.name} until it is enabled.`} />
                <${Action} ...${common} label="Enable" offered=${!each.enabled} run=${() => enable(each.policy_id, true)} undo=${() => enable(each.policy_id, false)}
                  says=${`${each.policy_name} has a say in ${cluster.name} from now on.`} />
              </div>
              ${each.data && Object.keys(each.data).length > 0 && html`<details><summary>Data</summary><pre>${json(each.data)}</pre></details>`}
            </section>`;
          })} />`;
}

const LIVE = ["INIT", "WAITING", "READY", "RUNNING"];
const took = ({ start_time, end_time }) => (start_time && end_time ? `${Math.max(Math.round(end_time - start_time), 0)} s` : "");

function Actions({ project, found }) {
  const { cluster, nodes } = found;
  const query = { cluster_id: cluster.id, sort: "created_at:desc", limit: SHOWN_MAX };
  const asked = useRepeated(() => getClustering(project, "actions", query), [project, cluster.id], EVERY_MS);
  const names = new Map([[cluster.id, "the cluster"], ...nodes.map((each) => [each.id, each.name])]);
  const cancel = (id) => sendClustering("PATCH", project, `actions/${id}`, { action: { status: "CANCELLED" } });
  return html`<h2>Actions</h2>
    <${Await} asked=${asked} show=${({ actions }) => html`<div class="wide"><table class="folds">
      <thead><tr><th scope="col">Action</th><th scope="col">Status</th><th scope="col">Begun</th><th scope="col" class="rest">Took</th><th scope="col">Do</th></tr></thead>
      <tbody>
        ${actions.map(
          (each) => html`<tr key=${each.id}>
            <th scope="row">${each.action.replaceAll("_", " ").toLowerCase()}<div class="quiet">${names.get(each.target) ?? each.target}</div></th>
            <td><${Status} value=${each.status} /> <span class="quiet">${each.status_reason}</span></td>
            <td><${Moment} at=${each.created_at} /></td>
            <td class="rest">${took(each)}</td>
            <td><${Action} label="Cancel" about=${each.action} done="asked for" danger=${true} offered=${LIVE.includes(each.status)} run=${() => cancel(each.id)}
              says="It stops, and what it has begun stays as it is: nodes that it was to change or to make are in ERROR or not there until the next action." /></td>
          </tr>`,
        )}
      </tbody>
    </table></div>`} />`;
}

function Events({ project, found }) {
  const { cluster } = found;
  const query = { cluster_id: cluster.id, sort: "timestamp:desc", limit: 2 * SHOWN_MAX };
  const asked = useRepeated(() => getClustering(project, "events", query), [project, cluster.id], EVERY_MS);
  return html`<h2>Events</h2>
    <${Await} asked=${asked} show=${({ events }) => html`<ol class="events">
      ${events.map((each) => html`<li key=${each.id}><${Moment} at=${each.timestamp} /> <strong>${each.oname}</strong> ${each.action.replaceAll("_", " ").toLowerCase()} <${Status} value=${each.status} /> <span class="quiet">${each.status_reason}</span></li>`)}
    </ol>`} />`;
}

function Health({ project, found }) {
  return html`<${HealthPage} project=${project} path=${`stacks/${encodeURIComponent(found.stack.stack_name)}/${found.stack.id}`} />`;
}

/** Name in the address -> title, and what shows it. */
const PAGES = {
  overview: ["Nodes", Overview],
  health: ["Health", Health],
  policies: ["Policies", Policies],
  actions: ["Actions", Actions],
  events: ["Events", Events],
  receivers: ["Receivers", ({ project, found }) => html`<${Receivers} project=${project} cluster=${found.cluster.id} />`],
};

export function Cluster({ project, id, tab = "overview" }) {
  const { value: found, error } = useRepeated(() => lookAt(project, id), [project, id], EVERY_MS);
  useTitle(found ? found.cluster.name : "Cluster");
  const root = `#/${encodeURIComponent(project)}`;
  const [, Page] = PAGES[Object.hasOwn(PAGES, tab) ? tab : "overview"];
  const up = html`<p><a href=${`${root}/clusters`}>All clusters</a></p>`;
  if (!found) return html`${up}${error && html`<${Problem} error=${error} />`}`;
  const { cluster, nodes, stack } = found;
  const behind = `${root}/stacks/${encodeURIComponent(stack.stack_name)}/${stack.id}`;
  return html`
    ${up}
    <h1>${cluster.name}</h1>
    ${error && html`<${Problem} error=${error} />`}
    <p role="status"><${Status} value=${cluster.status} /> <span class="quiet">${cluster.status_reason}</span></p>
    <p>${nodes.filter((each) => each.status === "ACTIVE").length} of ${cluster.desired_capacity} nodes are active; ${cluster.min_size} at least, ${cluster.max_size < 0 ? "any number" : cluster.max_size} at most.
      Behind it is <a href=${behind}>a stack</a>, with <a href=${`${behind}/picture`}>a picture</a> and <a href=${`${behind}/events`}>all events</a>.</p>
    <${Steering} project=${project} cluster=${cluster} />
    <${Tabs} here=${`${root}/clusters/${id}`} open=${tab} pages=${Object.entries(PAGES).map(([key, [title]]) => [key, title])} />
    <${Page} project=${project} found=${found} />
  `;
}
