// Rollouts that are in progress in a stack: their steps, gates and members, for what each waits, and how to steer it.

import { get, send } from "../../api.js";
import { Action, html, Moment, Problem, Status, useRepeated } from "../../parts.js";

const EVERY_MS = 1500;
const NESTED_DEPTH = 50;
/** Steps that are behind, and to come, that are drawn. */
const STEPS_SHOWN = 6;
/** What a step waits for, in this order. */
const GATES = ["members", "reports", "checks", "bake_time", "approval"];

const count = (number, one, more = `${one}s`) => `${number} ${number === 1 ? one : more}`;

function lasts(seconds) {
  const whole = Math.ceil(seconds);
  return whole < 120 ? `${whole} s` : whole < 7200 ? `${Math.ceil(whole / 60)} min` : `${Math.ceil(whole / 3600)} h`;
}

/** Steps that are done, the one now, and those to come: some of each, and how many are left out. */
function Steps({ found }) {
  const { step, members } = found;
  const done = Array.from({ length: Math.max(step - 1, 0) }, (_, index) => index + 1).slice(-STEPS_SHOWN);
  const ahead = members.targets_to_come.slice(0, STEPS_SHOWN);
  const last = ahead.at(-1) ?? members.target;
  return html`<ol class="steps" aria-label="steps">
    ${step - 1 > done.length && html`<li class="done">${count(step - 1 - done.length, "earlier step")}</li>`}
    ${done.map((each) => html`<li class="done" key=${each}>Step ${each} <span>done</span></li>`)}
    ${step > 0 && html`<li class="now" key=${step} aria-current="step">Step ${step} <span>${members.target} of ${members.total}</span></li>`}
    ${ahead.map((target, index) => html`<li key=${step + 1 + index}>Step ${step + 1 + index} <span>${target} of ${members.total}</span></li>`)}
    ${last < members.total && html`<li>and further steps <span>to all ${members.total}</span></li>`}
  </ol>`;
}

/** The gates of a step: name in `GATES`, title, and what it has seen. Those that are not asked for are left out. */
function gates({ members, settings, failures, step, approved_step, seconds_left, waits_for }) {
  const { succeeded, failed, waiting } = members.step;
  const left = (gate) => (waits_for === gate && seconds_left != null ? `, ${lasts(seconds_left)} left` : "");
  const asks = settings.wait_conditions.length > 0;
  return [
    ["members", "Members get it", `${members.updated} of the ${members.target} that have it after this step`],
    asks && ["reports", `Members report to ${settings.wait_conditions.join(", ")}`,
      `${succeeded} of ${count(succeeded + failed + waiting, "member")} report success, ${settings.min_success_percent} % are needed${left("reports")}`],
    settings.checks > 0 && ["checks", "URLs answer", `${count(settings.checks, "URL is", "URLs are")} asked${left("checks")}`],
    settings.bake_time > 0 && ["bake_time", "Bake time", `${lasts(settings.bake_time)} after each step${left("bake_time")}`],
    settings.approval && ["approval", "Approval",
      approved_step >= step && step ? `step ${approved_step} is approved` : `step ${step} is not approved yet`],
    asks && ["", "Failures", `${failures.count} of ${failures.max + failures.accepted} that may fail in all, ${failed} of ${failures.max_per_step + failures.accepted} in this step`],
    settings.alarms.length > 0 && ["", "Alarms", `${settings.alarms.join(", ")}: one that fires stops it`],
  ].filter(Boolean);
}

/** How far a gate is: those before the one that is waited for have been passed. */
function passage(found, gate) {
  if (!gate) return "";
  const now = GATES.indexOf(found.waits_for);
  if (found.state !== "running" || now < 0) return "";
  const mine = GATES.indexOf(gate);
  return mine < now ? "passed" : mine === now ? "waits for it" : "to come";
}

function Gates({ found }) {
  return html`<div class="wide"><table class="folds">
    <caption>Gates${found.step ? ` of step ${found.step}` : ""}</caption>
    <thead><tr><th scope="col">Gate</th><th scope="col">Now</th><th scope="col">What was seen</th></tr></thead>
    <tbody>
      ${gates(found).map(([gate, title, evidence]) => {
        const now = passage(found, gate);
        return html`<tr key=${title}><th scope="row">${title}</th><td class=${now === "passed" ? "COMPLETE" : now ? "IN_PROGRESS" : ""}>${now}</td><td>${evidence}</td></tr>`;
      })}
    </tbody>
  </table></div>`;
}

/** What can be done with a rollout: name -> label, what will happen, and what takes it back. */
const STEERING = {
  approve: ["Approve", ({ step, members }) => `Step ${step} counts as approved by you: the next one begins once its other gates are passed, and ${members.targets_to_come[0] ?? members.total} of ${members.total} members have what is new after it.`],
  resume: ["Resume", ({ step, failures }) => `It goes on with step ${step}. ${failures.count ? `What has failed so far is accepted: ${count(failures.count, "member")}.` : ""}`, "pause"],
  pause: ["Pause", ({ members }) => `It stops where it is: ${count(members.updated, "member")} of ${members.total} keep what is new, and no other one gets it.`, "resume"],
  promote: ["Promote", ({ members }) => `All ${count(members.total - members.updated, "other member")} get what is new now, whatever the gates say.`],
  abort: ["Abort", ({ members }) => `It ends where it is: ${members.updated} of ${members.total} members keep what is new, the others what they have, and the stack fails. An update of the stack goes on from there.`],
  roll_back: ["Roll back", ({ members }) => `All members get what was there before, ${members.updated} of ${members.total} have to change; the stack fails.`],
};

function Steer({ project, found }) {
  const place = found.path.join("/");
  const path = `stacks/${encodeURIComponent(found.stack_name)}/${found.stack_id}/resources/${encodeURIComponent(found.resource_name)}/rollout`;
  const steer = (act) =>
    act === "approve" ? send("POST", project, `${path}/approval`, { step: found.step }) : send("POST", project, path, { [act]: null });
  return html`<div class="buttons">
    ${Object.entries(STEERING).map(
      ([act, [label, says, back]]) => html`<${Action} key=${act} label=${label} about=${`the rollout of ${place}`} offered=${found.actions.includes(act)}
        danger=${act === "abort" || act === "roll_back"} says=${says(found)} run=${() => steer(act)} undo=${back ? () => steer(back) : null} />`,
    )}
  </div>`;
}

function Failures({ failures }) {
  if (!failures.members.length) return null;
  return html`<details open><summary>What failed members said</summary>
    <ul>${failures.members.map((each) => html`<li key=${each.physical_resource_id}><strong>${each.resource_name ?? each.physical_resource_id}</strong>: ${each.reason}</li>`)}</ul>
  </details>`;
}

function Rollout({ project, found }) {
  const { members } = found;
  const place = found.path.join("/");
  return html`<section class="card" aria-label=${`rollout of ${place}`}>
    <h3>${place} <${Status} value=${found.state} /></h3>
    <p class="quiet">${found.pattern} of ${found.gives}, since <${Moment} at=${found.started_at} />; when a gate says no: ${found.settings.on_failure}</p>
    <${Steps} found=${found} />
    <p>
      <progress max=${members.total || 1} value=${members.updated} aria-label=${`members of ${place} that have what is new`}></progress>
      ${" "}${members.updated} of ${members.total} members have what is new; of this step ${members.step.succeeded} succeeded, ${members.step.failed} failed, ${members.step.waiting} have yet to report
    </p>
    <p>${found.reason}. ${found.released_by && `Released by: ${found.released_by}.`}</p>
    <${Steer} project=${project} found=${found} />
    <${Failures} failures=${found.failures} />
    <${Gates} found=${found} />
  </section>`;
}

/** The rollouts in progress; `none` is shown where there are none. */
export function Rollouts({ project, path, none = null }) {
  const ask = () => get(project, `${path}/rollouts`, { nested_depth: NESTED_DEPTH });
  const { value, error } = useRepeated(ask, [project, path], EVERY_MS);
  const problem = error && html`<${Problem} error=${error} />`;
  if (!value) return problem;
  if (!value.rollouts.length) return html`${problem}${none}`;
  return html`<h2>Rollouts</h2>
    ${problem}
    ${value.rollouts.map((each) => html`<${Rollout} key=${`${each.stack_id} ${each.resource_name}`} project=${project} found=${each} />`)}`;
}

/** The page of them. */
export function RolloutsPage(props) {
  const none = html`<h2>Rollouts</h2>
    <p>None is in progress. How the last one ended is among the events, and in the reason of its group.</p>`;
  return html`<${Rollouts} ...${props} none=${none} />`;
}
