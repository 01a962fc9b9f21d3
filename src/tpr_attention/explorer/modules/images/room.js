// Pixels: two images and an action in, the image of the answer out; roles can be exchanged by hand.

import { element } from "../dom.js";
import { answerPanel, describedClasses, factorName, factorValue, seenBadge } from "./answers.js";
import { objectRows } from "./exchange.js";
import { FRAME_SIDE, exchangedClasses, frameMask, heldOutBy } from "./frames.js";
import { drawingHandlers, pixelPicture } from "./pictures.js";
import { checkImageState, imageDefaults, imageView, pixelsOf, rolesTaken, textOf } from "./state.js";
import { badge, button, choice, numeral, panel, select, slider } from "../widgets.js";

const TRIES = 1000;

export const imagesRoom = {
  key: "images",
  title: "Pixels",
  defaults: imageDefaults,
  check: checkImageState,
  render(place, state, update, data) {
    const begun = performance.now();
    const view = imageView(state, data);
    const milliseconds = performance.now() - begun;
    place.append(
      element(
        "div",
        { class: "images-room", "data-milliseconds": milliseconds.toFixed(1) },
        element("h2", {}, "Two images and an action in, the image of the answer out"),
        element(
          "p",
          {},
          "The encoder takes each image apart into five roles with a filler each. TPR-Attention exchanges the role that ",
          "the action names, and the decoder draws the result. The model was trained on target images, and on ",
          "what its memory draws of the codes that it found there. It runs in this page, at every change.",
        ),
        element(
          "div",
          { class: "panels pixel-inputs" },
          inputPanel("reference", view, state, update, data),
          actionPanel(view, state, update, data),
          inputPanel("transform", view, state, update, data),
        ),
        answerPanel(view, state, update, data),
        element("h2", { class: "pixel-heading" }, "Exchange roles by hand"),
        element(
          "p",
          {},
          "Press a row of the reference or of the transform, or drag it to the answer, to take this role. An object has ",
          "five roles with eight numbers each; colours are relative to the largest number of a role.",
        ),
        objectPanels(view, state, update, data),
        element("p", { class: "note" }, `Model: ${data.label}, seed ${data.seed}.`),
      ),
    );
  },
};

function inputPanel(side, view, state, update, data) {
  const { heldOut, image } = view[side];
  const isOwn = side === "reference" && view.isOwn;
  return panel(
    { title: side === "reference" ? "Reference" : "Transform", class: `pixel-side-${side}` },
    element(
      "div",
      { class: "pixel-parts", "data-drop": side },
      element(
        "div",
        { class: "pixel-column" },
        side === "reference" && state.drawing ? drawingSurface(image, state, update, data)
          : pixelPicture(image, { key: side, label: describedClasses(state[side], data.grid) }),
        isOwn ? badge("your own drawing") : seenBadge(heldOut),
        side === "reference" ? drawingTools(state, update) : null,
      ),
      element("div", { class: "fields", role: "group", "aria-label": side }, factorControls(side, state, update, data)),
    ),
  );
}

function factorControls(side, state, update, { grid }) {
  const set = (k) => (value) =>
    update((now) => ({ [side]: now[side].map((one, j) => (j === k ? Number(value) : one)) }));
  return grid.columns.map(({ name, values, labels }, k) => {
    const common = { key: `${side}-${name}`, label: factorName(name), value: state[side][k] };
    if (labels.length) {
      return select({ ...common, options: labels.map((label, value) => ({ value, label })), onChange: set(k) });
    }
    const shown = factorValue(name, values[state[side][k]]);
    return slider({ ...common, min: 0, max: values.length - 1, step: 1, shown, onInput: set(k) });
  });
}

function drawingTools(state, update) {
  return element(
    "div",
    { class: "choice" },
    button({
      key: "drawing", label: "Draw", pressed: state.drawing, title: "Paint and erase pixels of the reference",
      onClick: () => update((now) => ({ drawing: !now.drawing })),
    }),
    state.drawn ? button({ key: "undraw", label: "Undo drawing", onClick: () => update({ drawn: "" }) }) : null,
  );
}

function drawingSurface(image, state, update, data) {
  const change = (paint) =>
    update((now) => {
      const plain = frameMask(data.grid, now.reference);
      const mask = Uint8Array.from(plain);
      pixelsOf(now.drawn).forEach((one, k) => (mask[k] ^= one));
      paint(mask, now.cursor);
      return { drawn: textOf(mask.map((one, k) => one ^ plain[k])) };
    });
  const [x, y] = [state.cursor % FRAME_SIDE, Math.floor(state.cursor / FRAME_SIDE)];
  const at = (number) => `${(100 * number) / FRAME_SIDE}%`;
  return element(
    "div",
    {
      class: "pixel-canvas", tabindex: "0", role: "application", "data-key": "canvas",
      "aria-label": `Drawing of 64 by 64 pixels. Arrow keys move, space changes the pixel in column ${x + 1}, row ${y + 1}.`,
      ...drawingHandlers(change, (next) => update((now) => ({ cursor: next(now.cursor) }))),
    },
    pixelPicture(image, { key: "reference", label: "your own drawing" }),
    element("span", { class: "pixel-cursor", style: `left: ${at(x)}; top: ${at(y)}` }),
  );
}

function actionPanel(view, state, update, data) {
  const names = data.grid.actions.map(({ name }) => name);
  const options = [...names.map((label, value) => ({ value, label })), { value: "hand", label: "by hand" }];
  return panel(
    { title: "Exchange" },
    choice({
      key: "action", label: "Take from the transform", options, value: state.how === "hand" ? "hand" : state.action,
      onChange: (value) =>
        update((now) => (value === "hand" ? { how: "hand", taken: rolesTaken(now) } : { how: "action", action: value })),
    }),
    element(
      "p",
      { class: "note" },
      state.how === "hand"
        ? "Rows of the objects below are exchanged as they are, without the attention layer."
        : "The attention layer composes both objects under this action.",
    ),
    element(
      "div",
      { class: "choice" },
      button({ key: "random", label: "Random pair", onClick: () => update(randomPair(state, data, false)) }),
      button({ key: "random-held-out", label: "Random new answer", title: "A pair that training shows, whose answer it holds out", onClick: () => update(randomPair(state, data, true)) }),
    ),
  );
}

/** Two objects that training shows, whose answer it does not show if that is wanted and possible. */
function randomPair(state, { grid, splits }, isNew) {
  const drawn = () => grid.columns.map(({ values }) => Math.floor(Math.random() * values.length));
  const isKnown = (classes) => heldOutBy(grid, splits, classes).length === 0;
  let pair = {};
  for (let k = 0; k < TRIES; k += 1) {
    // an action that cannot make a held-out answer is given up after half of the tries
    const action = k < TRIES / 2 ? state.action : Math.floor(Math.random() * grid.actions.length);
    const how = k < TRIES / 2 ? state.how : "action";
    pair = { reference: drawn(), transform: drawn(), action, how, drawn: "" };
    const answer = exchangedClasses(grid, pair.reference, pair.transform, rolesTaken({ ...state, ...pair }));
    if (isKnown(pair.reference) && isKnown(pair.transform) && isKnown(answer) !== isNew) break;
  }
  return pair;
}

/** The picture of an object beside its rows; its panel says what it is. */
function thumbnail(image) {
  return pixelPicture(image, { key: null, label: "", class: "pixel-picture small" });
}

function objectPanels(view, state, update, data) {
  const names = data.grid.actions.map(({ name }) => name);
  const objects = { reference: view.reference.object, answer: view.object, transform: view.transform.object };
  const width = view.object.shape[1];
  const scales = names.map((_, role) =>
    Math.max(1e-12, ...Object.values(objects).flatMap(({ data: numbers }) => [...numbers.slice(role * width, (role + 1) * width)].map(Math.abs))),
  );
  const from = names.map((_, role) => (view.taken.includes(role) ? "transform" : "reference"));
  const take = (side) => (role) =>
    update((now) => {
      const others = rolesTaken(now).filter((one) => one !== role);
      return { how: "hand", taken: side === "transform" ? [...others, role] : others };
    });
  const rows = (side) =>
    panel(
      { title: `Object of the ${side}`, class: `pixel-side-${side}` },
      thumbnail(view[side].image),
      element("div", { "data-drop": side }, objectRows({ side, object: objects[side], names, scales, from, onTake: take(side) })),
    );
  const note = state.how === "hand"
    ? "Each row is that of the object with the same colour at its edge."
    : `As the attention layer composes it. It differs from an exact exchange by up to ${numeral(view.apart)}.`;
  return element(
    "div",
    { class: "panels" },
    rows("reference"),
    panel(
      { title: "Object of the answer", note },
      thumbnail(view.answers[view.answers.length - 1].image),
      element(
        "div",
        { "data-drop": "answer" },
        objectRows({ side: "answer", object: objects.answer, names, scales, from: state.how === "hand" ? from : [] }),
      ),
    ),
    rows("transform"),
  );
}
