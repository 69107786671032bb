// The events of a stack as they happen, the newest first.

import { html, Moment, Status } from "../../parts.js";

export function Events({ events }) {
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
