// The graph of a stack as a picture that changes as the stack converges.

import { Graph, layout } from "../../vendor/dagre.js";
import { useMemo, useState } from "../../vendor/hooks.js";
import { html, Status } from "../../parts.js";
import { counted, fold, NODES_MAX, statusOf, worst } from "./fold.js";
import { nestedAddress, waitsFor } from "./reasons.js";

const [WIDTH, HEIGHT, MARGIN] = [190, 62, 16];
const LETTERS_MAX = 25;
const SHOWN_MAX = 200;
const ZOOMS = [0.4, 0.6, 0.8, 1, 1.3, 1.7];
const GLYPHS = { COMPLETE: "✓", IN_PROGRESS: "…", FAILED: "✕", INIT: "○" };
const WORDS = { COMPLETE: "complete", IN_PROGRESS: "in progress", FAILED: "failed", INIT: "not begun" };
const WORST_FIRST = ["FAILED", "IN_PROGRESS", "INIT", "COMPLETE"];

const short = (text, most = LETTERS_MAX) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** Where the nodes and edges are: made anew only when other nodes are there, not when they change. */
function placed(classes, edges) {
  const graph = new Graph();
  graph.setGraph({ rankdir: "BT", nodesep: 24, ranksep: 46, marginx: MARGIN, marginy: MARGIN });
  graph.setDefaultEdgeLabel(() => ({}));
  classes.forEach((_, index) => graph.setNode(String(index), { width: WIDTH, height: HEIGHT }));
  edges.forEach(([from, to]) => graph.setEdge(String(from), String(to)));
  layout(graph);
  const { width = 0, height = 0 } = graph.graph();
  const nodes = classes.map((_, index) => graph.node(String(index)));
  const lines = graph.edges().map((each) => ({ key: `${each.v} ${each.w}`, points: graph.edge(each).points }));
  return { width, height, nodes, lines };
}

/** The resources to draw: of a stack that has too many, those that are not at rest, and one for all others. */
function drawn({ graph, explanation }) {
  if (graph.listed) return graph.resources;
  const own = explanation.resources.filter((each) => each.path.length === 1 && !each.leftover).slice(0, NODES_MAX - 1);
  const waiting = own.map((each) => ({ name: each.resource_name, type: each.resource_type, status: each.resource_status }));
  const { planned, done, failed } = graph;
  // It is drawn as a nested stack is, and not counted as one resource more.
  const others = { name: "all others", type: `${planned} resources`, status: graph.stack_status, nested: { planned: planned - own.length, done, failed: Math.max(0, failed - own.length) } };
  return [...waiting, others];
}

function described(members, counts) {
  const [first] = members;
  const sums = WORST_FIRST.filter((each) => counts[each]).map((each) => `${counts[each]} ${WORDS[each]}`);
  return members.length > 1 ? `${members.length} of ${first.type}: ${sums.join(", ")}` : `${first.name}, ${first.type}, ${sums.join(", ")}`;
}

function Bar({ counts }) {
  const all = Object.values(counts).reduce((sum, each) => sum + each, 0);
  if (all < 2) return null;
  let x = 0;
  return WORST_FIRST.filter((each) => counts[each]).map((each) => {
    const width = (counts[each] / all) * WIDTH;
    x += width;
    return html`<rect key=${each} class=${`bar ${each}`} x=${x - width} y=${HEIGHT - 5} width=${width} height="5" />`;
  });
}

function Node({ members, at, reason, isOpen, open }) {
  const [first] = members;
  const counts = counted(members);
  const status = worst(counts);
  const title = members.length > 1 ? `${members.length} × ${first.type}` : first.name;
  const inside = first.nested && members.length === 1 ? `${first.nested.done} of ${first.nested.planned} in it at rest` : "";
  const below = reason ? reason.reason : inside || (members.length > 1 ? `${counts.COMPLETE} complete` : "");
  // An event that comes makes the rectangle anew, which glows then, however short its state was.
  const news = members.reduce((newest, each) => (each.event > newest ? each.event : newest), 0);
  const press = (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    open();
  };
  const place = { transform: `translate(${at.x - WIDTH / 2}px, ${at.y - HEIGHT / 2}px)` };
  const lines = [
    `${GLYPHS[status]} ${short(title, LETTERS_MAX - 2)}`,
    short(members.length > 1 ? `like ${first.name}` : first.type, LETTERS_MAX + 4),
    short(below, LETTERS_MAX + 4),
  ];
  const whole = [described(members, counts), reason && `waits: ${reason.reason}`].filter(Boolean).join("; ");
  return html`<g class=${`node ${status}`} style=${place} role="button" tabindex="0" aria-pressed=${isOpen} onClick=${open} onKeyDown=${press}>
    <title>${whole}</title>
    <rect width=${WIDTH} height=${HEIGHT} rx="6" />
    ${news && html`<rect key=${news} class="news" width=${WIDTH} height=${HEIGHT} rx="6" />`}
    <text x="10" y="19" class="name">${lines[0]}</text>
    <text x="10" y="36" class="type">${lines[1]}</text>
    <text x="10" y="52" class="type">${lines[2]}</text>
    <${Bar} counts=${counts} />
  </g>`;
}

/** What one node stands for: its members, the worst first. */
function Members({ project, members, why }) {
  const rank = (each) => WORST_FIRST.indexOf(statusOf(each.status));
  const sorted = [...members].sort((one, other) => rank(one) - rank(other));
  return html`<section aria-label="what you chose">
    <h2>${members.length > 1 ? `${members.length} × ${members[0].type}` : members[0].name}</h2>
    <ul>
      ${sorted.slice(0, SHOWN_MAX).map((each) => {
        const address = nestedAddress(project, each);
        return html`<li key=${each.name}>
          ${address ? html`<a href=${`${address}/picture`}>${each.name}</a>` : each.name} <${Status} value=${each.status} />${" "}
          <span class="quiet">${[each.id, waitsFor(each, why.get(each.name))].filter(Boolean).join("; ")}</span>
        </li>`;
      })}
    </ul>
    ${sorted.length > SHOWN_MAX && html`<p class="quiet">The first ${SHOWN_MAX} of ${sorted.length} are shown, the worst first.</p>`}
  </section>`;
}

export function Picture({ project, found }) {
  const [zoom, setZoom] = useState(ZOOMS.indexOf(1));
  const [chosen, setChosen] = useState(null);
  const resources = drawn(found);
  const shape = resources.map((each) => [each.name, each.type, ...(each.requires ?? [])].join(" ")).join("\n");
  const { classes, edges, at } = useMemo(() => {
    const folded = fold(resources);
    return { classes: folded.classes.map((each) => each.map(({ name }) => name)), edges: folded.edges, at: placed(folded.classes, folded.edges) };
  }, [shape]);
  const byName = new Map(resources.map((each) => [each.name, each]));
  const why = new Map(found.explanation.resources.filter((each) => each.path.length === 1).map((each) => [each.resource_name, each]));
  const nodes = classes.map((names) => names.map((name) => byName.get(name)));
  const open = nodes.find((members) => members[0].name === chosen);
  if (!resources.length) return html`<p>There is nothing in it.</p>`;
  const scale = ZOOMS[zoom];
  return html`
    <p class="buttons">
      <button type="button" disabled=${zoom === 0} onClick=${() => setZoom(zoom - 1)}>Smaller</button>
      <button type="button" disabled=${zoom === ZOOMS.length - 1} onClick=${() => setZoom(zoom + 1)}>Larger</button>
      <span class="quiet">${nodes.length < resources.length ? `${resources.length} resources; those that are alike are one node. ` : ""}An arrow leads to what is required.</span>
    </p>
    <div class="picture" tabindex="0" role="region" aria-label="graph of the stack">
      <svg width=${at.width * scale} height=${at.height * scale} viewBox=${`0 0 ${at.width} ${at.height}`} role="group" aria-label=${`${nodes.length} nodes`}>
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" /></marker>
        </defs>
        ${at.lines.map((each) => html`<polyline key=${each.key} points=${each.points.map(({ x, y }) => `${x},${y}`).join(" ")} marker-end="url(#arrow)" />`)}
        ${nodes.map(
          (members, index) => html`<${Node}
            key=${members[0].name}
            members=${members}
            at=${at.nodes[index]}
            reason=${members.map((each) => why.get(each.name)).find(Boolean)}
            isOpen=${members === open}
            open=${() => setChosen(members[0].name)}
          />`,
        )}
      </svg>
    </div>
    ${open && html`<${Members} project=${project} members=${open} why=${why} />`}
  `;
}
