// What the pages of one stack show: asked for once, changed by its events as they come, and asked for again.

import { useEffect, useState } from "../../vendor/hooks.js";
import { follow, get } from "../../api.js";
import { pauseAfter } from "../../parts.js";

const MOVING_MS = 1000;
const RESTING_MS = 5000;
const EVENTS_MAX = 200;
const NESTED_DEPTH = 5;
const COME_BACK_MS = 2000;

async function look(project, path) {
  const [{ stack }, { explanation }, { graph }] = await Promise.all(
    ["", "/explain", "/graph"].map((below) => get(project, path + below)),
  );
  return { stack, explanation, graph };
}

/** A stack after one of its own events, the `count`th that came: what it says of a resource, or of the stack itself. */
function changed(found, event, id, count) {
  const status = event.resource_status;
  if (event.physical_resource_id === id) return { ...found, stack: { ...found.stack, stack_status: status } };
  const resources = found.graph.resources.map((each) =>
    each.name === event.resource_name ? { ...each, status, reason: event.resource_status_reason, event: count } : each,
  );
  return { ...found, graph: { ...found.graph, resources } };
}

/** A stack as it was asked for, with which event was the last of each resource. */
function marked(found, before) {
  const last = new Map(before?.graph.resources.filter((each) => each.event).map((each) => [each.name, each.event]));
  if (!last.size) return found;
  const resources = found.graph.resources.map((each) => (last.has(each.name) ? { ...each, event: last.get(each.name) } : each));
  return { ...found, graph: { ...found.graph, resources } };
}

function isOwn(event, id) {
  return event.links.some((each) => each.rel === "stack" && each.href.endsWith(`/${id}`));
}

// A browser has few connections to one service, which windows that are not looked at would use up with their streams.

/** Resolves when the page is looked at, or is over. */
function seen(over) {
  return new Promise((resolve) => {
    const look = () => {
      if (document.hidden && !over.aborted) return;
      document.removeEventListener("visibilitychange", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    over.addEventListener("abort", look);
    look();
  });
}

/** A signal that ends when the page is not looked at any more, or is over. */
function whileSeen(over) {
  const hidden = new AbortController();
  const look = () => document.hidden && hidden.abort();
  document.addEventListener("visibilitychange", look, { signal: hidden.signal });
  return AbortSignal.any([over, hidden.signal]);
}

const isMoving = (found) => found.stack.stack_status.endsWith("IN_PROGRESS") || found.explanation.resources.length > 0;

/**
 * A stack as it is, while it is looked at.
 *
 * @returns found: its `stack`, `explanation` and `graph`; `error`, the newest; and its `events` and those of its nested stacks, newest first
 */
export function useStack(project, path, id) {
  const [state, setState] = useState({ events: [] });
  useEffect(() => {
    const end = new AbortController();
    const over = () => end.signal.aborted;
    let timer, asking, again, lastEvent, asked = 0, came = 0, shortest = MOVING_MS;

    async function ask() {
      clearTimeout(timer);
      if (asking) {
        again = true;
        return;
      }
      [asking, again, asked] = [true, false, Date.now()];
      let pause = RESTING_MS;
      try {
        if (!document.hidden) {
          const found = await look(project, path);
          shortest = pauseAfter(asked, MOVING_MS);
          if (over()) return;
          setState((before) => ({ ...before, found: marked(found, before.found), error: undefined }));
          pause = isMoving(found) ? shortest : Math.max(shortest, RESTING_MS);
        }
      } catch (error) {
        if (over()) return;
        setState((before) => ({ ...before, error }));
      } finally {
        asking = false;
      }
      timer = setTimeout(ask, again ? shortest : pause);
    }

    /** What an event does not say, such as what waits now, is asked for at once, and then at most once a second. */
    function askSoon() {
      clearTimeout(timer);
      timer = setTimeout(ask, Math.max(0, asked + shortest - Date.now()));
    }

    function take(event) {
      lastEvent = event.id;
      const count = ++came;
      setState(({ found, events, ...rest }) => ({
        ...rest,
        events: [event, ...events].slice(0, EVENTS_MAX),
        found: found && isOwn(event, id) ? changed(found, event, id, count) : found,
      }));
      if (asking) again = true;
      else askSoon();
    }

    async function listen() {
      const first = await get(project, `${path}/events`, { limit: EVENTS_MAX, sort_dir: "desc", nested_depth: NESTED_DEPTH });
      lastEvent = first.events[0]?.id;
      setState((before) => ({ ...before, events: first.events }));
      while (!over()) {
        await seen(end.signal);
        try {
          if (await follow(project, `${path}/events`, { nested_depth: NESTED_DEPTH }, lastEvent, take, whileSeen(end.signal))) return;
        } catch (error) {
          if (over() || error.status === 404) return;
        }
        if (!document.hidden) await new Promise((resolve) => setTimeout(resolve, COME_BACK_MS));
      }
    }

    setState({ events: [] });
    ask();
    listen().catch(() => {}); // what is wrong is shown for the stack itself
    return () => {
      end.abort();
      clearTimeout(timer);
    };
  }, [project, path]);
  return state;
}
