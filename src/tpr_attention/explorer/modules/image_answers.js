// What the model of the room "Pixels" answers, beside the true answer.

import { element } from "./dom.js";
import { poseOfCodes } from "./image_models.js";
import { pixelPicture } from "./image_pictures.js";
import { badge, checkbox, numeral, panel } from "./widgets.js";

/** An object in words. */
export function describedClasses(classes, { columns }) {
  const said = columns.map(({ name, values, labels }, k) => {
    const number = classes[k];
    return `${name.replace("_", " ")} ${labels.length ? labels[number] : numeral(values[number])}`;
  });
  return said.join(", ");
}

/** Whether training has shown an object. */
export function seenBadge(heldOut) {
  return heldOut.length ? badge(`held out: ${heldOut.join(", ")}`, "fair") : badge("seen in training", "good");
}

const ANSWERS = {
  fillers: ["Drawn from the fillers", "The decoder moves, turns, scales and paints the template that the filler of shape mixes."],
  codes: ["Cleaned up", "Each filler is replaced by the nearest code that the memory found in training images."],
};

/** The panel of answers: drawn from fillers, by codes, and the truth. */
export function answerPanel(view, state, update, data) {
  const shown = view.answers.map(({ name, image, where, count, iou }) =>
    element(
      "figure",
      { class: "answer-picture", "data-answer": name, "data-wrong": count ?? null },
      pixelPicture(image, { key: name, label: `${ANSWERS[name][0]}${view.truth ? `: ${wrongSaid(count)}` : ""}`, wrong: state.marked ? where : null }),
      element(
        "figcaption",
        {},
        element("strong", {}, ANSWERS[name][0]),
        view.truth ? element("span", { class: "count" }, badge(wrongSaid(count), count ? "fair" : "good"), ` IoU ${numeral(iou, 3)}`) : null,
        element("span", { class: "note" }, ANSWERS[name][1]),
        name === "codes" ? codeList(view, data) : null,
      ),
    ),
  );
  return panel(
    { title: "Answer", class: "answers" },
    element("p", { class: "verdict", role: "status", "aria-live": "polite" }, verdict(view, state)),
    element("div", { class: "answer-pictures" }, shown, truthPicture(view, data)),
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
    { class: "answer-picture" },
    pixelPicture(view.truth, { key: "truth", label: `True answer: ${describedClasses(view.classes, data.grid)}` }),
    element("figcaption", {}, element("strong", {}, "True answer"), element("span", { class: "note" }, describedClasses(view.classes, data.grid))),
  );
}

/** The codes of the clean-up memory: which of how many, and what it stands for. */
function codeList(view, data) {
  const { memory } = data.model;
  const [shape, scale, angle, across, down, colour] = view.codes;
  const pose = poseOfCodes(view.codes, memory);
  const count = (numbers) => numbers.filter((number) => number < 1e6).length;
  const line = (row, { shape: [, width], data: numbers }) => numbers.slice(row * width, (row + 1) * width);
  const paint = [...line(colour, memory.colours)].map((part) => Math.round(255 * part)).join(" ");
  const turn = (Math.atan2(pose.direction[1], pose.direction[0]) * 180) / Math.PI;
  const rows = [
    ["shape", `${shape + 1} of ${memory.shapes.shape[0]}`, ""],
    ["scale", `${scale + 1} of ${count(line(shape, memory.log_scales))}`, numeral(Math.exp(pose.logScale))],
    ["angle", `${angle + 1} of ${count(memory.angles.data)}`, `${numeral(turn, 1)}°`],
    ["across", `${across + 1} of ${count(line(0, memory.places))}`, `${numeral(pose.centre[0], 1)} px`],
    ["down", `${down + 1} of ${count(line(1, memory.places))}`, `${numeral(pose.centre[1], 1)} px`],
    ["colour", `${colour + 1} of ${count(memory.colours.data.filter((_, k) => k % memory.colours.shape[1] === 0))}`,
      element("span", { class: "swatch", style: `background: rgb(${paint})`, title: `rgb ${paint}` })],
  ];
  return element(
    "table",
    { class: "codes", "data-codes": view.codes.join(",") },
    element("caption", {}, "Codes, found without labels"),
    element("tbody", {}, rows.map(([name, which, what]) =>
      element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, which), element("td", {}, what)))),
  );
}
