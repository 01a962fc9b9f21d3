// Charts with axes.

import { svgElement } from "./dom.js";
import { numeral } from "./widgets.js";

/**
 * Lines over a shared axis, which is spaced by the places of `at`.
 * @param {object} options
 * @param {number[]} options.at
 * @param {{name: string, values: number[], class: string}[]} options.lines
 * @param {string} options.xTitle
 * @param {string} options.yTitle
 * @param {string} options.label
 * @param {string} options.key points have `data-point="key.line.index"` and `data-value`
 */
export function lineChart({ at, lines, xTitle, yTitle, label, key, low = 0, high = 1, width = 560, height = 250 }) {
  const [left, right, top, bottom] = [46, 100, 14, 42];
  const x = (k) => left + (k / Math.max(1, at.length - 1)) * (width - left - right);
  const y = (value) => top + (1 - (value - low) / (high - low)) * (height - top - bottom);
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => low + share * (high - low));
  const names = spread(lines.map(({ values }) => y(values[values.length - 1])), 15);
  return svgElement(
    "svg",
    { class: "chart", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label, "data-figure": key },
    ticks.map((value) => [
      svgElement("line", { x1: left, x2: width - right, y1: y(value), y2: y(value), class: "grid" }),
      svgElement("text", { x: left - 8, y: y(value), "text-anchor": "end", "dominant-baseline": "central", class: "name" }, numeral(value)),
    ]),
    at.map((value, k) => svgElement("text", { x: x(k), y: height - bottom + 18, "text-anchor": "middle", class: "name" }, value)),
    svgElement("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle", class: "name" }, xTitle),
    svgElement("text", { x: 12, y: (top + height - bottom) / 2, "text-anchor": "middle", class: "name", transform: `rotate(-90 12 ${(top + height - bottom) / 2})` }, yTitle),
    lines.map((line, number) => [
      svgElement("polyline", { points: line.values.map((value, k) => `${x(k)},${y(value)}`).join(" "), class: `line ${line.class}` }),
      line.values.map((value, k) =>
        svgElement("circle", { cx: x(k), cy: y(value), r: 3.5, class: `point ${line.class}`, "data-point": `${key}.${number}.${k}`, "data-value": value },
          svgElement("title", {}, `${line.name}, ${at[k]}: ${numeral(value, 3)}`)),
      ),
      svgElement("text", { x: width - right + 10, y: names[number], "dominant-baseline": "central", class: `line-name ${line.class}` }, line.name),
    ]),
  );
}

/** Heights that are at least `gap` apart, near those given. */
function spread(heights, gap) {
  const order = heights.map((_, k) => k).sort((a, b) => heights[a] - heights[b]);
  const placed = [...heights];
  order.forEach((k, place) => {
    if (place > 0) placed[k] = Math.max(placed[k], placed[order[place - 1]] + gap);
  });
  return placed;
}
