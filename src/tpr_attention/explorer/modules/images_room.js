// Pixels: two images and an action in, the image of the answer out; roles can be exchanged by hand.

import { element } from "./dom.js";
import { answerPanel, describedClasses, seenBadge } from "./image_answers.js";
import { objectRows } from "./image_exchange.js";
import { FRAME_SIDE, exchangedClasses, heldOutBy } from "./image_frames.js";
import { drawingHandlers, pixelPicture } from "./image_pictures.js";
import { checkImageState, imageDefaults, imageView, pixelsOf, rolesTaken, textOf } from "./image_state.js";
import { badge, button, choice, numeral, panel, select, slider } from "./widgets.js";

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
          "the action names, and the decoder draws what is left. The model was trained on target images alone; it runs ",
          "in this page, at every change.",
        ),
        element(
          "div",
          { class: "panels image-inputs" },
          inputPanel("reference", view, state, update, data),
          actionPanel(view, state, update, data),
          inputPanel("transform", view, state, update, data),
        ),
        objectPanels(view, state, update, data),
        answerPanel(view, state, update, data),
        element("p", { class: "note" }, `Model: ${data.label}, seed ${data.seed}.`),
      ),
    );
  },
};

function inputPanel(side, view, state, update, data) {
  const { heldOut, image } = view[side];
  const isOwn = side === "reference" && view.isOwn;
  return panel(
    { title: side === "reference" ? "Reference" : "Transform", class: "input" },
    element(
      "div",
      { class: "input-parts", "data-drop": side },
      element(
        "div",
        { class: "picture-column" },
        side === "reference" && state.drawing ? drawingSurface(image, state, update, data)
          : pixelPicture(image, { key: side, label: describedClasses(state[side], data.grid) }),
        isOwn ? badge("your own drawing") : seenBadge(heldOut),
        side === "reference" ? drawingTools(state, update) : null,
      ),
      element("div", { class: "fields" }, factorControls(side, state, update, data)),
    ),
  );
}

function factorControls(side, state, update, { grid }) {
  const set = (k) => (value) =>
    update((now) => ({ [side]: now[side].map((one, j) => (j === k ? Number(value) : one)) }));
  return grid.columns.map(({ name, values, labels }, k) => {
    const common = { key: `${side}-${name}`, label: name.replace("_", " "), value: state[side][k] };
    if (labels.length) {
      return select({ ...common, options: labels.map((label, value) => ({ value, label })), onChange: set(k) });
    }
    const shown = name === "orientation" ? `${numeral((values[state[side][k]] * 180) / Math.PI, 0)}°` : numeral(values[state[side][k]]);
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
      const plain = imageView({ ...now, drawn: "" }, data).reference.mask;
      const mask = Uint8Array.from(plain);
      pixelsOf(now.drawn).forEach((one, k) => (mask[k] ^= one));
      paint(mask);
      return { drawn: textOf(mask.map((one, k) => one ^ plain[k])) };
    });
  const [x, y] = [state.cursor % FRAME_SIDE, Math.floor(state.cursor / FRAME_SIDE)];
  const at = (number) => `${(100 * number) / FRAME_SIDE}%`;
  return element(
    "div",
    {
      class: "drawing", tabindex: "0", role: "application", "data-key": "canvas",
      "aria-label": `Drawing of 64 by 64 pixels. Arrow keys move, space changes the pixel in column ${x + 1}, row ${y + 1}.`,
      ...drawingHandlers({ cursor: state.cursor, change, onCursor: (cursor) => update({ cursor }) }),
    },
    pixelPicture(image, { key: "reference", label: "your own drawing" }),
    element("span", { class: "cursor", style: `left: ${at(x)}; top: ${at(y)}` }),
  );
}

function actionPanel(view, state, update, data) {
  const names = data.grid.actions.map(({ name }) => name);
  const options = [...names.map((label, value) => ({ value, label })), { value: "hand", label: "by hand" }];
  return panel(
    { title: "Exchange", class: "action" },
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
      button({ key: "random-held-out", label: "Random held-out answer", onClick: () => update(randomPair(state, data, true)) }),
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
      { title: `Object of the ${side}`, class: `object ${side}` },
      element("div", { "data-drop": side }, objectRows({ side, object: objects[side], names, scales, from, onTake: take(side) })),
    );
  const note = state.how === "hand"
    ? "Each row is that of the object with the same colour at its edge."
    : `As the attention layer composes it; an exact exchange differs by at most ${numeral(view.apart, 3)}.`;
  return element(
    "div",
    { class: "panels image-objects" },
    rows("reference"),
    panel(
      { title: "Object of the answer", class: "object answer", note },
      element(
        "div",
        { "data-drop": "answer" },
        objectRows({ side: "answer", object: objects.answer, names, scales, from: state.how === "hand" ? from : [] }),
      ),
    ),
    rows("transform"),
    element(
      "p",
      { class: "note wide" },
      "Five roles with eight numbers each. Press a row of the reference or of the transform, or drag it to the answer, ",
      "to take this role by hand. Colours are relative to the largest number of a role.",
    ),
  );
}
