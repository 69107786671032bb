// Marks that say that a resource is unhealthy, whatever is seen of it.

import { send } from "../../api.js";
import { Action, html, Moment, number, Status } from "../../parts.js";

const MINUTE_S = 60;
const SHOWN_MAX = 500;

/** Who has marked a resource, why, and how long that holds. */
export function Mark({ mark }) {
  if (!mark) return null;
  const by = [mark.reporter, mark.reported_by].filter(Boolean).join(" for ");
  return html`${mark.reason || "no reason given"}${by ? `, by ${by}` : ""}, since <${Moment} at=${mark.since} />${mark.expires_at && html`, until <${Moment} at=${mark.expires_at} />`}`;
}

/** Marks of a stack's own resources. */
export function Marks({ project, path, graph }) {
  const mark = (name, more) => send("PATCH", project, `${path}/resources`, { resources: [name], ...more });
  const clear = (name) => mark(name, { mark_unhealthy: false });
  const made = graph.resources.filter((each) => !each.status.startsWith("INIT"));
  return html`<h2>Marks</h2>
    <p>A resource that you mark unhealthy is replaced: at once where convergence is on, otherwise by the next update.</p>
    <div class="wide">
      <table>
        <thead><tr><th scope="col">Resource</th><th scope="col" class="rest">Status</th><th scope="col">Mark</th><td></td></tr></thead>
        <tbody>
          ${made.slice(0, SHOWN_MAX).map(
            (each) => html`<tr key=${each.name}>
              <td>${each.name}</td>
              <td class="rest"><${Status} value=${each.status} /></td>
              <td><${Mark} mark=${each.unhealthy} /></td>
              <td>
                ${each.unhealthy
                  ? html`<${Action} label="Take back" about=${each.name} says=${html`<p>It counts as healthy again.</p>`} run=${() => clear(each.name)} undo=${() => mark(each.name, { mark_unhealthy: true, resource_status_reason: each.unhealthy.reason })} />`
                  : html`<${Action}
                      label="Mark unhealthy"
                      about=${each.name}
                      danger
                      says=${html`<p>It will be replaced, at once where convergence is on.</p>`}
                      fields=${html`<p><label>Reason <input name="reason" maxlength="1000" /></label></p>
                        <p><label>Forget the mark after <input name="minutes" type="number" min="1" size="6" /> minutes; empty: never</label></p>`}
                      run=${(data) => {
                        const minutes = number(data, "minutes");
                        return mark(each.name, { mark_unhealthy: true, resource_status_reason: data.get("reason"), reporter: "dashboard", ...(minutes ? { expires_in: minutes * MINUTE_S } : {}) });
                      }}
                      undo=${() => clear(each.name)}
                    />`}
              </td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${!graph.listed && html`<p class="quiet">It has ${graph.planned} resources, too many to list: <code>openstack stack resource mark unhealthy</code> marks any.</p>`}
    ${made.length > SHOWN_MAX && html`<p class="quiet">The first ${SHOWN_MAX} are shown; <code>openstack stack resource mark unhealthy</code> marks any.</p>`}`;
}
