// What the pages of one stack show: asked for again and again, and told by its events.

import { useEffect, useState } from "../../vendor/hooks.js";
import { follow, get } from "../../api.js";

export const RESOURCES_MAX = 1000;
const EVENTS_MAX = 200;
const COME_BACK_MS = 2000;

/** Events, the newest first: those that were, and those that come. */
export function useEvents(project, path) {
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
export async function look(project, path) {
  const [{ stack }, { explanation }] = await Promise.all([get(project, path), get(project, `${path}/explain`)]);
  const large = explanation.progress.planned > RESOURCES_MAX;
  const resources = large ? explanation.resources : (await get(project, `${path}/resources`)).resources;
  return { stack, explanation, resources: resources.filter((each) => each.path === undefined || each.path.length === 1), large };
}
