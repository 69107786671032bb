// What an update would do, as the API's preview tells it: in numbers, and resource by resource.

import { html } from "../../parts.js";

/** Change -> what will become of so many resources; in the order of how much it matters. */
const WORDS = { replaced: "replaced", deleted: "deleted", updated: "updated", added: "created" };
const FAILS = "it would fail: ";
const WAITS = "it would wait: ";
const ALIKE_MAX = 8;
const VALUE_MAX = 400;

/** How many resources change how, those included that are not listed one by one. */
function counted(preview) {
  const counts = Object.fromEntries(Object.entries(preview.resource_changes).map(([change, entries]) => [change, entries.length]));
  for (const each of preview.more_members) counts[each.change] += each.count;
  return counts;
}

/** The resources that are not at rest, and of which nothing would be done for now. */
const waiting = (preview) => preview.resource_changes.unchanged.filter((each) => each.change_reason.startsWith(WAITS));

/** A sentence: what will become of how many resources. */
export function summary(preview) {
  const counts = counted(preview);
  const parts = Object.entries(WORDS).filter(([change]) => counts[change]).map(([change, word]) => `${counts[change]} will be ${word}`);
  const waits = waiting(preview).length;
  const later = waits ? ` Of these ${waits} would wait.` : "";
  if (!parts.length) return `Nothing to do: ${counts.unchanged} unchanged.${later}`;
  const failing = Object.values(preview.resource_changes).flat().filter((each) => each.change_reason.startsWith(FAILS)).length;
  return `${parts.join(", ")}; ${counts.unchanged} unchanged.${later}${failing ? ` ${failing} would fail.` : ""}`;
}

/** Where two values differ: maps key by key, lists of equal length item by item. */
function* apart(name, before, after) {
  const isMap = (value) => value !== null && typeof value === "object" && !Array.isArray(value) && Object.keys(value).length > 0;
  if (isMap(before) && isMap(after)) {
    for (const key of [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()) yield* apart(`${name}.${key}`, before[key], after[key]);
  } else if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    for (const [index, old] of before.entries()) yield* apart(`${name}[${index}]`, old, after[index]);
  } else if (name.includes(".") || name.includes("[") ? JSON.stringify(before) !== JSON.stringify(after) : true) {
    yield [name, before, after];
  }
}

/** A value in one line; what is long is cut. */
export function shown(value) {
  if (value === undefined || value === null) return "–";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > VALUE_MAX ? `${text.slice(0, VALUE_MAX)}…` : text;
}

/** The resources that change, by their place; of many alike in one group the first, and how many more there are. */
function listed(preview) {
  const placed = (change, found) => found.map((each) => ({ ...each, change, place: [...each.path, each.resource_name].join("/") }));
  const entries = [...Object.keys(WORDS).flatMap((change) => placed(change, preview.resource_changes[change])), ...placed("waits", waiting(preview))];
  entries.sort((one, other) => one.place.localeCompare(other.place, undefined, { numeric: true }));
  const group = (each) => `${each.change} ${each.path.join("/")}`;
  const more = new Map(preview.more_members.map((each) => [group(each), each.count]));
  const seen = new Map();
  const found = [];
  for (const each of entries) {
    const count = (seen.get(group(each)) ?? 0) + 1;
    seen.set(group(each), count);
    if (!each.path.length || count <= ALIKE_MAX) found.push(each);
    else more.set(group(each), (more.get(group(each)) ?? 0) + 1);
  }
  return found.map((each) => ({ ...each, more: each.path.length && seen.get(group(each)) && lastOf(found, each, group) ? more.get(group(each)) : 0 }));
}

function lastOf(found, each, group) {
  return found.findLast((other) => group(other) === group(each)) === each;
}

/** What will become of each resource, and which of its properties differ. */
export function Plan({ preview }) {
  const entries = listed(preview);
  return html`<p><strong>${summary(preview)}</strong></p>
    ${entries.length > 0 &&
    html`<ul class="plan">
      ${entries.map((each) => {
        const differences = each.property_changes.flatMap((found) => [...apart(found.name, found.before, found.after)]);
        return html`<li key=${`${each.change} ${each.place}`}>
          <span class=${`change ${each.change}`}>${WORDS[each.change] ?? "waits"}</span> <strong>${each.place}</strong> <span class="quiet">${each.resource_type}</span>
          ${each.change_reason && html` <span class=${each.change_reason.startsWith(FAILS) ? "FAILED" : ""}>${each.change_reason}</span>`}
          ${differences.length > 0 &&
          html`<dl>${differences.map(([name, before, after]) => html`<dt>${name}</dt><dd><del>${shown(before)}</del> → <ins>${shown(after)}</ins></dd>`)}</dl>`}
          ${each.more > 0 && html`<p class="quiet">and ${each.more} more alike</p>`}
        </li>`;
      })}
    </ul>`}`;
}
