// Marks that say that a resource is unhealthy, whatever is seen of it.

import { get, send } from "../../api.js";
import { Action, html, Moment, number, Problem, Status, useRepeated } from "../../parts.js";

const EVERY_MS = 2000;
const EVERY_LARGE_MS = 30_000;
const MINUTE_S = 60;
const SHOWN_MAX = 500;

/** Who has marked a resource, why, and how long that holds. */
export function Mark({ mark }) {
  if (!mark) return null;
  const by = [mark.reporter, mark.reported_by].filter(Boolean).join(" for ");
  return html`${mark.reason || "no reason given"}${by ? `, by ${by}` : ""}, since <${Moment} at=${mark.since} />${mark.expires_at && html`, until <${Moment} at=${mark.expires_at} />`}`;
}

/** Marks of a stack's own resources. */
export function Marks({ project, path, large }) {
  const { value, error } = useRepeated(() => get(project, `${path}/resources`), [project, path, large], large ? EVERY_LARGE_MS : EVERY_MS);
  const mark = (name, more) => send("PATCH", project, `${path}/resources`, { resources: [name], ...more });
  const clear = (name) => mark(name, { mark_unhealthy: false });
  const made = (value?.resources ?? []).filter((each) => !each.resource_status.startsWith("INIT"));
  return html`<h2>Marks</h2>
    <p>A resource that you mark unhealthy is replaced: at once where convergence is on, otherwise by the next update.</p>
    ${error && html`<${Problem} error=${error} />`}
    <div class="wide">
      <table>
        <thead><tr><th scope="col">Resource</th><th scope="col" class="rest">Status</th><th scope="col">Mark</th><td></td></tr></thead>
        <tbody>
          ${made.slice(0, SHOWN_MAX).map(
            (each) => html`<tr key=${each.resource_name}>
              <td>${each.resource_name}</td>
              <td class="rest"><${Status} value=${each.resource_status} /></td>
              <td><${Mark} mark=${each.unhealthy} /></td>
              <td>
                ${each.unhealthy
                  ? html`<${Action} label="Take back" about=${each.resource_name} says=${html`<p>It counts as healthy again.</p>`} run=${() => clear(each.resource_name)} undo=${() => mark(each.resource_name, { mark_unhealthy: true, resource_status_reason: each.unhealthy.reason })} />`
                  : html`<${Action}
                      label="Mark unhealthy"
                      about=${each.resource_name}
                      danger
                      says=${html`<p>It will be replaced, at once where convergence is on.</p>`}
                      fields=${html`<p><label>Reason <input name="reason" maxlength="1000" /></label></p>
                        <p><label>Forget the mark after <input name="minutes" type="number" min="1" size="6" /> minutes; empty: never</label></p>`}
                      run=${(data) => {
                        const minutes = number(data, "minutes");
                        return mark(each.resource_name, { mark_unhealthy: true, resource_status_reason: data.get("reason"), reporter: "dashboard", ...(minutes ? { expires_in: minutes * MINUTE_S } : {}) });
                      }}
                      undo=${() => clear(each.resource_name)}
                    />`}
              </td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${made.length > SHOWN_MAX && html`<p class="quiet">The first ${SHOWN_MAX} are shown; <code>openstack stack resource mark unhealthy</code> marks any.</p>`}`;
}
