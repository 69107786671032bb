// What health policies have found of the members of a stack, what holds their recoveries back, and how to approve one.

import { get, send } from "../../api.js";
import { Action, html, Moment, Problem, Status, useRepeated } from "../../parts.js";

const HEALTH_MS = 3000;
const MEMBERS_MAX = 1000;
const EXPLAINED_MAX = 20;
const SHOWN_MAX = 1000;
const HEALTHY_MAX = 100;
/** Why a recovery waits -> what that is called here. */
const HOLDS = {
  held_back: "Held back by the brake",
  blind: "Doubted, since nothing can be seen",
  proposed: "Proposed, and waiting for approval",
  observed: "Only observed",
  verifying: "Recovered, and yet to be found healthy",
  fencing: "Being cut off before another one is made",
  budget: "Waiting for others of the group",
};
/** Those of them that an approval ends. */
const APPROVABLE = ["held_back", "blind", "proposed", "observed"];
const MODES = {
  automatic: "recovers what is unhealthy",
  propose: "proposes recoveries, and waits for approval",
  observe: "only observes",
};

const placeOf = (member) => member.path.join("/");
const resourceOf = (member) => `stacks/${encodeURIComponent(member.stack_name)}/${member.stack_id}/resources/${encodeURIComponent(member.resource_name)}`;

/** The members for which health policies hold, and why those wait that are ill. */
async function checkUp(project, path) {
  const { health: members, policies, hosts, links } = await get(project, `${path}/health`, { limit: MEMBERS_MAX });
  const isWhole = !links.some((each) => each.rel === "next");
  const found = isWhole ? members : await ofAll(project, path);
  const ill = found.filter((each) => each.finding !== "healthy");
  const asked = ill.slice(0, EXPLAINED_MAX).map(async (each) => {
    const { reasons } = (await get(project, `${resourceOf(each)}/explain`)).explanation;
    return [placeOf(each), reasons.find((reason) => reason.resource_name === each.resource_name)];
  });
  return { members, policies, hosts, isWhole, ill, held: new Map(await Promise.all(asked)) };
}

/** The members that are not healthy of more than one page holds. */
async function ofAll(project, path) {
  const asked = ["unhealthy", "unknown"].map((finding) => get(project, `${path}/health`, { finding, limit: MEMBERS_MAX }));
  return (await Promise.all(asked)).flatMap((each) => each.health);
}

/** What each detection has seen of a member, and what was tried. */
export function Verdicts({ member }) {
  const { detected, recovery } = member;
  return html`<ul class="verdicts">
    ${detected.map((each) => html`<li key=${each.type}><${Status} value=${each.finding} /> <strong>${each.type}</strong>: ${each.evidence || "nothing to report"} <span class="quiet">since <${Moment} at=${each.since} /></span></li>`)}
    ${recovery && html`<li>In recovery since <${Moment} at=${recovery.begun_at} />; tried in vain: ${recovery.tried.join(", ") || "nothing yet"}${recovery.fenced.length > 0 && `; cut off: ${recovery.fenced.join(", ")}`}</li>`}
  </ul>`;
}

function Policy({ found }) {
  const limits = [found.max_unhealthy && `recovers none with more than ${found.max_unhealthy} unhealthy`, found.max_per_hour && `begins at most ${found.max_per_hour} of them in an hour`];
  const words = [
    `looks every ${found.interval} s (${found.detection.join(", ")})`,
    `${found.fencing.length ? `cuts off ${found.fencing.join(", ")}, then ` : ""}tries ${found.actions.join(" → ")}`,
    ...limits.filter(Boolean),
  ];
  const of = found.path.length ? `${found.members ? "members of " : ""}${found.path.join("/")}` : "members";
  return html`<li><strong>${of}</strong>: mode <strong>${found.mode}</strong>, ${MODES[found.mode]}; ${words.join("; ")}</li>`;
}

function DeclaredHost({ found }) {
  return html`<li>Host <strong>${found.host}</strong> is declared down since <${Moment} at=${found.since} />: <strong>${found.path.join("/")}</strong> was cut off by that. Found before: ${found.reason}. <span class="quiet">Released by: ${found.released_by}</span></li>`;
}

/** What holds recoveries back, and which. */
function Holds({ held }) {
  const groups = new Map();
  for (const [place, reason] of held) {
    if (reason && HOLDS[reason.why]) groups.set(reason.why, [...(groups.get(reason.why) ?? []), [place, reason]]);
  }
  return [...groups].map(
    ([why, found]) => html`<section class="card" key=${why} aria-label=${HOLDS[why]}>
      <h3>${HOLDS[why]}: ${found.length}</h3>
      <ul>${found.map(([place, reason]) => html`<li key=${place}><strong>${place}</strong>: ${reason.reason}</li>`)}</ul>
      <p class="quiet">Released by: ${found[0][1].released_by}</p>
    </section>`,
  );
}

const approve = (project, member) => send("POST", project, `${resourceOf(member)}/recovery`);

function Approval({ project, member, policies }) {
  const policy = policies.find((each) => (each.members ? member.path.slice(0, -1) : member.path).join("/") === each.path.join("/"));
  const says = html`<p>The recovery of <strong>${placeOf(member)}</strong> begins now, whatever holds it back${policy ? html`: ${policy.actions.join(" → ")}, one by one until it is healthy` : ""}.</p>
    <p>${member.reason}</p>`;
  return html`<${Action} label="Approve" done="recovery begins" about=${`the recovery of ${placeOf(member)}`} says=${says} run=${() => approve(project, member)} />`;
}

function Ill({ project, found }) {
  const { ill, held, policies } = found;
  const waits = (each) => held.get(placeOf(each));
  const waiting = ill.filter((each) => each.finding === "unhealthy" && APPROVABLE.includes(waits(each)?.why));
  const all = async () => {
    for (const each of waiting) await approve(project, each);
  };
  return html`
    ${waiting.length > 1 && html`<div><${Action} label=${`Approve all ${waiting.length}`} about="recoveries" done="recoveries begin" says=${`The recoveries of these begin now, whatever holds them back: ${waiting.map(placeOf).join(", ")}.`} run=${all} /></div>`}
    <div class="wide">
      <table class="folds">
        <thead>
          <tr><th scope="col">Member</th><th scope="col">Finding</th><th scope="col">Why, and what is done about it</th><th scope="col">Recovery</th></tr>
        </thead>
        <tbody>
          ${ill.slice(0, SHOWN_MAX).map((each) => {
            const place = placeOf(each);
            const reason = waits(each);
            return html`<tr key=${place}>
              <th scope="row">${place}</th>
              <td><${Status} value=${each.finding} /></td>
              <td>
                ${reason?.reason ? `waits: ${reason.reason}; released by: ${reason.released_by}` : each.reason}
                <details><summary>Evidence</summary><${Verdicts} member=${each} /></details>
              </td>
              <td>${waiting.includes(each) && html`<${Approval} project=${project} member=${each} policies=${policies} />`}</td>
            </tr>`;
          })}
        </tbody>
      </table>
    </div>`;
}

function Healthy({ members }) {
  const found = members.filter((each) => each.finding === "healthy");
  if (!found.length) return null;
  return html`<details><summary>Healthy members: ${found.length}</summary>
    ${found.length > HEALTHY_MAX && html`<p class="quiet">The first ${HEALTHY_MAX} are shown.</p>`}
    ${found.slice(0, HEALTHY_MAX).map((each) => html`<h3 key=${each.resource_name}>${placeOf(each)}</h3><${Verdicts} member=${each} />`)}
  </details>`;
}

/** What health policies have found; `none` where none holds. `whole` shows more than what is ill. */
export function Health({ project, path, none = null, whole = false }) {
  const { value, error } = useRepeated(() => checkUp(project, path), [project, path], HEALTH_MS);
  const problem = error && html`<${Problem} error=${error} />`;
  if (!value) return problem;
  const { members, policies, hosts, isWhole, ill, held } = value;
  if (!members.length && !policies.length) return html`${problem}${none}`;
  const illCount = ill.length < MEMBERS_MAX ? ill.length : `${MEMBERS_MAX} or more`;
  return html`<h2>Health</h2>
    ${problem}
    <p>
      ${isWhole ? `${members.length - ill.length} of ${members.length} members are healthy` : `${illCount} of more than ${MEMBERS_MAX} members are not healthy`}
    </p>
    ${whole && html`<ul class="policies">${policies.map((each) => html`<${Policy} key=${each.path.join("/")} found=${each} />`)}</ul>`}
    ${hosts.length > 0 && html`<ul class="hosts">${hosts.map((each) => html`<${DeclaredHost} key=${each.host} found=${each} />`)}</ul>`}
    ${whole && html`<${Holds} held=${held} />`}
    ${ill.length > 0 && html`<${Ill} project=${project} found=${value} />`}
    ${whole && isWhole && html`<${Healthy} members=${members} />`}`;
}

/** The page of it. */
export function HealthPage(props) {
  const none = html`<h2>Health</h2>
    <p>No health policy holds for anything here. A <code>Homeostat::HealthPolicy</code> in the template gives a group or a server one, a cluster gets it attached.</p>`;
  return html`<${Health} ...${props} none=${none} whole=${true} />`;
}
