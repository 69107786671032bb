// The clusters of a project, searched and live, and the receivers by which others change them.

import { useState } from "../vendor/hooks.js";
import { getClustering } from "../api.js";
import { Await, fits, html, Moment, Search, Status, useRepeated, useTitle } from "../parts.js";

const EVERY_MS = 2000;
const LISTED_MAX = 1000;

/** Receivers of a cluster, or of all; their addresses are as good as passwords, and are unfolded by those who need them. */
export function Receivers({ project, cluster }) {
  const query = { limit: LISTED_MAX, ...(cluster ? { cluster_id: cluster } : {}) };
  const asked = useRepeated(() => getClustering(project, "receivers", query), [project, cluster], 2 * EVERY_MS);
  return html`<h2>Receivers</h2>
    <${Await} asked=${asked} show=${({ receivers }) =>
      receivers.length === 0
        ? html`<p>There is none: nothing outside begins an action.</p>`
        : html`<div class="wide"><table>
            <thead><tr><th scope="col">Name</th><th scope="col">Type</th><th scope="col">Begins</th><th scope="col">Address</th></tr></thead>
            <tbody>
              ${receivers.map(
                (each) => html`<tr key=${each.id}>
                  <th scope="row">${each.name}</th>
                  <td>${each.type}</td>
                  <td>${each.action?.replace("CLUSTER_", "").replaceAll("_", " ").toLowerCase() ?? "what a message asks for"} ${Object.keys(each.params).length > 0 && html`<code>${JSON.stringify(each.params)}</code>`}</td>
                  <td>${each.channel.alarm_url ? html`<details><summary>Show: who knows it may use it</summary><code>${each.channel.alarm_url}</code></details>` : html`queue <code>${each.channel.queue_name}</code>`}</td>
                </tr>`,
              )}
            </tbody>
          </table></div>`} />`;
}

function Table({ project, clusters }) {
  return html`<div class="wide"><table>
    <thead>
      <tr><th scope="col">Name</th><th scope="col">Status</th><th scope="col">Nodes</th><th scope="col" class="rest">Profile</th><th scope="col" class="rest">Updated</th></tr>
    </thead>
    <tbody>
      ${clusters.map(
        (each) => html`<tr key=${each.id}>
          <td><a href=${`#/${encodeURIComponent(project)}/clusters/${each.id}`}>${each.name}</a></td>
          <td><${Status} value=${each.status} /></td>
          <td>${each.nodes.length} of ${each.desired_capacity}</td>
          <td class="rest">${each.profile_name}</td>
          <td class="rest"><${Moment} at=${each.updated_at ?? each.created_at ?? each.init_at} /></td>
        </tr>`,
      )}
    </tbody>
  </table></div>`;
}

export function Clusters({ project }) {
  useTitle(`Clusters of ${project}`);
  const [wanted, setWanted] = useState("");
  const asked = useRepeated(() => getClustering(project, "clusters", { limit: LISTED_MAX }), [project], EVERY_MS);
  return html`
    <h1>Clusters</h1>
    <${Search} value=${wanted} search=${setWanted} what="name, status or profile" />
    <${Await} asked=${asked} show=${({ clusters }) => {
      const found = clusters.filter((each) => fits([each.name, each.status, each.profile_name], wanted));
      return html`<p class="quiet" role="status">${found.length} of ${clusters.length < LISTED_MAX ? clusters.length : `the first ${LISTED_MAX}`} clusters</p>
        ${!clusters.length && html`<p>There is no cluster yet. Make one with <code>openstack cluster create</code>, or in a template as <code>OS::Senlin::Cluster</code>.</p>`}
        ${found.length > 0 && html`<${Table} project=${project} clusters=${found} />`}`;
    }} />
    <${Receivers} project=${project} />
  `;
}
