// What was wanted of a stack: its revisions, each as text, beside another one, and the way back to it.

import { useEffect, useState } from "../../vendor/hooks.js";
import { diffLines } from "../../vendor/diff-line.js";
import { get, getText, sendFor } from "../../api.js";
import { Action, html, Moment, Problem, useRepeated } from "../../parts.js";
import { Plan } from "./plan.js";

const EVERY_MS = 3000;
const LISTED_MAX = 100;
const AROUND = 3;
const COMPARED_MS_MAX = 3000;

function remarks(revision) {
  return [revision.newest && "newest", revision.complete && "the last that was complete", revision.empty && "nothing is to exist"].filter(Boolean).join(", ");
}

/** Rows of two columns: lines that are the same, and those that differ. Undefined where that takes too long. */
function rows(before, after) {
  const parts = diffLines(before, after, { timeout: COMPARED_MS_MAX });
  if (!parts) return undefined;
  const found = [];
  for (let place = 0; place < parts.length; place++) {
    const lines = (part) => part.value.replace(/\n$/, "").split("\n");
    const part = parts[place];
    if (!part.added && !part.removed) {
      found.push(...lines(part).map((line) => ({ left: line, right: line, same: true })));
      continue;
    }
    const pair = part.removed && parts[place + 1]?.added ? parts[++place] : null;
    const left = part.removed ? lines(part) : [];
    const right = part.added ? lines(part) : pair ? lines(pair) : [];
    for (let each = 0; each < Math.max(left.length, right.length); each++) found.push({ left: left[each], right: right[each] });
  }
  return found;
}

/** The rows near to a difference; in the place of the others, how many they are. */
function folded(found) {
  const near = found.map((_, place) => found.slice(Math.max(0, place - AROUND), place + AROUND + 1).some((each) => !each.same));
  const shown = [];
  for (const [place, each] of found.entries()) {
    if (near[place]) shown.push(each);
    else if (shown.at(-1)?.hidden) shown.at(-1).hidden++;
    else shown.push({ hidden: 1 });
  }
  return shown;
}

function Difference({ before, after }) {
  const found = rows(before.text, after.text);
  if (!found) return html`<p>They differ too much to be compared here: <code>homeostat history</code> does it.</p>`;
  if (found.every((each) => each.same)) return html`<p>No difference, but for values that are hidden.</p>`;
  return html`<div class="diff" role="group" aria-label=${`differences between revision ${before.number} and revision ${after.number}`}>
    <div class="head">revision ${before.number}</div>
    <div class="head">revision ${after.number}</div>
    ${folded(found).map((each) => {
      if (each.hidden) return html`<div class="fold quiet">${each.hidden} ${each.hidden === 1 ? "line" : "lines"} alike</div>`;
      if (each.same) return html`<div class="same left">${each.left || " "}</div><div class="same">${each.right || " "}</div>`;
      return html`${each.left === undefined ? html`<div class="left none"></div>` : html`<del class="left">${each.left || " "}</del>`}
      ${each.right === undefined ? html`<div class="none"></div>` : html`<ins>${each.right || " "}</ins>`}`;
    })}
  </div>`;
}

/** A revision as text, beside the other one if there is one. */
function Shown({ project, path, number, other }) {
  const [texts, setTexts] = useState({});
  useEffect(() => {
    let mine = true;
    const asked = [number, other].filter(Boolean).map(async (each) => ({ number: each, text: await getText(project, `${path}/revisions/${each}`) }));
    Promise.all(asked).then(
      (found) => mine && setTexts({ number, other, found }),
      (error) => mine && setTexts({ number, other, error }),
    );
    return () => {
      mine = false;
    };
  }, [project, path, number, other]);
  if (texts.number !== number || texts.other !== other) return html`<p class="quiet">One moment…</p>`;
  if (texts.error) return html`<${Problem} error=${texts.error} />`;
  const [one, compared] = texts.found;
  return compared ? html`<${Difference} before=${compared} after=${one} />` : html`<pre>${one.text}</pre>`;
}

function Back({ project, path, number }) {
  return html`<${Action}
    label="Go back"
    about=${`revision ${number}`}
    look=${() => sendFor(null, "PATCH", project, `${path}/preview`, { revision: number }, { show_nested: true })}
    says=${({ value }) => html`<p>The stack will be updated to revision ${number}, which will be stored as the newest.</p>
      <${Plan} preview=${value} />`}
    run=${async (_, { value, tag }) => ({ before: value.revision, ...(await sendFor(tag, "PATCH", project, path, { revision: number })) })}
    undo=${({ before, tag }) => sendFor(tag, "PATCH", project, path, { revision: before })}
  />`;
}

export function Template({ project, path }) {
  const [wanted, setWanted] = useState({});
  const { value, error } = useRepeated(() => get(project, `${path}/revisions`, { limit: LISTED_MAX }), [project, path], EVERY_MS);
  if (!value) return error ? html`<${Problem} error=${error} />` : html`<p class="quiet">One moment…</p>`;
  const found = value.revisions;
  const number = wanted.number ?? found[0].number;
  const choice = (name, chosen, none) => html`<select value=${chosen ?? ""} onChange=${(event) => setWanted({ ...wanted, [name]: Number(event.target.value) || undefined })}>
    ${none && html`<option value="">${none}</option>`}
    ${found.map((each) => html`<option value=${each.number}>${each.number}${each.newest ? " (newest)" : ""}</option>`)}
  </select>`;
  return html`<h2>Revisions</h2>
    <div class="wide">
      <table>
        <thead><tr><th scope="col">Revision</th><th scope="col">Since</th><th scope="col">By</th><th scope="col" class="rest">Remarks</th><td></td></tr></thead>
        <tbody>
          ${found.map(
            (each) => html`<tr key=${each.number}>
              <td><button type="button" aria-label=${`Show revision ${each.number}`} onClick=${() => setWanted({ number: each.number })}>${each.number}</button></td>
              <td><${Moment} at=${each.creation_time} /></td>
              <td>${each.action.toLowerCase()}</td>
              <td class="rest">${remarks(each)}</td>
              <td>${!each.newest && !each.empty && html`<${Back} project=${project} path=${path} number=${each.number} />`}</td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${found.length === LISTED_MAX && html`<p class="quiet">The newest ${LISTED_MAX} are shown.</p>`}
    <h2>Template, environment and files</h2>
    <p class="buttons">
      <label>Revision ${choice("number", number)}</label>
      <label>Compared with ${choice("other", wanted.other, "none")}</label>
    </p>
    <${Shown} project=${project} path=${path} number=${number} other=${wanted.other === number ? undefined : wanted.other} />`;
}
