// What is done to a stack by hand: locks, the switches of convergence, marks on resources, and snapshots.

import { get, send } from "../../api.js";
import { Action, html, Moment, number, Problem, Status, useRepeated } from "../../parts.js";
import { Marks } from "./marks.js";

const EVERY_MS = 2000;
const MINUTE_S = 60;

function Lock({ lock, act }) {
  const locked = (data) => {
    const minutes = number(data, "minutes");
    return act({ lock: { level: data.get("level"), reason: data.get("reason") || null, ...(minutes ? { expires_in: minutes * MINUTE_S } : {}) } });
  };
  const before = lock && { level: lock.level, reason: lock.reason, ...(lock.expires_at ? { expires_at: lock.expires_at } : {}) };
  return html`<h2>Lock</h2>
    <p>${lock ? "While it is locked nothing changes it: no update, no healing, no deletion." : "It is not locked."}</p>
    <p class="buttons">
      <${Action}
        label="Lock"
        says=${html`<p>Nothing will change the stack until it is unlocked: no update, no healing, no deletion.</p>`}
        fields=${html`<p><label>Reason <input name="reason" maxlength="1000" /></label></p>
          <p><label>What <select name="level"><option value="all">the stack, and servers and images in it</option><option value="stacks">the stack alone</option></select></label></p>
          <p><label>Unlock after <input name="minutes" type="number" min="1" size="6" /> minutes; empty: never</label></p>`}
        run=${locked}
        undo=${() => act({ unlock: null })}
      />
      <${Action}
        label="Unlock"
        disabled=${!lock}
        says=${html`<p>The stack can be changed again. What has died or drifted meanwhile is brought back.</p>`}
        run=${() => act({ unlock: null })}
        undo=${before && (() => act({ lock: before }))}
      />
    </p>`;
}

function Convergence({ project, path }) {
  const { value, error } = useRepeated(() => get(project, `${path}/convergence`), [project, path], EVERY_MS);
  const now = value?.convergence;
  const set = (change) => send("PATCH", project, `${path}/convergence`, { convergence: change });
  const isOn = now?.enabled !== false;
  const every = now?.observe_interval;
  const own = Object.entries(now?.resources ?? {});
  return html`<h2>Convergence</h2>
    ${error && html`<${Problem} error=${error} />`}
    ${now &&
    html`<p>
        ${isOn ? "What drifts or dies is brought back by itself" : "Switched off: what drifts or dies is left alone"}; looked at
        ${every == null ? " as usual" : every ? ` every ${every} s` : " only on request"}${now.healing === "ask" ? "; replaced only with your consent" : ""}.
      </p>
      ${own.length > 0 && html`<p>Switches of their own have ${own.map(([name]) => name).join(", ")}.</p>`}
      <p class="buttons">
        <${Action}
          label=${isOn ? "Switch off" : "Switch on"}
          says=${html`<p>${isOn ? "What drifts or dies will be shown, and left as it is." : "What has drifted or died will be brought back."}</p>`}
          run=${() => set({ enabled: !isOn })}
          undo=${() => set({ enabled: isOn })}
        />
        <${Action}
          label="Set interval and healing"
          says=${html`<p>This holds for the stack and all that is nested in it.</p>`}
          fields=${html`<p><label>Look every <input name="every" type="number" min="0" max="2592000" step="any" size="8" value=${every ?? ""} /> seconds; empty: as usual, 0: only on request</label></p>
            <p><label>Lost things <select name="healing" value=${now.healing ?? ""}><option value="">are replaced, as usual</option><option value="replace">are replaced</option><option value="ask">are replaced with your consent</option></select></label></p>`}
          run=${(data) => set({ observe_interval: number(data, "every"), healing: data.get("healing") || null })}
          undo=${() => set({ observe_interval: every, healing: now.healing })}
        />
      </p>`}`;
}

/** The resources that a restore would take away: those that came after the snapshot. */
async function later(project, path, id) {
  const [{ snapshot }, { graph }] = await Promise.all([get(project, `${path}/snapshots/${id}`), get(project, `${path}/graph`)]);
  const then = Object.keys(snapshot.data?.resources ?? {});
  return graph.resources.map((each) => each.name).filter((name) => !then.includes(name));
}

function Snapshots({ project, path }) {
  const { value, error } = useRepeated(() => get(project, `${path}/snapshots`), [project, path], EVERY_MS);
  const remove = (id) => send("DELETE", project, `${path}/snapshots/${id}`);
  return html`<h2>Snapshots</h2>
    <p>
      <${Action}
        label="Take a snapshot"
        says=${html`<p>It has the template, parameters and files, and the data of servers and volumes, those of nested stacks too.</p>`}
        fields=${html`<p><label>Name <input name="name" maxlength="255" /></label></p>`}
        run=${(data) => send("POST", project, `${path}/snapshots`, { name: data.get("name") || null })}
        undo=${(taken) => remove(taken.id)}
      />
    </p>
    ${error && html`<${Problem} error=${error} />`}
    ${value && !value.snapshots.length && html`<p>There is no snapshot yet.</p>`}
    ${value?.snapshots.length > 0 &&
    html`<div class="wide">
      <table>
        <thead><tr><th scope="col">Name</th><th scope="col">Status</th><th scope="col" class="rest">Taken</th><td></td></tr></thead>
        <tbody>
          ${value.snapshots.map((each) => {
            const name = each.name || each.id;
            return html`<tr key=${each.id}>
              <td>${name}</td>
              <td>
                <${Status} value=${`${each.action}_${each.status}`} />
                ${each.status === "FAILED" && html` ${each.status_reason}`}
              </td>
              <td class="rest"><${Moment} at=${each.creation_time} /></td>
              <td class="buttons">
                <${Action}
                  label="Restore"
                  about=${name}
                  danger
                  look=${() => later(project, path, each.id)}
                  says=${(gone) => html`<p>Template, parameters, environment and files go back to the snapshot, and servers and volumes to the data in it: what they hold now is lost.</p>
                    ${gone.length > 0 && html`<p>Deleted, since they came later: ${gone.join(", ")}.</p>`}`}
                  run=${() => send("POST", project, `${path}/snapshots/${each.id}/restore`)}
                />
                <${Action} label="Delete" about=${name} danger says=${html`<p>The snapshot, and the data that the cloud keeps for it, will be gone for good.</p>`} run=${() => remove(each.id)} />
              </td>
            </tr>`;
          })}
        </tbody>
      </table>
    </div>`}`;
}

export function Maintenance({ project, path, found }) {
  const act = (body) => send("POST", project, `${path}/actions`, body);
  return html`
    <${Lock} lock=${found.stack.lock} act=${act} />
    <${Convergence} project=${project} path=${path} />
    <${Marks} project=${project} path=${path} graph=${found.graph} />
    <${Snapshots} project=${project} path=${path} />
  `;
}
