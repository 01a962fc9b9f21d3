// The question of the room "Composition": two objects, an action, the kind of the question and where it lies.

import { heldOutAlong, isHeldOut } from "./task.js";
import { element, svgElement } from "../dom.js";
import { spritePicture } from "../sprites.js";
import { badge, button, slider } from "../widgets.js";

const COLUMN_NAMES = { position_x: "x", position_y: "y" };
const CONDITION_WORDS = {
  train: "training",
  ood_reference: "Test 1: held-out reference",
  ood_transform: "Test 2: held-out transform",
  ood_composition: "Test 3: held-out composition",
};

/** What a column of factors is called. */
export function columnName({ name }) {
  return COLUMN_NAMES[name] ?? name;
}

/** A class of a column in words. */
export function classWords(column, value) {
  return column.labels.length ? column.labels[value] : decimalWords(column.values[value]);
}

function decimalWords(value) {
  return String(Math.round(value * 100) / 100).replace("-", "\u2212");
}

/** An object in words. */
export function factorWords(world, factors) {
  return world.columns.map((column, k) => `${columnName(column)} ${classWords(column, factors[k])}`).join(", ");
}

/** A picture of the object with these factors. */
export function factorPicture(world, factors, label, size = 96) {
  const part = (name) => world.columns.findIndex((column) => column.name === name);
  const value = (name) => world.columns[part(name)].values[factors[part(name)]];
  const words = (name) => classWords(world.columns[part(name)], factors[part(name)]);
  const place = (name) => (2 * factors[part(name)]) / (world.columns[part(name)].values.length - 1) - 1;
  const sprite = {
    shape: words("shape"),
    colour: words("colour"),
    scale: value("scale"),
    angle: value("orientation"),
    x: place("position_x"),
    y: place("position_y"),
  };
  return spritePicture([sprite], { label: `${label}: ${factorWords(world, factors)}`, size });
}

/**
 * A picture and a control for each factor of one input. Classes that would make the object held out are marked.
 *
 * @param {string} part "reference" or "transform"
 * @param {(column: number, value: number) => void} change
 */
export function inputCard(world, part, title, factors, acted, change) {
  const isOut = isHeldOut(world, factors);
  const controls = world.columns.map((column, k) => {
    const held = world.held_out.columns.includes(k) ? heldOutAlong(world, factors, k) : [];
    const own = { world, part, column, k, value: factors[k], held, isTaken: acted.includes(k) === (part === "transform") };
    return column.labels.length ? classChoice(own, change) : classSlider(own, change);
  });
  return element(
    "section",
    { class: "panel", "data-key": `card-${part}` },
    element(
      "div",
      { class: "composition-head" },
      factorPicture(world, factors, title),
      element("div", {}, element("h3", {}, title), isOut ? badge("held out of training", "fair") : badge("in training", "good")),
    ),
    element("div", { class: "composition-factors" }, controls),
  );
}

/** The class of a factor with names. */
function classChoice({ part, column, k, value, held, isTaken }, change) {
  const name = columnName(column);
  return element(
    "div",
    { class: isTaken ? "field factor taken" : "field factor" },
    element("span", { class: "label" }, name),
    element(
      "div",
      { class: "choice", role: "group", "aria-label": `${part}: ${name}` },
      column.labels.map((label, place) =>
        button({
          key: `${part}-${column.name}-${label}`,
          label,
          pressed: place === value,
          kind: held[place] ? "held" : "",
          title: held[place] ? `${label}: with the other factors, held out of training` : null,
          onClick: () => change(k, place),
        }),
      ),
    ),
  );
}

/** The class of a factor with numbers, and a tick for each class. */
function classSlider({ part, column, k, value, held, isTaken }, change) {
  const name = columnName(column);
  const control = slider({
    key: `${part}-${column.name}`,
    label: name,
    min: 0,
    max: column.values.length - 1,
    step: 1,
    value,
    shown: classWords(column, value),
    onInput: (place) => change(k, place),
  });
  const ticks = column.values.map((_, place) => element("i", { class: held[place] ? "held" : null }));
  return element(
    "div",
    { class: isTaken ? "factor taken" : "factor" },
    control,
    element("div", { class: "ticks", "aria-hidden": "true", "data-held": held.filter(Boolean).length }, ticks),
  );
}

/**
 * The plane of the split's factors: what is held out, and where reference, transform and answer lie.
 *
 * Of a split that reads more than two factors, the others are those of the answer.
 */
export function factorPlane(world, objects) {
  const order = [...world.held_out.columns].sort((a, b) => world.columns[b].values.length - world.columns[a].values.length);
  const [across, down] = [order[0], order[1] ?? null];
  const size = (column) => (column === null ? 1 : world.columns[column].values.length);
  const [columns, rows] = [size(across), size(down)];
  const [left, top, width, height] = [62, 22, 206, 108];
  const [dx, dy] = [width / columns, height / rows];
  const at = (factors, x, y) => factors.map((own, k) => (k === across ? x : k === down ? y : own));
  const cells = [];
  for (let x = 0; x < columns; x += 1) {
    for (let y = 0; y < rows; y += 1) {
      const isOut = isHeldOut(world, at(objects.answer, x, y));
      const place = { x: left + x * dx, y: top + y * dy, width: dx, height: dy };
      cells.push(svgElement("rect", { ...place, class: "plane-cell", fill: isOut ? "url(#held-out-hatch)" : null, "data-held": String(isOut) }));
    }
  }
  const names = [
    ...edgeNames(world.columns[across]).map(([k, text]) =>
      svgElement("text", { x: left + (k + 0.5) * dx, y: top + height + 15, "text-anchor": "middle", class: "name" }, text),
    ),
    svgElement("text", { x: left + width / 2, y: top + height + 31, "text-anchor": "middle", class: "name axis-name" }, columnName(world.columns[across])),
    down === null ? null : svgElement("text", { x: left - 6, y: top - 8, "text-anchor": "end", class: "name axis-name" }, columnName(world.columns[down])),
    ...(down === null ? [] : edgeNames(world.columns[down])).map(([k, text]) =>
      svgElement("text", { x: left - 6, y: top + (k + 0.5) * dy, "text-anchor": "end", "dominant-baseline": "central", class: "name" }, text),
    ),
  ];
  const hatch = svgElement(
    "pattern",
    { id: "held-out-hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svgElement("rect", { width: 6, height: 6, class: "plane-cell" }),
    svgElement("rect", { width: 2.5, height: 6, class: "hatch" }),
  );
  const marks = Object.entries(objects).map(([part, factors], k) => {
    const x = left + (factors[across] + 0.5) * dx + (k - 1) * 15;
    const y = top + ((down === null ? 0 : factors[down]) + 0.5) * dy;
    const inside = Math.min(left + width - 8 + (k - 2) * 4, Math.max(left + 8 + k * 4, x));
    return svgElement(
      "g",
      { class: `plane-mark ${part}` },
      svgElement("circle", { cx: inside, cy: y, r: 8 }),
      svgElement("text", { x: inside, y, "text-anchor": "middle", "dominant-baseline": "central" }, part[0].toUpperCase()),
    );
  });
  const named = world.held_out.columns.map((k) => columnName(world.columns[k])).join(" and ");
  const said = `Plane of ${named}; reference R, transform T, answer A`;
  const sizes = { viewBox: "0 0 276 166", width: 276, height: 166 };
  return svgElement("svg", { ...sizes, class: "plane", role: "img", "aria-label": said, "data-figure": "plane" }, svgElement("defs", {}, hatch), cells, names, marks);
}

/** The names that fit along an axis: all of a few, else the ends. */
function edgeNames(column) {
  const count = column.values.length;
  const places = count <= 6 ? column.values.map((_, k) => k) : [0, count - 1];
  return places.map((k) => [k, classWords(column, k)]);
}

/**
 * The kind of a question as badges and sentences, with the lowest losses.
 *
 * @param {{reference: boolean, transform: boolean, target: boolean, changes: boolean, condition: string|null}} kind
 * @param {number[]} unknown roles that cannot be known
 * @param {number} floor the loss of the best guess
 */
export function kindNotice(world, kind, unknown, floor) {
  const [text, tone, said] = kindWords(kind, world);
  const floors = kind.condition === null ? null : world.floors[kind.condition];
  const roles = unknown.map((role) => world.roles[role].name).join(", ");
  return element(
    "div",
    { class: "kind", "data-condition": kind.condition ?? "none", "data-floor": floor },
    element("p", { class: "kind-badges" }, badge(text, tone), unknown.length ? badge("unknowable", "bad") : null),
    element("p", {}, said),
    unknown.length
      ? element(
          "p",
          {},
          `No training object has the filler of ${roles} that the answer needs, it follows no law, and neither input carries it. `,
          `The best guess has a loss of ${lossWords(floor)}.`,
        )
      : element("p", {}, "Training and the two inputs tell all that the answer needs: the floor of this question is 0."),
    floors === null
      ? null
      : element(
          "p",
          { class: "note" },
          `Floors over all questions of ${CONDITION_WORDS[kind.condition]}: best answer that can be known ${lossWords(floors.knowable)}, `,
          `best linear map ${lossWords(floors.linear)}.`,
        ),
    world.noise ? element("p", { class: "note" }, `Training had noise of ${world.noise} on its inputs; here is none.`) : null,
  );
}

function kindWords(kind, world) {
  if (kind.condition === null) {
    if (!kind.changes && world.require_change) {
      return ["in no test", "plain", "The acted factor is the same in both inputs; the task has no such questions."];
    }
    if (kind.reference && kind.transform) {
      return ["held-out inputs", "fair", "Training shows neither the reference nor the transform. No test has both."];
    }
    return ["in no test", "plain", "The task has no such questions."];
  }
  return {
    train: ["seen in training", "good", "Neither the inputs nor the answer are held out: training has questions of this kind."],
    ood_reference: ["held-out input: Test 1", "fair", "Training never shows the reference."],
    ood_transform: ["held-out input: Test 2", "fair", "Training never shows the transform."],
    ood_composition: ["held-out answer: Test 3", "fair", "Training shows both inputs, and never the answer."],
  }[kind.condition];
}

/** A loss for people. */
export function lossWords(loss) {
  if (loss === 0) return "0";
  if (loss >= 0.001) return loss >= 10 ? loss.toFixed(0) : Number(loss.toPrecision(2)).toString();
  const [digits, exponent] = loss.toExponential(0).split("e");
  return `${digits}e\u2212${exponent.replace("-", "")}`;
}
