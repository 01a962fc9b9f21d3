// The answers of the models: sprites, role-filler matrices and errors of each role.

import { factorPicture, factorWords, lossWords } from "./question.js";
import { decodeObject, errorsOf, rightRoles } from "./task.js";
import { element, svgElement } from "../dom.js";
import { badge, heatMap } from "../widgets.js";

const ANSWER_CELL = 34;
const LOW_ERROR = 1e-5; // an error that nobody sees
const HIGH_ERROR = 1e-2;

/** Whether an error is small, as a tone. */
export function errorTone(error) {
  return error < LOW_ERROR ? "good" : error < HIGH_ERROR ? "fair" : "bad";
}

/**
 * One answer: what it looks like, its matrix, its errors.
 *
 * @param {{key: string, title: string, note: string, answer: Tensor, target: Tensor, floor: number}} shown
 */
export function modelAnswer(world, tables, { key, title, note, answer, target, floor = 0 }, isTarget = false) {
  const { loss, roles } = errorsOf(world, answer, target);
  const right = rightRoles(world, tables, answer, target);
  const wrong = world.roles.filter((_, j) => !right[j]).map((role) => role.name);
  const decoded = decodeObject(world, tables, answer);
  return element(
    "section",
    { class: "panel model-answer", "data-key": `answer-${key}`, "data-loss": loss, "data-decoded": decoded.join(",") },
    element(
      "div",
      { class: "composition-head" },
      factorPicture(world, decoded, title, 84),
      element(
        "div",
        {},
        element("h3", {}, title),
        element("p", { class: "note" }, note),
        isTarget
          ? null
          : element(
              "p",
              { class: "kind-badges" },
              badge(`loss ${lossWords(loss)}${floor ? `, floor ${lossWords(floor)}` : ""}`, errorTone(loss)),
              wrong.length ? badge(`reads wrong: ${wrong.join(", ")}`, "bad") : badge("reads right", "good"),
            ),
      ),
    ),
    element(
      "div",
      { class: "answer-matrix scroll" },
      objectMap(world, answer, `${title}: fillers of each role`, `answer-${key}`, (row) => !right[row]),
      isTarget ? null : errorColumn(roles, key),
    ),
    element("p", { class: "note" }, factorWords(world, decoded)),
  );
}

/** An object as a matrix with the names of its roles. */
export function objectMap(world, obj, label, key, marked = () => false) {
  return heatMap({
    values: obj,
    rows: world.roles.map((role) => role.name),
    columns: Array.from({ length: obj.shape[1] }, (_, f) => `f${f + 1}`),
    label,
    key,
    cell: ANSWER_CELL,
    scale: 1,
    marked,
  });
}

/** The mean squared error of each role, next to its row. */
function errorColumn(errors, key) {
  const [width, top] = [58, 18];
  const size = { viewBox: `0 0 ${width} ${top + errors.length * ANSWER_CELL + 1}`, width, height: top + errors.length * ANSWER_CELL + 1 };
  return svgElement(
    "svg",
    { ...size, class: "errors", role: "img", "aria-label": "Mean squared error of each role" },
    svgElement("text", { x: width - 4, y: top - 6, "text-anchor": "end", class: "name" }, "error"),
    errors.map((error, row) =>
      svgElement(
        "text",
        {
          x: width - 4,
          y: top + (row + 0.5) * ANSWER_CELL,
          "text-anchor": "end",
          "dominant-baseline": "central",
          class: `error-number ${errorTone(error)}`,
          "data-cell": `error-${key}.${row}`,
          "data-value": error,
        },
        lossWords(error),
      ),
    ),
  );
}
