// What all pages share: markup, states of what is asked for, times.

import { h } from "./vendor/preact.js";
import { useEffect, useRef, useState } from "./vendor/hooks.js";
import htm from "./vendor/htm.js";

export const html = htm.bind(h);

/** Status of a stack or resource, as text and in its color. */
export function Status({ value }) {
  const status = ["IN_PROGRESS", "COMPLETE", "FAILED"].find((each) => String(value).endsWith(each)) ?? "";
  return html`<span class=${`status ${status}`}>${String(value).replaceAll("_", " ").toLowerCase()}</span>`;
}

/** Why something could not be shown. */
export function Problem({ error }) {
  return html`<p class="error" role="alert">${error.message}</p>`;
}

/**
 * Ask again and again while the page is looked at.
 *
 * @param ask - gives a promise of a value; what it depends on is in `inputs`
 * @param everyMs - pause after an answer
 * @returns the newest value, and the newest error
 */
export function useRepeated(ask, inputs, everyMs) {
  const [found, setFound] = useState({});
  const alive = useRef(0);
  useEffect(() => {
    const mine = ++alive.current;
    let timer;
    async function once() {
      if (document.hidden) {
        timer = setTimeout(once, everyMs);
        return;
      }
      try {
        const value = await ask();
        if (mine === alive.current) setFound({ value });
      } catch (error) {
        if (mine === alive.current) setFound((before) => ({ ...before, error }));
      }
      if (mine === alive.current) timer = setTimeout(once, everyMs);
    }
    setFound({});
    once();
    return () => {
      alive.current++;
      clearTimeout(timer);
    };
  }, inputs);
  return found;
}

/** The title of the window, and of the page for those who hear it. */
export function useTitle(text) {
  useEffect(() => {
    document.title = text ? `${text} · Homeostat` : "Homeostat";
  }, [text]);
}

/** A time of the API as that of this place. */
export function Moment({ at }) {
  if (!at) return null;
  const moment = new Date(/[Z+]/.test(at.slice(10)) ? at : `${at}Z`);
  return html`<time dateTime=${moment.toISOString()}>${moment.toLocaleString()}</time>`;
}
