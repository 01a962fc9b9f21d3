// Controls and small figures. Every control is a native one with a label; `key` names it for tests and for the focus.

import { element, svgElement } from "./dom.js";

const GAP = 4; // between blocks of a heat map, in pixels

/** A choice of names, or of `{value, label}`. */
export function select({ key, label, options, value, onChange, disabled = false }) {
  const choices = options.map((one) => (typeof one === "object" ? one : { value: one, label: one }));
  return element(
    "label",
    { class: "field" },
    element("span", { class: "label" }, label),
    element(
      "select",
      { "data-key": key, disabled, value, onchange: (event) => onChange(event.target.value) },
      choices.map((one) => element("option", { value: one.value, selected: String(one.value) === String(value) }, one.label)),
    ),
  );
}

/** A number between two ends; `shown` is the number in words. */
export function slider({ key, label, min, max, step, value, shown = String(value), onInput, disabled = false }) {
  return element(
    "label",
    { class: "field" },
    element("span", { class: "label" }, label, element("output", {}, shown)),
    element("input", {
      // the label around it names the first control in it, which is the output
      type: "range", "data-key": key, min, max, step, value, disabled, "aria-label": label, "aria-valuetext": shown,
      oninput: (event) => onInput(Number(event.target.value)),
    }),
  );
}

/** A button; with `pressed` true or false, one that stays down. */
export function button({ key, label, onClick, pressed, disabled = false, title, kind = "" }) {
  const isPressed = pressed === undefined ? null : String(pressed);
  return element(
    "button",
    { type: "button", class: `button ${kind}`.trim(), "data-key": key, "aria-pressed": isPressed, disabled, title, onclick: onClick },
    label,
  );
}

/** Buttons of which one is down. */
export function choice({ key, label, options, value, onChange }) {
  const choices = options.map((one) => (typeof one === "object" ? one : { value: one, label: one }));
  return element(
    "div",
    { class: "field" },
    element("span", { class: "label" }, label),
    element(
      "div",
      { class: "choice", role: "group", "aria-label": label },
      choices.map((one) =>
        button({ key: `${key}-${one.value}`, label: one.label, pressed: one.value === value, onClick: () => onChange(one.value) }),
      ),
    ),
  );
}

/** A box to tick. */
export function checkbox({ key, label, value, onChange, disabled = false }) {
  const box = element("input", {
    type: "checkbox", "data-key": key, checked: value, disabled, onchange: (event) => onChange(event.target.checked),
  });
  return element("label", { class: "field tick" }, box, element("span", {}, label));
}

/** A word in a frame; the tone is "good", "fair", "bad" or "plain". */
export function badge(text, tone = "plain") {
  return element("span", { class: `badge ${tone}` }, text);
}

/** A number for people: at most so many digits after the point, without a needless minus or zeros. */
export function numeral(value, digits = 2) {
  const said = value.toFixed(digits).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
  return said === "-0" ? "0" : said.replace("-", "\u2212");
}

/** The colour of a value: blue below zero, that of an empty cell at zero, orange above; `scale` has the full colour. */
export function colourOf(value, scale) {
  const share = Math.min(1, Math.abs(value) / (scale || 1));
  const pole = value < 0 ? "var(--negative)" : "var(--positive)";
  return `color-mix(in srgb, ${pole} ${(100 * share).toFixed(1)}%, var(--cell))`;
}

/** The class of a number on the colour of a value, so that it can be read: the fuller the colour, the further from it. */
export function inkOn(value, scale) {
  const share = Math.abs(value) / (scale || 1);
  return share > 0.82 ? "ink-strong" : share > 0.66 ? "ink-middle" : "";
}

/**
 * A matrix with named rows and columns.
 * @param {object} options
 * @param {Tensor|number[][]} options.values `[rows columns]`
 * @param {string[]} options.rows names; none: no names are drawn
 * @param {string[]} options.columns
 * @param {string} options.label what it is, for those who do not see it
 * @param {boolean} options.numbers whether numbers are written into the cells (default: if they fit)
 * @param {number} options.scale the value that has the full colour (default: the largest)
 * @param {number} options.cell the side of a cell
 * @param {string} options.key names the figure: cells have `data-cell="key.row.column"` and `data-value`
 * @param {(row: number, column: number) => boolean} options.marked which cells have a frame
 * @param {number[]} options.frames rows that have a frame as a whole
 * @param {number} options.blocks after how many rows and columns a gap is drawn
 * @param {string[]} options.groups names of the blocks of rows
 * @param {string[]} options.ends a word after each row
 * @param {number} options.nameWidth room for the names of rows (default: as much as they need)
 */
export function heatMap({
  values, rows = [], columns = [], label, numbers, scale, cell = 34, key = "", marked = () => false, frames = [], blocks = Infinity,
  groups = [], ends = [], nameWidth = 0,
}) {
  const matrix = Array.isArray(values) ? values : nestedRows(values);
  const width = matrix.length ? matrix[0].length : 0;
  const largest = scale ?? Math.max(1e-12, ...matrix.flat().map(Math.abs));
  const isWritten = numbers ?? cell >= 24;
  const left = Math.max(nameWidth, (rows.length ? 8 + Math.max(...rows.map((name) => 6.4 * name.length)) : 0) + (groups.length ? 18 : 0));
  const isSlanted = columns.some((name) => 6.6 * name.length > cell);
  const longest = Math.max(0, ...columns.map((name) => name.length));
  const top = columns.length ? (isSlanted ? 12 + 4.7 * longest : 18) : 0;
  const leaning = isSlanted ? Math.max(0, 4.7 * (columns[columns.length - 1] ?? "").length - cell / 2) : 0;
  const right = Math.max(leaning, ends.length ? 12 + Math.max(...ends.map((word) => 7.4 * word.length)) : 0);
  const offset = (k) => k * cell + GAP * Math.floor(k / blocks);
  const size = [left + offset(width - 1) + cell + right + 1, top + offset(matrix.length - 1) + cell + 1];
  const parts = [];
  rows.forEach((name, row) => {
    parts.push(svgElement("text", { x: left - 6, y: top + offset(row) + cell / 2, "text-anchor": "end", "dominant-baseline": "central", class: "name" }, name));
  });
  groups.forEach((name, group) => {
    const y = top + offset(group * blocks) + (cell * blocks) / 2;
    parts.push(svgElement("text", { x: 10, y, "text-anchor": "middle", class: "name group", transform: `rotate(-90 10 ${y})` }, name));
  });
  ends.forEach((word, row) => {
    const y = top + offset(row) + cell / 2;
    parts.push(svgElement("text", { x: left + offset(width - 1) + cell + 8, y, "dominant-baseline": "central", class: "end" }, word));
  });
  columns.forEach((name, column) => {
    const x = left + offset(column) + cell / 2;
    const turn = isSlanted ? { transform: `rotate(-45 ${x} ${top - 6})`, "text-anchor": "start" } : { "text-anchor": "middle" };
    parts.push(svgElement("text", { x, y: top - 6, class: "name", ...turn }, name));
  });
  matrix.forEach((line, row) => {
    line.forEach((value, column) => {
      const [x, y] = [left + offset(column), top + offset(row)];
      const named = `${rows[row] ?? row + 1}, ${columns[column] ?? column + 1}: ${numeral(value, 4)}`;
      parts.push(
        svgElement(
          "rect",
          { x: x + 1, y: y + 1, width: cell - 1, height: cell - 1, rx: cell > 20 ? 3 : 1, fill: colourOf(value, largest),
            class: marked(row, column) ? "cell marked" : "cell", "data-cell": key ? `${key}.${row}.${column}` : null, "data-value": value },
          svgElement("title", {}, named),
        ),
      );
      if (isWritten) {
        const ink = Math.abs(value) < 5e-3 ? "zero" : inkOn(value, largest);
        const text = { x: x + cell / 2 + 0.5, y: y + cell / 2 + 0.5, "text-anchor": "middle", "dominant-baseline": "central" };
        parts.push(svgElement("text", { ...text, class: `number ${ink}`.trim() }, numeral(value)));
      }
    });
  });
  for (const row of frames) {
    parts.push(svgElement("rect", { x: left, y: top + offset(row), width: offset(width - 1) + cell + 1, height: cell + 1, rx: 3, class: "row-frame" }));
  }
  return svgElement(
    "svg",
    { class: "heat-map", viewBox: `0 0 ${size[0]} ${size[1]}`, width: size[0], height: size[1], role: "img", "aria-label": label, "data-figure": key },
    parts,
  );
}

function nestedRows({ shape, data }) {
  const width = shape[shape.length - 1];
  return Array.from({ length: data.length / width }, (_, row) => [...data.subarray(row * width, (row + 1) * width)]);
}

/**
 * A row of bars with names below, from zero up or down.
 * @param {{values: number[], names: string[], label: string, scale?: number, key?: string, width?: number, height?: number}}
 */
export function bars({ values, names, label, scale, key = "", width = 44, height = 56 }) {
  const largest = scale ?? Math.max(1e-12, ...values.map(Math.abs));
  const isSigned = values.some((value) => value < 0);
  const zero = 14 + (isSigned ? height / 2 : height);
  const room = isSigned ? height / 2 : height;
  const parts = values.flatMap((value, k) => {
    const length = Math.min(1, Math.abs(value) / largest) * room;
    const x = k * width + width * 0.2;
    const y = value < 0 ? zero : zero - length;
    return [
      svgElement("rect", { x, y, width: width * 0.6, height: Math.max(length, 0.5), rx: 2, class: value < 0 ? "bar below" : "bar", "data-bar": key ? `${key}.${k}` : null, "data-value": value },
        svgElement("title", {}, `${names[k] ?? k + 1}: ${numeral(value, 4)}`)),
      svgElement("text", { x: (k + 0.5) * width, y: value < 0 ? zero + length + 11 : zero - length - 4, "text-anchor": "middle", class: "number" }, numeral(value)),
      svgElement("text", { x: (k + 0.5) * width, y: 14 + height + 15, "text-anchor": "middle", class: "name" }, names[k] ?? ""),
    ];
  });
  const size = [Math.max(1, values.length) * width, height + (names.length ? 34 : 20)];
  return svgElement(
    "svg",
    { class: "bars", viewBox: `0 0 ${size[0]} ${size[1]}`, width: size[0], height: size[1], role: "img", "aria-label": label, "data-figure": key },
    svgElement("line", { x1: 0, x2: size[0], y1: zero, y2: zero, class: "axis" }),
    parts,
  );
}

/** A figure with a title, an equation and a sentence below. */
export function panel({ title, equation = null, note = null, class: name = "" }, ...children) {
  return element(
    "section",
    { class: `panel ${name}`.trim() },
    element("h3", {}, title),
    equation === null ? null : element("div", { class: "equation" }, equation),
    children,
    note === null ? null : element("p", { class: "note" }, note),
  );
}

/** Why runs are not shown, folded; null if all are. */
export function leftOut(reasons) {
  if (reasons.length === 0) return null;
  return element(
    "details",
    { class: "panel left-out" },
    element("summary", {}, `${reasons.length} ${reasons.length === 1 ? "run" : "runs"} cannot be shown`),
    element("ul", {}, reasons.map((reason) => element("li", {}, reason))),
  );
}
