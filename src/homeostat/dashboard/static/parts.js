// What all pages share: markup, states of what is asked for, times.

import { h } from "./vendor/preact.js";
import { useEffect, useLayoutEffect, useRef, useState } from "./vendor/hooks.js";
import htm from "./vendor/htm.js";

export const html = htm.bind(h);

/** What a word means that is a status somewhere -> how its ends look. */
const LOOKS = [
  ["FAILED", /(FAILED|^ERROR|^CRITICAL|^UNHEALTHY|^HELD|^DOWN|^FAIL)$/],
  ["COMPLETE", /(COMPLETE|^ACTIVE|^SUCCEEDED|^HEALTHY|^UP|^OK)$/],
  ["IN_PROGRESS", /(IN_PROGRESS|ING|^WARN|^PAUSED|^READY|^INIT)$/],
];

/** A status of whatever there is, as text and in its color. */
export function Status({ value }) {
  const word = String(value);
  const [look] = LOOKS.find(([, fits]) => fits.test(word.toUpperCase())) ?? [""];
  return html`<span class=${`status ${look}`}>${word.replaceAll("_", " ").toLowerCase()}</span>`;
}

/** Why something could not be shown. */
export function Problem({ error }) {
  return html`<p class="error" role="alert">${error.message}</p>`;
}

/** An answer that takes long costs the service much: asking takes at most this share of the time. */
const SHARE = 0.2;

/** The pause before something is asked for again that was asked for at this time and has just been answered. */
export function pauseAfter(askedAt, everyMs) {
  return Math.max(everyMs, (Date.now() - askedAt) / SHARE);
}

/**
 * Ask again and again while the page is looked at.
 *
 * @param ask - gives a promise of a value; what it depends on is in `inputs`
 * @param everyMs - pause after an answer; longer after one that took long
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
      const askedAt = Date.now();
      try {
        const value = await ask();
        if (mine === alive.current) setFound({ value });
      } catch (error) {
        if (mine === alive.current) setFound((before) => ({ ...before, error }));
      }
      if (mine === alive.current) timer = setTimeout(once, pauseAfter(askedAt, everyMs));
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

/**
 * What was asked for (see `useRepeated`), once it is there, and what is wrong.
 *
 * @param show - markup of the value
 * @param instead - of an error: markup that stands for it, or nothing
 */
export function Await({ asked, show, instead = () => null }) {
  const { value, error } = asked;
  if (error) {
    const shown = instead(error);
    if (shown) return shown;
  }
  return html`${error && html`<${Problem} error=${error} />`}${value ? show(value) : !error && html`<p class="quiet">One moment…</p>`}`;
}

/** Whether texts have all words that are searched. */
export function fits(texts, wanted) {
  const text = texts.filter(Boolean).join(" ").toLowerCase();
  return wanted.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** Where to type what a list is searched for. */
export function Search({ value, search, what }) {
  return html`<p>
    <label>Search <input type="search" value=${value} onInput=${(event) => search(event.target.value)} placeholder=${what} /></label>
  </p>`;
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

/** What a form says as a number; null where it says nothing. */
export function number(data, name) {
  return data.get(name) === "" ? null : Number(data.get(name));
}

/** Links to the pages of one thing; `overview` is at its own address. */
export function Tabs({ here, open, pages }) {
  return html`<nav class="tabs" aria-label="pages of this">
    ${pages.map(([key, title]) => html`<a href=${key === "overview" ? here : `${here}/${key}`} aria-current=${key === open ? "page" : null}>${title}</a>`)}
  </nav>`;
}

/**
 * A button that asks once, says what will happen, and offers to undo it where that can be.
 *
 * @param label - of the button
 * @param says - what will happen: text or markup, in the question, or a function that gives it; null where nothing is to be asked
 * @param run - does it; gets the FormData of `fields`, and the value of `look`
 * @param look - finds out what will happen, when the question is asked; `says` gets its value
 * @param undo - takes it back; gets what `run` has given; null where nothing can
 * @param fields - markup of what else is asked for
 * @param about - what it is done with, for those who hear the page: buttons of several things have the same label
 * @param done - how far it is when `run` has ended: what is only begun by then has not been done
 * @param offered - whether it can be done now; what it has done stays there when it no longer can
 */
export function Action({ label, says, run, look = null, undo = null, fields = null, danger = false, about = "", done = "done", offered = true, disabled = false }) {
  const dialog = useRef(null);
  const [state, setState] = useState({});
  const [open, setOpen] = useState(false);
  useLayoutEffect(() => {
    if (open) dialog.current.showModal();
  }, [open]);
  const name = about ? `${label} ${about}` : label;
  const attempt = async (act, then) => {
    setState((before) => ({ ...before, error: null, busy: true }));
    try {
      setState(then(await act()));
      dialog.current?.close();
    } catch (error) {
      setState((before) => ({ ...before, error, busy: false, asked: dialog.current?.open }));
    }
  };
  const take = (data) => attempt(() => run(data, state.found), (given) => ({ done: `${label}: ${done}.`, undo: undo && (() => undo(given)) }));
  const send = (event) => {
    event.preventDefault();
    take(new FormData(event.target));
  };
  const ask = async () => {
    setState({ busy: Boolean(look) });
    setOpen(true);
    if (!look) return;
    try {
      setState({ found: await look() });
    } catch (error) {
      setState({ error, asked: true });
    }
  };
  const isKnown = !look || state.found !== undefined;
  const waits = state.error ? null : "One moment…";
  return html`<span class="action">
    ${offered && html`<button type="button" class=${danger ? "danger" : ""} aria-label=${about ? name : null} disabled=${disabled} onClick=${says === null ? () => take() : ask}>${label}</button>`}
    ${open &&
    html`<dialog ref=${dialog} aria-label=${name} onClose=${() => setOpen(false)}>
      <form onSubmit=${send}>
        <h2>${label}${about ? ` ${about}` : ""}</h2>
        <div class="says">${isKnown ? (typeof says === "function" ? says(state.found) : says) : waits}</div>
        ${fields}
        ${state.asked && state.error && html`<${Problem} error=${state.error} />`}
        <p class="buttons">
          <button class=${danger ? "danger" : ""} disabled=${state.busy || !isKnown}>${label}</button>
          <button type="button" onClick=${() => dialog.current.close()}>Leave it</button>
        </p>
      </form>
    </dialog>`}
    ${state.error && !state.asked && html`<${Problem} error=${state.error} />`}
    <span role="status">
      ${state.done ?? ""}
      ${state.undo && html` <button type="button" disabled=${state.busy} onClick=${() => attempt(state.undo, () => ({ done: "Undone." }))}>Undo</button>`}
    </span>
  </span>`;
}
