// The stages of an answer as matrices, each with its equation.

import { element } from "./dom.js";
import { equation } from "./equations.js";
import { reshape, tensor } from "./tensors.js";
import { heatMap, panel } from "./widgets.js";

/** The memory, all its numbers: four axes as blocks of roles. */
export function memoryPanel(state, { memory, objects }, data) {
  const names = data.roles.flatMap((role, r) => data.fillers[r].map((filler) => filler));
  const width = names.length;
  const asked = state.matches.map(([role, filler]) => role * data.fillers[role].length + filler);
  const isPair = state.matches.length === 2;
  const frames = state.overlap === 0 && !isPair ? asked : [];
  return panel(
    {
      title: "Memory",
      equation: equation('*M = ∑_s *O_s ⊗ *O_s "    3.2"'),
      class: "memory",
      note: isPair
        ? "Two pairs are matched in a memory of three copies of each object (App. C). Shown is that of two."
        : frames.length
          ? "Each cell: how often two fillers were together in an object. Matching reads the framed row."
          : "All numbers of the memory, in blocks of roles. With overlap a filler has parts along all axes.",
    },
    element(
      "div",
      { class: "scroll", tabindex: 0 },
      heatMap({
        key: "memory", values: reshape(memory, width, width), rows: names, columns: names, cell: 18, numbers: false, blocks: data.fillers[0].length,
        groups: data.roles, frames, label: `The memory of ${objects.shape[0]} objects, ${width} by ${width} numbers`,
      }),
    ),
  );
}

/** The objects, each weighted by how well it matches. */
export function matchPanel(state, stages, data) {
  const isPair = state.matches.length === 2;
  const score = isPair ? "( *r_m^{⊤} *O_s *f_m ) ( *r_{m'}^{⊤} *O_s *f_{m'} )" : "( *r_m^{⊤} *O_s *f_m )";
  return stage({
    title: "1  Match", section: isPair ? "C" : "3.2.1, B.1", key: "matched", state, stages,
    equations: { sum: `∑_s ${score} *O_s`, softmax: '∑_s "softmax"_s ( "score"_s / T ) *O_s' },
    figure: (part) => ({ values: part.matched, rows: data.roles, columns: axes(data) }),
    label: "The matched object",
  });
}

/** What the matched object has in the target role. */
export function extractPanel(state, stages, data) {
  return stage({
    title: "2  Extract", section: "3.2.2, B.2", key: "extracted", state, stages,
    equations: { both: "*f = *r_t^{⊤} *O" },
    figure: (part) => ({ values: asRow(part.extracted), rows: [data.roles[state.target]], columns: data.fillers[state.target] }),
    label: `What it has as ${data.roles[state.target]}`,
  });
}

/** The filler after the map. */
export function mapPanel(state, stages, data) {
  const { fillers, roles } = data;
  return stage({
    title: "3  Map", section: "3.2.3, B.3", key: "mapped", state, stages,
    equations: { both: "*f' = *f^{⊤} *H" },
    figure: (part) => ({ values: asRow(part.mapped), rows: ["mapped"], columns: fillers[state.bound] }),
    label: "The mapped filler",
    before: element(
      "figure",
      { class: "map" },
      element("figcaption", {}, element("i", {}, "H"), `: ${state.map}`),
      heatMap({
        key: "map", values: stages.fillerMap, rows: fillers[state.target], columns: fillers[state.bound], cell: 26, scale: 1,
        label: `The map ${state.map}, from fillers of ${roles[state.target]} to fillers of ${roles[state.bound]}`,
      }),
    ),
  });
}

/** The mapped filler in its new role. */
export function bindPanel(state, stages, data) {
  return stage({
    title: "4  Bind", section: "3.2.3, B.3", key: "bound", state, stages,
    equations: { both: "*r_n ⊗ *f'" },
    figure: (part) => ({ values: part.bound, rows: data.roles, columns: data.fillers[state.bound] }),
    label: `The answer, bound to ${data.roles[state.bound]}`,
  });
}

function stage({ title, section, key, stages, equations, figure, label, before = null }) {
  const one = (name, words) => {
    const { values, rows, columns } = figure(stages[name]);
    return element(
      "figure",
      { class: `way ${name}` },
      element("figcaption", {}, element("span", { class: `key ${name}` }), ` ${words}`),
      equations[name] ? element("div", { class: "equation" }, equation(equations[name])) : null,
      heatMap({ key: `${name}.${key}`, values, rows, columns, cell: 32, scale: Math.max(1, ...values.data.map(Math.abs)), label: `${label}, ${words}` }),
    );
  };
  return panel(
    { title, equation: equations.both ? equation(`${equations.both} "    ${section}"`) : element("span", { class: "section" }, section) },
    before,
    element("div", { class: "ways" }, one("sum", "sum"), one("softmax", "softmax")),
  );
}

function asRow({ data }) {
  return tensor([1, data.length], data);
}

/** Axes of the filler space by number: what they mean depends on the role. */
function axes(data) {
  return data.fillers[0].map((_, axis) => `${axis + 1}`);
}
