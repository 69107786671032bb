// What health policies have found of the members of a stack, and what is done about it.

import { get } from "../../api.js";
import { html, useRepeated } from "../../parts.js";

const HEALTH_MS = 3000;
const MEMBERS_MAX = 1000;
const EXPLAINED_MAX = 20;
const SHOWN_MAX = 1000;

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
export function Health({ project, path }) {
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
          ${ill.slice(0, SHOWN_MAX).map((each) => {
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
