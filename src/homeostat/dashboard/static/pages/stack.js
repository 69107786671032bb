// One stack: how it is, what waits and why, its resources, outputs and events as they happen.

import { useEffect, useMemo, useState } from "../vendor/hooks.js";
import { follow, get } from "../api.js";
import { html, Moment, Problem, Status, useRepeated, useTitle } from "../parts.js";
import { Rollouts } from "./rollouts.js";

const EVERY_MS = 1000;
const HEALTH_MS = 3000;
const MEMBERS_MAX = 1000;
const EXPLAINED_MAX = 20;
const EVENTS_MAX = 200;
const RESOURCES_MAX = 1000;
const COME_BACK_MS = 2000;

/** Events, the newest first: those that were, and those that come. */
function useEvents(project, path) {
  const [events, setEvents] = useState([]);
  useEffect(() => {
    const end = new AbortController();
    let last;
    function take(event) {
      last = event.id;
      setEvents((before) => [event, ...before].slice(0, EVENTS_MAX));
    }
    async function run() {
      const first = await get(project, `${path}/events`, { limit: EVENTS_MAX, sort_dir: "desc" });
      last = first.events[0]?.id;
      setEvents(first.events);
      while (!end.signal.aborted) {
        try {
          if (await follow(project, `${path}/events`, last, take, end.signal)) return;
        } catch (error) {
          if (end.signal.aborted || error.status === 404) return;
        }
        await new Promise((resolve) => setTimeout(resolve, COME_BACK_MS));
      }
    }
    setEvents([]);
    run().catch(() => {}); // what is wrong is shown for the stack itself
    return () => end.abort();
  }, [project, path]);
  return events;
}

/** What is shown of a stack; of a large one, only the resources that wait. */
async function look(project, path) {
  const [{ stack }, { explanation }] = await Promise.all([get(project, path), get(project, `${path}/explain`)]);
  const large = explanation.progress.planned > RESOURCES_MAX;
  const resources = large ? explanation.resources : (await get(project, `${path}/resources`)).resources;
  return { stack, explanation, resources: resources.filter((each) => each.path === undefined || each.path.length === 1), large };
}

function Progress({ explanation }) {
  const { done, planned } = explanation.progress ?? {};
  if (!planned || done >= planned) return null;
  const seconds = explanation.estimate?.seconds;
  const left = seconds == null ? "" : `, about ${Math.ceil(seconds)} s left`;
  return html`<p><progress max=${planned} value=${done} aria-label="progress"></progress> ${done} of ${planned}${left}</p>`;
}

function nested(project, resource) {
  const link = resource.links?.find((each) => each.rel === "nested");
  const found = link && /\/stacks\/([^/]+)\/([^/]+)$/.exec(link.href);
  return found ? `#/${encodeURIComponent(project)}/stacks/${found[1]}/${found[2]}` : null;
}

function Resources({ project, resources, reasons }) {
  const why = useMemo(() => new Map(reasons.map((each) => [each.resource_name, each])), [reasons]);
  return html`<div class="wide">
    <table>
      <thead>
        <tr><th scope="col">Name</th><th scope="col" class="rest">Type</th><th scope="col">Status</th><th scope="col">What waits, and why</th></tr>
      </thead>
      <tbody>
        ${resources.map((each) => {
          const below = nested(project, each);
          const reason = why.get(each.resource_name);
          return html`<tr key=${each.resource_name}>
            <td>${below ? html`<a href=${below}>${each.resource_name}</a>` : each.resource_name}</td>
            <td class="rest">${each.resource_type}</td>
            <td><${Status} value=${each.resource_status} /></td>
            <td>${reason ? [reason.reason, reason.released_by && `released by: ${reason.released_by}`].filter(Boolean).join("; ") : ""}</td>
          </tr>`;
        })}
      </tbody>
    </table>
  </div>`;
}

function Outputs({ outputs }) {
  if (!outputs?.length) return null;
  return html`<h2>Outputs</h2>
    ${outputs.map(
      (each) => html`<details key=${each.output_key} open=${outputs.length < 4}>
        <summary>${each.output_key}${each.description && each.description !== "No description given" ? html` <span class="quiet">${each.description}</span>` : ""}</summary>
        <pre>${each.output_error ?? (typeof each.output_value === "string" ? each.output_value : JSON.stringify(each.output_value, null, 2))}</pre>
      </details>`,
    )}`;
}

/** The members for which health policies hold, and why those wait that are ill. */
async function checkUp(project, path) {
  const { health: members, links } = await get(project, `${path}/health`, { limit: MEMBERS_MAX });
  const isWhole = !links.some((each) => each.rel === "next");
  const found = isWhole ? members : await ofAll(project, path);
  const ill = found.filter((each) => each.finding !== "healthy");
  const asked = ill.slice(0, EXPLAINED_MAX).map(async (each) => {
    const place = `stacks/${each.stack_name}/${each.stack_id}/resources/${encodeURIComponent(each.resource_name)}/explain`;
    const { reasons } = (await get(project, place)).explanation;
    return [each.path.join("/"), reasons.find((reason) => reason.resource_name === each.resource_name)];
  });
  return { members, isWhole, ill, held: new Map(await Promise.all(asked)) };
}

/** The members that are not healthy of more than one page holds. */
async function ofAll(project, path) {
  const asked = ["unhealthy", "unknown"].map((finding) => get(project, `${path}/health`, { finding, limit: MEMBERS_MAX }));
  return (await Promise.all(asked)).flatMap((each) => each.health);
}

/** What health policies have found; nothing where none holds. */
function Health({ project, path }) {
  const { value } = useRepeated(() => checkUp(project, path), [project, path], HEALTH_MS);
  if (!value?.members.length) return null;
  const { members, isWhole, ill, held } = value;
  const illCount = ill.length < MEMBERS_MAX ? ill.length : `${MEMBERS_MAX} or more`;
  return html`<h2>Health</h2>
    <p>
      ${isWhole ? `${members.length - ill.length} of ${members.length} members are healthy` : `${illCount} of more than ${MEMBERS_MAX} members are not healthy`}
    </p>
    ${ill.length > 0 &&
    html`<div class="wide">
      <table>
        <thead>
          <tr><th scope="col">Member</th><th scope="col">Finding</th><th scope="col">Why, and what is done about it</th></tr>
        </thead>
        <tbody>
          ${ill.slice(0, RESOURCES_MAX).map((each) => {
            const place = each.path.join("/");
            const waits = held.get(place);
            const tried = each.recovery?.tried.length ? `tried: ${each.recovery.tried.join(", ")}` : "";
            return html`<tr key=${place}>
              <td>${place}</td>
              <td class=${each.finding === "unhealthy" ? "FAILED status" : "status"}>${each.finding}</td>
              <td>${[each.reason, tried, waits && `waits: ${waits.reason}; released by: ${waits.released_by}`].filter(Boolean).join("; ")}</td>
            </tr>`;
          })}
        </tbody>
      </table>
    </div>`}`;
}

function Events({ events }) {
  return html`<h2>Events</h2>
    <ol class="events" aria-live="off">
      ${events.map(
        (each) => html`<li key=${each.id}>
          <${Moment} at=${each.event_time} /> <strong>${each.resource_name}</strong> <${Status} value=${each.resource_status} />
          <span class="quiet"> ${each.resource_status_reason === "state changed" ? "" : each.resource_status_reason}</span>
        </li>`,
      )}
    </ol>`;
}

export function Stack({ project, name, id }) {
  useTitle(name);
  const path = `stacks/${encodeURIComponent(name)}/${encodeURIComponent(id)}`;
  const { value, error } = useRepeated(() => look(project, path), [project, path], EVERY_MS);
  const events = useEvents(project, path);
  const up = value?.stack.parent ? null : html`<p><a href=${`#/${encodeURIComponent(project)}/stacks`}>All stacks</a></p>`;
  return html`
    ${up}
    <h1>${name}</h1>
    ${error && html`<${Problem} error=${error} />`}
    ${value &&
    html`<p role="status"><${Status} value=${value.stack.stack_status} /> <span class="quiet">${value.stack.stack_status_reason}</span></p>
      <${Progress} explanation=${value.explanation} />
      <h2>Resources</h2>
      ${value.large && html`<p class="quiet">It has more than ${RESOURCES_MAX} resources, with all that is nested in it: shown are those that wait.</p>`}
      <${Resources} project=${project} resources=${value.resources} reasons=${value.explanation.resources ?? []} />
      <${Rollouts} project=${project} path=${path} />
      <${Health} project=${project} path=${path} />
      <${Outputs} outputs=${value.stack.outputs} />`}
    <${Events} events=${events} />
  `;
}
