// Figures of the room "Sequences": chips, weights over a sequence, the plane of keys, sizes of states.

import { element, svgElement } from "../dom.js";
import { hasKey, isNewPairing, keyName, partName, shortKeyName, valueName } from "./tasks.js";
import { badge, colourOf, inkOn, numeral } from "../widgets.js";

const MOST_NAMED = 24; // pairs that have names below their weights
const MOST_NUMBERED = 12; // pairs that have numbers above their weights
const MOST_PLANE = 32; // keys of a part that are drawn
const GOLDEN_ANGLE = 137.508;

/** A value as a coloured chip. */
export function valueChip(value, title = null) {
  return element("span", { class: "value-chip", style: `--hue: ${valueHue(value)}`, title }, valueName(value));
}

function valueHue(value) {
  return ((value * GOLDEN_ANGLE + 30) % 360).toFixed(1);
}

/** The pairs as buttons that ask for their key. */
export function pairChips({ task, pairs, query, chosen, onChoose }) {
  return element(
    "div",
    { class: `pair-chips${pairs.length > 48 ? " many" : ""}`, role: "group", "aria-label": "The pairs of the sequence" },
    pairs.map((pair, place) => {
      const isNew = isNewPairing(task, pair);
      const isAsked = hasKey(task, pair, query);
      const said = `key ${keyName(task, pair)}, value ${valueName(pair[task.fields])}`;
      const name = `Pair ${place + 1}: ${said}${isNew ? ", a new pairing" : ""}`;
      return element(
        "button",
        {
          type: "button", class: `pair-chip${isAsked ? " asked-pair" : ""}${isNew ? " new-pairing" : ""}`,
          "data-key": `pair-${place}`, "data-pair": pair.join("."),
          "aria-pressed": String(place === chosen), "aria-label": name, title: name, onclick: () => onChoose(place),
        },
        element("span", { class: "key-name" }, keyName(task, pair)),
        valueChip(pair[task.fields]),
      );
    }),
  );
}

/**
 * Weights of all pairs: bars for one head, a row of coloured cells a head for several.
 * @param {{task: PairTask, pairs: number[][], query: number[], weights: number[][], key: string, label: string}} options
 */
export function weightStrip({ task, pairs, query, weights, key, label }) {
  const largest = Math.max(1e-12, ...weights.flat().map(Math.abs));
  const count = pairs.length;
  const asked = pairs.map((pair) => hasKey(task, pair, query));
  const rows =
    weights.length === 1
      ? [barRow(weights[0], asked, largest, key, task, pairs)]
      : weights.map((row, head) => cellRow(row, asked, largest, key, head, task, pairs));
  const names = pairs.map((pair, place) =>
    element("span", { class: asked[place] ? "asked-name" : "" }, shortKeyName(task, pair)),
  );
  const spacing = count > MOST_NAMED ? " dense" : count > 8 ? " close" : "";
  return element(
    "div",
    { class: `strip${spacing}`, role: "img", "aria-label": label, "data-figure": key, style: `--count: ${count}` },
    rows,
    count <= MOST_NAMED
      ? element("div", { class: "strip-names" }, names)
      : element("div", { class: "strip-ends" }, element("span", {}, "pair 1"), element("span", {}, `pair ${count}`)),
  );
}

function weightTitle(task, pairs, place, value) {
  return `${keyName(task, pairs[place])}: ${numeral(value, 4)}`;
}

function barRow(row, asked, largest, key, task, pairs) {
  const lowest = Math.max(0, ...row.map((value) => -value)) / largest;
  const highest = Math.max(0, ...row) / largest;
  const zero = (100 * highest) / (highest + lowest);
  const height = (value) => (100 * Math.abs(value)) / largest / (highest + lowest);
  return element(
    "div",
    { class: "strip-row bar-row", style: `--zero: ${zero.toFixed(2)}%` },
    row.map((value, place) => {
      const from = value < 0 ? `top: ${zero.toFixed(2)}%` : `bottom: ${(100 - zero).toFixed(2)}%`;
      return element(
        "span",
        {
          class: `weight-cell${asked[place] ? " asked-cell" : ""}`, "data-weight": `${key}.0.${place}`, "data-value": value,
          title: weightTitle(task, pairs, place, value),
        },
        element("span", {
          class: value < 0 ? "weight-bar negative" : "weight-bar", style: `${from}; height: ${height(value).toFixed(2)}%`,
        }),
        row.length <= MOST_NUMBERED ? element("span", { class: "weight-number" }, numeral(value)) : null,
      );
    }),
  );
}

function cellRow(row, asked, largest, key, head, task, pairs) {
  return element(
    "div",
    { class: "strip-row cell-row" },
    row.map((value, place) =>
      element(
        "span",
        {
          class: `weight-cell${asked[place] ? " asked-cell" : ""} ${inkOn(value, largest)}`.trim(),
          "data-weight": `${key}.${head}.${place}`, "data-value": value,
          title: `head ${head + 1}, ${weightTitle(task, pairs, place, value)}`, style: `background: ${colourOf(value, largest)}`,
        },
        row.length <= MOST_NUMBERED ? numeral(value) : null,
      ),
    ),
  );
}

/**
 * Which pairs of the sequence a memory recalls when it is asked for each of them.
 * @param {{right: (boolean|null)[]}} options null for pairs whose key is written again later
 */
export function recalledStrip({ task, pairs, right, key, label }) {
  const marks = (isRight) => (isRight === null ? "" : isRight ? "✓" : "✗");
  const words = (isRight) => (isRight === null ? "written again later" : isRight ? "right" : "wrong");
  return element(
    "div",
    {
      class: `strip recalled${pairs.length > MOST_NAMED ? " dense" : ""}`, role: "img", "aria-label": label,
      "data-figure": key, style: `--count: ${pairs.length}`,
    },
    element(
      "div",
      { class: "strip-row" },
      right.map((isRight, place) =>
        element(
          "span",
          {
            class: `recalled-cell${isRight === false ? " missed" : ""}`, "data-recalled": `${key}.${place}`, "data-value": String(isRight),
            title: `${keyName(task, pairs[place])}: ${words(isRight)}`,
          },
          pairs.length <= MOST_NAMED ? marks(isRight) : null,
        ),
      ),
    ),
  );
}

/** The most probable values, or the largest entries. */
export function topValues(numbers, wanted, count = 3) {
  const order = numbers.map((_, value) => value).sort((a, b) => numbers[b] - numbers[a]).slice(0, count);
  const largest = Math.max(1, ...order.map((value) => Math.abs(numbers[value])));
  const width = (value) => `width: ${((100 * Math.max(0, numbers[value])) / largest).toFixed(1)}%`;
  const bar = (value) => element("span", { class: value === wanted ? "top-bar wanted" : "top-bar", style: width(value) });
  return element(
    "div",
    { class: "top-values" },
    order.map((value) =>
      element(
        "div",
        { class: "top-value" },
        valueChip(value),
        element("span", { class: "top-track" }, bar(value)),
        element("span", { class: "top-number" }, numeral(numbers[value])),
      ),
    ),
  );
}

/** All keys of two parts: new pairings, the pairs of the sequence, and the query. */
export function keyPlane({ task, pairs, query, onAsk }) {
  if (task.fields !== 2 || task.keys > MOST_PLANE) return null;
  const cell = task.keys <= 16 ? 22 : 13;
  const isNamed = cell > 14;
  const [left, top] = [isNamed ? 20 : 2, isNamed ? 18 : 2];
  const size = task.keys * cell;
  const numbers = Array.from({ length: task.keys }, (_, number) => number);
  const parts = numbers.flatMap((first) =>
    numbers.map((second) => {
      const isNew = isNewPairing(task, [first, second]);
      const name = `${keyName(task, [first, second])}: ${isNew ? "new pairing" : "in training"}`;
      return svgElement(
        "rect",
        {
          x: left + second * cell + 1, y: top + first * cell + 1, width: cell - 2, height: cell - 2, rx: 3,
          class: isNew ? "plane-cell plane-new" : "plane-cell",
          "data-plane": `${first}.${second}`, onclick: () => onAsk([first, second]),
        },
        svgElement("title", {}, name),
      );
    }),
  );
  const dots = pairs.map((pair) =>
    svgElement("circle", {
      cx: left + (pair[1] + 0.5) * cell, cy: top + (pair[0] + 0.5) * cell, r: cell * 0.27,
      class: "plane-dot", style: `--hue: ${valueHue(pair[2])}`,
    }),
  );
  const names = isNamed
    ? numbers.flatMap((number) => [
        svgElement(
          "text",
          { x: left - 6, y: top + (number + 0.5) * cell, "text-anchor": "end", "dominant-baseline": "central", class: "name" },
          partName(task, 0, number),
        ),
        svgElement(
          "text",
          { x: left + (number + 0.5) * cell, y: top - 6, "text-anchor": "middle", class: "name" },
          partName(task, 1, number),
        ),
      ])
    : [];
  return svgElement(
    "svg",
    {
      class: "key-plane", viewBox: `0 0 ${left + size} ${top + size}`, width: left + size, height: top + size, role: "img",
      "aria-label": `All ${task.keys} x ${task.keys} pairings of the parts of a key; ${pairs.length} pairs are in the sequence`,
      "data-figure": "plane",
    },
    names,
    parts,
    dots,
    svgElement("rect", { x: left + query[1] * cell, y: top + query[0] * cell, width: cell, height: cell, rx: 4, class: "plane-asked" }),
  );
}

/** What the marks of the plane mean. */
export function planeLegend() {
  return element(
    "p",
    { class: "note plane-legend" },
    element("span", { class: "plane-mark" }), "in training ",
    element("span", { class: "plane-mark plane-new" }), "new pairing ",
    element("span", { class: "plane-mark plane-pair" }), "in this sequence",
  );
}

/** How many numbers each memory keeps of the sequence, and of the longest one. */
export function stateBars({ models, count, longest }) {
  const at = ({ state }, length) => state.constant + state.each * length;
  const largest = Math.max(...models.map((model) => at(model, Math.max(longest, count))));
  return element(
    "div",
    { class: "state-bars", "data-figure": "states" },
    models.map((model) => {
      const now = at(model, count);
      const share = (value) => `${((100 * value) / largest).toFixed(2)}%`;
      const said = model.state.each ? `${model.state.each.toLocaleString("en")} a pair` : "constant";
      return element(
        "div",
        { class: "state-bar" },
        element("span", { class: "state-name" }, swatch(model), model.words),
        element(
          "span",
          { class: "state-track" },
          element("span", { class: "state-longest", style: `width: ${share(at(model, Math.max(longest, count)))}` }),
          element("span", { class: "state-now", style: `width: ${share(now)}; background: ${model.colour}` }),
        ),
        element("span", { class: "state-number", "data-state": model.digest, "data-value": now }, now.toLocaleString("en"), " "),
        badge(said, model.state.each ? "fair" : "good"),
      );
    }),
  );
}

/** The colour of a memory. */
export function swatch(model) {
  return element("span", { class: "swatch", style: `background: ${model.colour}` });
}
