// Changes of a stack: what an update would do, before it is sent; actions on the whole stack; its deletion.

import { useEffect, useState } from "../../vendor/hooks.js";
import { get, getText, send, sendFor } from "../../api.js";
import { Action, html, Problem } from "../../parts.js";
import { countAll, isLarge } from "./drift.js";
import { Plan, summary } from "./plan.js";

const NESTED_DEPTH = 50;
const NAMED_MAX = 30;

/** The declarations of a template's parameters, in either language, as validation describes them. */
function declared(template) {
  const found = Object.entries(template.parameters ?? template.Parameters ?? {});
  const allowed = (each) => each.AllowedValues ?? each.constraints?.find((one) => one.allowed_values)?.allowed_values;
  return found.map(([name, each]) => ({
    name,
    hidden: [true, "true"].includes(each.hidden ?? each.NoEcho),
    description: each.description ?? each.Description ?? "",
    allowed: allowed(each),
  }));
}

/** Those of a template that was edited. */
async function validated(project, path, template) {
  const [files, { resource_registry }] = await Promise.all([get(project, `${path}/files`), get(project, `${path}/environment`)]);
  const { Parameters } = await send("POST", project, "validate", { template, files, environment: { resource_registry } });
  return Object.entries(Parameters).map(([name, each]) => ({
    name,
    hidden: each.NoEcho === "true",
    description: each.Description,
    allowed: each.AllowedValues,
    fallback: each.Default,
  }));
}

async function current(project, path) {
  const [text, template, { stack }] = await Promise.all([getText(project, `${path}/template`), get(project, `${path}/template`), get(project, path, { resolve_outputs: false })]);
  return { text, parameters: declared(template), values: stack.parameters, tags: (stack.tags ?? []).join(", ") };
}

/** What the form asks for that differs from what the stack has. */
function changes(base, form) {
  const hidden = new Set(base.parameters.filter((each) => each.hidden).map((each) => each.name));
  const values = Object.entries(form.values).filter(([name, value]) => value !== (hidden.has(name) ? "" : (base.values[name] ?? "")));
  return {
    ...(form.text === base.text ? {} : { template: form.text }),
    ...(values.length ? { parameters: Object.fromEntries(values) } : {}),
    ...(form.tags === base.tags ? {} : { tags: form.tags }),
    ...(form.converge ? { converge: true } : {}),
  };
}

function Parameter({ found, base, value, change }) {
  const set = (event) => change(found.name, event.target.value);
  const label = html`${found.name}${found.description && html` <span class="quiet">${found.description}</span>`}`;
  if (found.hidden) return html`<label>${label} <input type="password" autocomplete="off" value=${value ?? ""} onInput=${set} placeholder=${base === undefined ? "" : "hidden; empty: as it is"} /></label>`;
  const now = value ?? base ?? (typeof found.fallback === "object" ? JSON.stringify(found.fallback) : found.fallback) ?? "";
  if (found.allowed) return html`<label>${label} <select value=${now} onChange=${set}>${now === "" && html`<option value=""></option>`}${found.allowed.map((each) => html`<option value=${each}>${each}</option>`)}</select></label>`;
  return html`<label>${label} <input value=${now} onInput=${set} /></label>`;
}

function Update({ project, path }) {
  const [turn, setTurn] = useState(0);
  const [base, setBase] = useState(null);
  const [form, setForm] = useState(null);
  const [preview, setPreview] = useState(null);
  const [state, setState] = useState({});
  useEffect(() => {
    let mine = true;
    current(project, path).then(
      (found) => {
        if (!mine) return;
        setBase(found);
        setForm({ text: found.text, tags: found.tags, values: {}, converge: false });
        setPreview(null);
      },
      (error) => mine && setState({ error }),
    );
    return () => {
      mine = false;
    };
  }, [project, path, turn]);
  if (!form) return state.error ? html`<${Problem} error=${state.error} />` : html`<p class="quiet">One moment…</p>`;
  const change = (more) => {
    setForm({ ...form, ...more });
    setPreview(null);
  };
  const read = async (event) => {
    const text = event.target.value;
    try {
      const parameters = await validated(project, path, text);
      setBase({ ...base, parameters });
      setState({});
    } catch (error) {
      setState({ error });
    }
  };
  const body = changes(base, form);
  const ask = async (event) => {
    event.preventDefault();
    setState({ busy: true });
    try {
      const { value: found, tag } = await sendFor(null, "PATCH", project, `${path}/preview`, body, { show_nested: true });
      setPreview({ found, tag, body, before: { revision: found.revision, ...(body.tags === undefined ? {} : { tags: base.tags }) } });
      setState({});
    } catch (error) {
      setState({ error });
    }
  };
  const isChanged = Object.keys(body).length > 0;
  return html`<form class="update" onSubmit=${ask}>
      <p><label class="block">Template <textarea rows="16" spellcheck="false" value=${form.text} onInput=${(event) => change({ text: event.target.value })} onChange=${read}></textarea></label></p>
      ${base.parameters.length > 0 &&
      html`<fieldset>
        <legend>Parameters</legend>
        ${base.parameters.map(
          (each) => html`<p key=${each.name}><${Parameter} found=${each} base=${base.values[each.name]} value=${form.values[each.name]} change=${(name, value) => change({ values: { ...form.values, [name]: value } })} /></p>`,
        )}
      </fieldset>`}
      <p><label>Tags <input value=${form.tags} onInput=${(event) => change({ tags: event.target.value })} /></label></p>
      <p><label><input type="checkbox" checked=${form.converge} onChange=${(event) => change({ converge: event.target.checked })} /> bring back what differs, too</label></p>
      ${state.error && html`<${Problem} error=${state.error} />`}
      <p><button disabled=${state.busy}>Preview</button> <span class="quiet">${isChanged ? "" : "Nothing is changed yet."}</span></p>
    </form>
    <div role="status">${preview && html`<${Plan} preview=${preview.found} />`}</div>
    <p>
      <${Action}
        label="Update"
        disabled=${!preview}
        says=${preview ? html`<p>${summary(preview.found)}</p>` : ""}
        run=${async () => {
          const { before } = preview;
          const { tag } = await sendFor(preview.tag, "PATCH", project, path, preview.body);
          setTurn(turn + 1);
          return { before, tag };
        }}
        undo=${async ({ before, tag }) => {
          await sendFor(tag, "PATCH", project, path, before);
          setTurn((one) => one + 1);
        }}
      />
    </p>`;
}

/** What is left of a stack when it goes: of each resource, what its deletion policy says; of a large one, of its own resources. */
async function fates(project, path, graph, large) {
  if (!graph.listed) return { gone: graph.planned, kept: [], copied: [] };
  const { resources } = await get(project, `${path}/resources`, large ? {} : { nested_depth: NESTED_DEPTH });
  const named = (policy) => resources.filter((each) => each.deletion_policy === policy).map((each) => (each.parent_resource ? `${each.parent_resource}/${each.resource_name}` : each.resource_name));
  const kept = named("Retain");
  return { gone: (large ? countAll(graph) : resources.length) - kept.length, kept, copied: named("Snapshot") };
}

function list(names) {
  return `${names.slice(0, NAMED_MAX).join(", ")}${names.length > NAMED_MAX ? ` and ${names.length - NAMED_MAX} more` : ""}`;
}

function Delete({ project, path, found }) {
  const large = isLarge(found);
  return html`<${Action}
    label="Delete"
    danger
    look=${() => fates(project, path, found.graph, large)}
    says=${({ gone, kept, copied }) => html`<p>The stack ${found.stack.stack_name} will be deleted with ${gone} ${gone === 1 ? "resource" : "resources"}, nested ones included, and with its snapshots.</p>
      ${kept.length > 0 && html`<p>Kept, as their deletion policy says: ${list(kept)}.</p>`}
      ${copied.length > 0 && html`<p>Copied first, as their deletion policy says: ${list(copied)}.</p>`}
      ${large && html`<p>It is large: what deletion policies keep or copy of nested resources is not listed here.</p>`}
      <p>This cannot be undone: an update meanwhile brings the stack back, with new things in the place of those that are gone.</p>`}
    run=${() => send("DELETE", project, path)}
  />`;
}

/** Action -> its button, what it does, and the action that takes it back. */
const ACTIONS = {
  check: ["Check", "Every resource is looked at, and its health reported; nothing is changed."],
  observe: ["Look", "Everything is looked at now; what differs is brought back where convergence is on."],
  converge: ["Converge", "Everything is looked at, what differs is brought back, and what has failed is tried again, whatever the switches say."],
  suspend: ["Suspend", "Its resources are suspended, servers for one: they stop their work until you resume the stack.", "resume"],
  resume: ["Resume", "Its resources work again.", "suspend"],
  cancel_update: ["Cancel the update", "What is in progress is stopped, and the stack goes back to how it was before."],
  cancel_without_rollback: ["Stop", "What is in progress is stopped, and the stack stays as it is then."],
};

export function Change({ project, path, found }) {
  const act = (action) => send("POST", project, `${path}/actions`, { [action]: null });
  return html`<h2>Update</h2>
    <${Update} project=${project} path=${path} />
    <h2>Actions</h2>
    <p class="buttons">
      ${Object.entries(ACTIONS).map(
        ([action, [label, says, back]]) => html`<${Action} key=${action} label=${label} says=${html`<p>${says}</p>`} run=${() => act(action)} undo=${back ? () => act(back) : null} />`,
      )}
    </p>
    <h2>Delete</h2>
    <p><${Delete} project=${project} path=${path} found=${found} /></p>`;
}
