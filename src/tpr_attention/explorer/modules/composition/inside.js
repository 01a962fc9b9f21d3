// What a model does on the way to its answer: heads read, map and write (App. D); attention matches; laws recompute.

import { objectMap } from "./answers.js";
import { readableHead, transfersOf } from "./heads.js";
import { element } from "../dom.js";
import { heatMap, numeral, panel } from "../widgets.js";

const INPUT_NAMES = ["reference", "transform"];
const MOST_HEADS_SHOWN = 4;
const INSIDE_CELL = 34;
const FAINT_HEAD = 0.02; // of the largest update: what a head writes does not matter

/** All stages of a model as panels. */
export function insidePanels(world, model, stages, action, showsAll) {
  return stages.flatMap((stage, number) => STAGE_PANELS[stage.type]({ world, model, stage, number, action, showsAll }));
}

/** How many heads of a stage are shown, of how many. */
export function shownHeads(stage, showsAll) {
  const sizes = stage.heads.map((head, h) => ({ head, h, size: Math.hypot(...head.update.data) }));
  const ordered = sizes.sort((a, b) => b.size - a.size);
  if (showsAll) return ordered;
  const most = ordered[0].size;
  return ordered.filter(({ size }, place) => place === 0 || (place < MOST_HEADS_SHOWN && size > FAINT_HEAD * most));
}

const STAGE_PANELS = { heads: headPanels, attention: attentionPanels, laws: lawPanels, hidden: hiddenPanels };

function italicWith(text, below = null, above = null) {
  return [element("i", {}, text), below === null ? null : element("sub", {}, below), above === null ? null : element("sup", {}, above)];
}

const HEADS_EQUATION = () => [
  italicWith("f", "h"), " = \u03a3", element("sub", {}, "t"), " id", element("sub", {}, "h"), "[", italicWith("t"), "] ", italicWith("q", "h"), "(", italicWith("a"), ")\u1d40 ",
  italicWith("O", "t"), ",\u2003update = \u03a3", element("sub", {}, "h"), " ", italicWith("r", "n,h"), "(", italicWith("a"), ") \u2297 (", italicWith("f", "h"), "\u1d40 ", italicWith("H", "h"), ")",
];

function headPanels({ world, model, stage, number, action, showsAll }) {
  const roles = world.roles.map((role) => role.name);
  const shown = shownHeads(stage, showsAll);
  const order = stage.heads[0].reads.length;
  const rest = stage.heads.length - shown.length;
  const kind = stage.isNormalised ? "heads that normalise what they read" : order > 1 ? `heads of order ${order}` : "heads";
  const rows = shown.map(({ head, h }, place) => {
    const made = readableHead(head, stage.isNormalised);
    const key = `inside-${number}-${h}`;
    const columns = place === 0 ? roles : [];
    const titled = (text) => (place === 0 ? text : "");
    const filler = (values, label, name) =>
      heatMap({ values: [[...values.data]], label: `head ${h + 1}: ${label}`, key: `${key}-${name}`, cell: INSIDE_CELL, scale: 1 });
    return element(
      "div",
      { class: "head-row aligned", "data-key": key },
      element("h4", {}, `head ${h + 1}`),
      made.reads.flatMap((read, k) => [
        insideStep(
          titled(order > 1 ? `reads (${k + 1})` : "reads"),
          heatMap({ values: read.weights, rows: INPUT_NAMES, columns, label: `head ${h + 1} reads`, key: `${key}-reads-${k}`, cell: INSIDE_CELL, scale: 1 }),
        ),
        insideStep(titled("finds"), filler(read.filler, "the filler that it finds", `filler-${k}`)),
      ]),
      insideStep(titled("maps to"), filler(made.mapped, "the filler that it makes", "mapped")),
      insideStep(
        titled("writes to"),
        heatMap({ values: [[...made.newRole.data]], columns, label: `head ${h + 1} writes to`, key: `${key}-role`, cell: INSIDE_CELL, scale: 1 }),
      ),
    );
  });
  const sum = element(
    "div",
    { class: "head-row" },
    insideStep("all heads write", objectMap(world, stage.update, "What all heads of this layer add", `inside-${number}-update`)),
    order > 1 || stage.isNormalised ? null : transferTable(world, model, stage, action),
  );
  const note =
    "A head is a product, so that its scale may be anywhere: here the largest read weight and the largest new role are 1." +
    (rest ? ` ${rest} more ${rest === 1 ? "head writes" : "heads write"} less.` : "");
  return [panel({ title: `${stage.name}: ${stage.heads.length} ${kind}`, equation: HEADS_EQUATION(), note, class: "wide" }, element("div", { class: "scroll" }, element("div", { class: "head-rows" }, rows), sum))];
}

function insideStep(title, ...children) {
  return element("div", { class: "head-step" }, element("span", { class: "label" }, title), children);
}

/** What all heads do in sum, as `tpr-attention show` tells it. */
function transferTable(world, model, stage, action) {
  const found = transfersOf(model.weights, `${stage.name}.`, action);
  const rows = found.map((one) =>
    element(
      "tr",
      {},
      element("td", {}, INPUT_NAMES[one.object]),
      element("td", {}, world.roles[one.role].name),
      element("td", {}, world.roles[one.newRole].name),
      element("td", { class: one.copied < 0 ? "below-zero" : "above-zero", "data-value": one.copied }, numeral(one.copied)),
      element("td", { "data-value": one.mixed }, numeral(one.mixed)),
    ),
  );
  const head = ["from", "role", "to role", "copied", "mixed"].map((name) => element("th", { scope: "col" }, name));
  return insideStep(
    "all heads together",
    element("table", { class: "transfers", "data-key": `transfers-${stage.name}` }, element("thead", {}, element("tr", {}, head)), element("tbody", {}, rows)),
    element("p", { class: "note" }, "copied: \u22121 erases, +1 writes; mixed: how large the rest of the map of fillers is. The strongest eight."),
  );
}

function attentionPanels({ world, stage, number, showsAll }) {
  const roles = world.roles.map((role) => role.name);
  const heads = shownHeads(stage, showsAll || stage.tokens === "objects");
  const names = stage.tokens === "objects" ? INPUT_NAMES : INPUT_NAMES.flatMap((name) => roles.map((role) => `${name[0]}. ${role}`));
  const matched =
    stage.tokens === "objects"
      ? heatMap({
          values: stage.heads.map((head) => [...head.weights.data]),
          rows: stage.heads.map((_, h) => `head ${h + 1}`),
          columns: names,
          label: "Match weights of each head",
          key: `inside-${number}-match`,
          cell: 34,
          scale: 1,
        })
      : heads.map(({ head, h }) =>
          insideStep(`head ${h + 1}`, heatMap({ values: head.weights, rows: roles, columns: names, label: `Match weights of head ${h + 1}`, key: `inside-${number}-match-${h}`, cell: 22, scale: 1 })),
        );
  const written = heads.slice(0, showsAll ? heads.length : MOST_HEADS_SHOWN).map(({ head, h }) => {
    const values = { shape: [roles.length, head.update.data.length / roles.length], data: head.update.data };
    return insideStep(`head ${h + 1} writes`, objectMap(world, values, `head ${h + 1} writes`, `inside-${number}-update-${h}`));
  });
  const note = "Softmax attention matches whole tokens; its heads write to all roles at once. The strongest heads first.";
  return [panel({ title: "Softmax attention: match weights and what heads write", note, class: "wide" }, element("div", { class: "scroll" }, element("div", { class: "head-row" }, matched, written)))];
}

function lawPanels({ world, stage, number }) {
  const equation = [
    italicWith("S\u2032", "r"), " = ", italicWith("S", "r"), " + ", italicWith("g", "r"), "(", italicWith("a"), ") (law(", italicWith("S"), ")",
    element("sub", {}, "r"), " + carried", element("sub", {}, "r"), " \u2212 ", italicWith("S", "r"), ")",
  ];
  const note = "A gate of 1 takes what the law and the inputs say, a gate of 0 keeps what is there.";
  const maps = element("div", { class: "scroll" }, element("div", { class: "head-row" }, lawMaps(world, stage, number)));
  return [panel({ title: "Laws: roles that other roles decide are recomputed", equation, note, class: "wide" }, maps)];
}

function lawMaps(world, stage, number) {
  const gates = [stage.lawGate, ...(stage.codeGate ? [stage.codeGate] : [])];
  const shown = (name, obj, said) => insideStep(`${name}: ${said}`, objectMap(world, obj, said, `inside-${number}-${name}`));
  return [
    shown("substituted", stage.state, "the reference with what the heads write"),
    shown("law", stage.law, "what the other roles say of each role"),
    shown("carried", stage.carried, "what an input has beyond its own law"),
    insideStep(
      "gates of law and clean-up",
      heatMap({
        values: world.roles.map((_, r) => gates.map((gate) => gate.data[r])),
        rows: world.roles.map((role) => role.name),
        columns: ["law", "clean"].slice(0, gates.length),
        label: "Gates of each role",
        key: `inside-${number}-gates`,
        cell: 38,
        scale: 1,
      }),
    ),
    shown("answer", stage.output, "after both gates"),
  ];
}

function hiddenPanels({ stage, number }) {
  const values = [...stage.hidden.data];
  const active = values.filter((value) => value > 0).length;
  const width = 16;
  const rows = Array.from({ length: Math.ceil(values.length / width) }, (_, k) => values.slice(k * width, (k + 1) * width));
  const title = `Hidden layer: ${active} of ${values.length} units are active`;
  return [
    panel(
      { title, note: "A residual layer has no heads: nothing says which role a unit reads or writes." },
      element("div", { class: "scroll" }, heatMap({ values: rows, label: title, key: `inside-${number}-hidden`, cell: 16, numbers: false })),
    ),
  ];
}
