// The stages of an answer as matrices, each with its equation.

import { element } from "../dom.js";
import { equation } from "../equations.js";
import { mostAlike } from "./model.js";
import { einsum, reshape, tensor } from "../tensors.js";
import { heatMap } from "../widgets.js";

const CELL = 25;
const WAYS = [["sum", "sum"], ["softmax", "softmax"]];

/** The memory, all its numbers: four axes as blocks of roles. */
export function memoryPanel(state, { memory, objects }, data) {
  const names = data.fillers.flat();
  const isPair = state.matches.length === 2;
  const [[role, filler]] = state.matches;
  const frames = state.overlap === 0 && !isPair ? [role * data.fillers[role].length + filler] : [];
  const note = () => {
    if (isPair) return "Two pairs are matched in a memory of three copies of each object (App. C). Shown is that of two.";
    if (frames.length) return "How often two fillers were together in an object. To match is to read the framed row.";
    return "With overlap, a filler has parts along all axes of its role: fillers are no longer apart.";
  };
  return element(
    "section",
    { class: "panel memory" },
    heading("Memory", "3.2"),
    element("div", { class: "equation" }, equation("*M = ∑_s *O_s ⊗ *O_s")),
    element(
      "div",
      { class: "scroll", tabindex: 0 },
      heatMap({
        key: "memory", values: reshape(memory, names.length, names.length), rows: names, columns: names, cell: 18,
        numbers: false, blocks: data.fillers[0].length, groups: data.roles, frames,
        label: `The memory of ${objects.shape[0]} objects, ${names.length} by ${names.length} numbers`,
      }),
    ),
    element("p", { class: "note" }, note()),
  );
}

/** Match, extract, map and bind: a column for each stage, a row for each way to match. */
export function stagesPanel(state, stages, data) {
  const { roles, fillers } = data;
  const isPair = state.matches.length === 2;
  const score = "*r_m^{⊤} *O_s *f_m";
  const columns = [
    {
      title: "Match", section: isPair ? "C" : "3.2.1, B.1", equation: "*O = ∑_s w_s *O_s",
      ways: { sum: `w_s = ${isPair ? "∏_m" : ""} ${score}`, softmax: `w = "softmax" ( ${isPair ? "∑_m" : ""} ${score} / T )` },
      figure: (part, name) =>
        shown(`${name}.matched`, part.matched, { rows: roles, columns: axes(data), frames: [state.target], ends: readings(part.matched, stages, data) }, `The matched object, by ${name}`),
    },
    {
      title: "Extract", section: "3.2.2, B.2", equation: "*f = *r_t^{⊤} *O", ways: {},
      figure: (part, name) =>
        shown(`${name}.extracted`, asRow(part.extracted), { rows: ["f"], columns: fillers[state.target] }, `Its ${roles[state.target]}, by ${name}`),
    },
    {
      title: "Map", section: "3.2.3, B.3", equation: "*f' = *f^{⊤} *H", ways: {},
      figure: (part, name) => [
        shown(`${name}.map`, stages.fillerMap, { rows: fillers[state.target], columns: fillers[state.bound], numbers: false, nameWidth: 57 }, `The map ${state.map}`),
        shown(`${name}.mapped`, asRow(part.mapped), { rows: ["f′"], nameWidth: 57 }, `The mapped filler, by ${name}`),
      ],
    },
    {
      title: "Bind", section: "3.2.3, B.3", equation: "*r_n ⊗ *f'", ways: {},
      figure: (part, name) =>
        shown(`${name}.bound`, part.bound, { rows: roles, columns: axes(data), ends: readings(part.bound, stages, data) }, `The answer as ${roles[state.bound]}, by ${name}`),
    },
  ];
  return element(
    "section",
    { class: "panel flow" },
    columns.map(({ title, section, equation: text, ways, figure }, number) =>
      element(
        "div",
        { class: "stage" },
        heading(`${number + 1}  ${title}`, section),
        element("div", { class: "equation" }, equation(text)),
        WAYS.map(([name, words]) =>
          element(
            "figure",
            { class: `way ${name}` },
            element("figcaption", {}, element("span", { class: `key ${name}` }), ` ${words}`),
            ways[name] ? element("div", { class: "equation small", "data-key": `equation-${name}` }, equation(ways[name])) : null,
            figure(stages[name], name),
          ),
        ),
      ),
    ),
  );
}

function heading(title, section) {
  return element("h3", {}, title, element("span", { class: "section" }, section));
}

function shown(key, values, options, label) {
  return heatMap({ key, values, cell: CELL, scale: Math.max(1, ...values.data.map(Math.abs)), label, ...options });
}

/** The filler of each role that an object is most like; nothing where there is none. */
function readings(obj, { vectors }, data) {
  const likeness = einsum("r f, k f -> r k", obj, vectors);
  const width = likeness.shape[1];
  return data.roles.map((_, role) => {
    const best = mostAlike([...likeness.data.subarray(role * width, (role + 1) * width)]);
    return best === null ? "" : data.fillers[role][best];
  });
}

function asRow({ data }) {
  return tensor([1, data.length], data);
}

/** Axes of the filler space by number: what they mean depends on the role. */
function axes(data) {
  return data.fillers[0].map((_, axis) => `${axis + 1}`);
}
