// Which resources are drawn as one node. Pure.

/** With more resources than this, those that are alike are one node. */
export const NODES_MAX = 60;

/**
 * Put resources into classes: each is one node of the picture.
 *
 * Up to NODES_MAX each has a class of its own. Otherwise a class has one type, and it is split by the classes that its members
 * require and are required by, again and again, for as long as that gives no more than NODES_MAX classes.
 *
 * @param resources - with `name`, `type` and, where they require others, `requires`
 * @returns the classes, each a list of resources, and the edges: pairs of indexes, of what requires and what is required
 */
export function fold(resources) {
  const place = new Map(resources.map((each, index) => [each.name, index]));
  const needs = resources.map((each) => (each.requires ?? []).map((name) => place.get(name)).filter((found) => found !== undefined));
  const neededBy = resources.map(() => []);
  needs.forEach((found, index) => found.forEach((needed) => neededBy[needed].push(index)));
  let colors = numbered(resources.map((each, index) => (resources.length > NODES_MAX ? each.type : index)));
  for (let split = true; split && colors.count < resources.length && resources.length > NODES_MAX; ) {
    const of = (found) => [...new Set(found.map((each) => colors.of[each]))].sort((one, other) => one - other).join(",");
    const finer = numbered(resources.map((_, index) => `${colors.of[index]} ${of(needs[index])} ${of(neededBy[index])}`));
    split = finer.count > colors.count && finer.count <= NODES_MAX;
    if (split) colors = finer;
  }
  const classes = Array.from({ length: colors.count }, () => []);
  resources.forEach((each, index) => classes[colors.of[index]].push(each));
  const edges = new Set();
  needs.forEach((found, index) => {
    for (const needed of found) if (colors.of[index] !== colors.of[needed]) edges.add(`${colors.of[index]} ${colors.of[needed]}`);
  });
  return { classes, edges: [...edges].map((each) => each.split(" ").map(Number)) };
}

/** Numbers for values, in the order in which they come first. */
function numbered(values) {
  const numbers = new Map();
  const of = values.map((each) => {
    if (!numbers.has(each)) numbers.set(each, numbers.size);
    return numbers.get(each);
  });
  return { of, count: numbers.size };
}

/** How many of a class, with all that is nested in its members, are complete, in progress, failed and not begun. */
export function counted(members) {
  const found = { COMPLETE: 0, IN_PROGRESS: 0, FAILED: 0, INIT: 0 };
  for (const { status, nested } of members) {
    found[statusOf(status)] += 1;
    if (!nested) continue;
    const failed = Math.min(nested.failed, nested.planned);
    const done = Math.min(Math.max(nested.done - failed, 0), nested.planned - failed);
    found.FAILED += failed;
    found.COMPLETE += done;
    found.IN_PROGRESS += nested.planned - failed - done;
  }
  return found;
}

/** COMPLETE, IN_PROGRESS, FAILED, or INIT for what has not begun. */
export function statusOf(status) {
  if (status.startsWith("INIT")) return "INIT";
  return ["IN_PROGRESS", "FAILED"].find((each) => status.endsWith(each)) ?? "COMPLETE";
}

/** The status of what has these counts: the worst. */
export function worst(counts) {
  return ["FAILED", "IN_PROGRESS", "INIT"].find((each) => counts[each]) ?? "COMPLETE";
}
