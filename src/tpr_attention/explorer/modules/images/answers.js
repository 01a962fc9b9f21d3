// What the model of the room "Pixels" answers, beside the true answer.

import { element } from "../dom.js";
import { poseOfCodes } from "./models.js";
import { pixelPicture } from "./pictures.js";
import { badge, checkbox, numeral, panel } from "../widgets.js";

/** A factor's name for people; positions are x and y. */
export function factorName(name) {
  return name.replace(/^position_/, "");
}

/** A value for people; orientations are in degrees. */
export function factorValue(name, value) {
  return name === "orientation" ? `${numeral((value * 180) / Math.PI, 0)}°` : numeral(value);
}

/** An object in words. */
export function describedClasses(classes, { columns }) {
  const said = columns.map(({ name, values, labels }, k) => {
    const number = classes[k];
    return `${factorName(name)} ${labels.length ? labels[number] : factorValue(name, values[number])}`;
  });
  return said.join(", ");
}

/** Whether training has shown an object. */
export function seenBadge(heldOut) {
  return heldOut.length ? badge(`held out: ${heldOut.join(", ")}`, "fair") : badge("seen in training", "good");
}

const UNUSED = 1e6; // a code that is not used
const ANSWERS = {
  fillers: ["Drawn from the fillers", "The decoder places a template that the filler of shape mixes."],
  codes: ["Cleaned up", "Fillers become the nearest codes that the memory found in training."],
};

/** The panel of answers: drawn from fillers, by codes, and the truth. */
export function answerPanel(view, state, update, data) {
  const shown = view.answers.map(({ name, image, where, count, iou }) =>
    element(
      "figure",
      { class: "pixel-answer", "data-answer": name, "data-wrong": count ?? null },
      pixelPicture(image, { key: name, label: `${ANSWERS[name][0]}${view.truth ? `: ${wrongSaid(count)}` : ""}`, wrong: state.marked ? where : null }),
      element(
        "figcaption",
        {},
        element("strong", {}, ANSWERS[name][0]),
        view.truth ? element("span", {}, badge(wrongSaid(count), count ? "fair" : "good"), " ", element("span", { class: "pixel-iou" }, `IoU ${numeral(iou, 3)}`)) : null,
        element("span", { class: "note" }, ANSWERS[name][1]),
        name === "codes" ? codeTable(view, data) : fillerTable(view),
      ),
    ),
  );
  return panel(
    { title: "Answer" },
    element("p", { class: "pixel-verdict", role: "status", "aria-live": "polite" }, verdict(view, state)),
    element("div", { class: "pixel-answers" }, shown, truthPicture(view, data)),
    view.truth
      ? checkbox({ key: "marked", label: "Mark wrong pixels", value: state.marked, onChange: (marked) => update({ marked }) })
      : null,
  );
}

function wrongSaid(count) {
  return count === 0 ? "exact" : `${count} wrong pixel${count === 1 ? "" : "s"}`;
}

/** What the answer is, and whether training has shown it. */
function verdict(view, state) {
  if (view.isOwn) return [badge("no true answer"), " The reference is your own drawing."];
  const [first, second] = [view.reference, view.transform].map(({ heldOut }) => heldOut.length > 0);
  const isNew = view.heldOut.length > 0;
  const test = state.how === "hand" ? ""
    : first && second ? " Both inputs are held out."
    : first ? " Test 1: held-out reference."
    : second ? " Test 2: held-out transform."
    : isNew ? " Test 3: held-out composition." : " All three are of the kind that training shows.";
  const seen = isNew ? badge(`answer held out: ${view.heldOut.join(", ")}`, "fair") : badge("answer seen in training", "good");
  return [seen, test];
}

function truthPicture(view, data) {
  if (!view.truth) return null;
  return element(
    "figure",
    { class: "pixel-answer" },
    pixelPicture(view.truth, { key: "truth", label: `True answer: ${describedClasses(view.classes, data.grid)}` }),
    element("figcaption", {}, element("strong", {}, "True answer"), element("span", { class: "note" }, describedClasses(view.classes, data.grid))),
  );
}

/** What the fillers of the answer decode to. */
function fillerTable({ pose, colours }) {
  return readingTable("What the fillers say", poseRows(pose, colours).map(([name, what]) => [name, what]));
}

function poseRows({ centre, direction, logScale }, colours) {
  const paint = [...colours].map((part) => Math.round(255 * part)).join(" ");
  const turn = (Math.atan2(direction[1], direction[0]) * 180) / Math.PI;
  return [
    ["scale", numeral(Math.exp(logScale), 3)],
    ["angle", `${numeral(turn, 1)}°`],
    ["across", `${numeral(centre[0], 2)} px`],
    ["down", `${numeral(centre[1], 2)} px`],
    ["colour", element("span", { class: "pixel-swatch", style: `background: rgb(${paint})`, title: `rgb ${paint}` })],
  ];
}

function readingTable(caption, rows, attributes = {}) {
  return element(
    "table",
    { class: "pixel-codes", ...attributes },
    element("caption", {}, caption),
    element("tbody", {}, rows.map(([name, ...cells]) =>
      element("tr", {}, element("th", { scope: "row" }, name), cells.map((cell) => element("td", {}, cell))))),
  );
}

/** The codes of the clean-up memory: what each stands for, and which of how many it is. */
function codeTable(view, data) {
  const { memory } = data.model;
  const [shape, scale, angle, across, down, colour] = view.codes;
  const count = (numbers) => numbers.filter((number) => number < UNUSED).length;
  const line = (row, { shape: [, width], data: numbers }) => numbers.slice(row * width, (row + 1) * width);
  const known = {
    scale: [scale, count(line(shape, memory.log_scales))],
    angle: [angle, count(memory.angles.data)],
    across: [across, count(line(0, memory.places))],
    down: [down, count(line(1, memory.places))],
    colour: [colour, count(memory.colours.data.filter((_, k) => k % memory.colours.shape[1] === 0))],
  };
  const which = ([number, all]) => `${number + 1} of ${all}`;
  const rows = poseRows(poseOfCodes(view.codes, memory), line(colour, memory.colours));
  return readingTable(
    "Codes, found without labels",
    [["shape", "", which([shape, memory.shapes.shape[0]])], ...rows.map(([name, what]) => [name, what, which(known[name])])],
    { "data-codes": view.codes.join(",") },
  );
}
