// The state of the room "Pixels", and everything that its view shows, computed from the state.

import { FRAME_SIDE, exchangedClasses, frameImage, frameMask, heldOutBy, wrongPixels } from "./frames.js";
import { imageModel } from "./models.js";
import { tensor } from "../tensors.js";

const PIXELS = FRAME_SIDE * FRAME_SIDE;
const models = new WeakMap();

/** The model of unpacked data, made once. */
export function modelOf(data) {
  if (!models.has(data)) models.set(data, imageModel(data.model));
  return models.get(data);
}

/** A red ellipse that becomes a square: a combination that is held out of training by all usual splits. */
export function imageDefaults({ grid }) {
  const wanted = [
    { shape: "ellipse", scale: 4, orientation: 4, position_x: 7, position_y: 13, colour: "red" },
    { shape: "square", scale: 1, orientation: 2, position_x: 12, position_y: 20, colour: "green" },
  ];
  const [reference, transform] = wanted.map((classes) => grid.columns.map((column) => classOf(column, classes[column.name])));
  return { reference, transform, how: "action", action: 0, taken: [], marked: true, drawing: false, cursor: 32 * FRAME_SIDE + 32, drawn: "" };
}

function classOf(column, wanted) {
  const number = typeof wanted === "string" ? column.labels.indexOf(wanted) : wanted;
  return Math.min(column.values.length - 1, Math.max(0, number ?? 0));
}

/** A state that can be shown; throws for one that cannot be. */
export function checkImageState(state, { grid }) {
  const isClass = (number, size) => Number.isInteger(number) && number >= 0 && number < size;
  for (const classes of [state.reference, state.transform]) {
    const fits = grid.columns.every((column, k) => isClass(classes[k], column.values.length));
    if (!fits || classes.length !== grid.columns.length) throw new Error("expected a class for each factor");
  }
  const roles = grid.actions.length;
  if (!isClass(state.action, roles)) throw new Error("expected the number of an action");
  if (!state.taken.every((role) => isClass(role, roles))) throw new Error("expected numbers of roles");
  if (!isClass(state.cursor, PIXELS)) throw new Error("expected the number of a pixel");
  if (!["action", "hand"].includes(state.how)) throw new Error("expected an action or a hand");
  pixelsOf(state.drawn);
  return { ...state, taken: [...new Set(state.taken)].sort((a, b) => a - b) };
}

/** Changed pixels as text: how many are left out and how many follow, again and again, in base 36. */
export function textOf(changed) {
  const runs = [];
  let place = 0;
  while (place < PIXELS) {
    const from = changed.indexOf(1, place);
    if (from < 0) break;
    const end = changed.indexOf(0, from);
    runs.push(from - place, (end < 0 ? PIXELS : end) - from);
    place = end < 0 ? PIXELS : end;
  }
  return runs.map((run) => run.toString(36)).join("-");
}

/** The changed pixels of a text, each 0 or 1; throws for a text that `textOf` does not write. */
export function pixelsOf(text) {
  const changed = new Uint8Array(PIXELS);
  let place = 0;
  (text ? text.split("-") : []).forEach((run, k) => {
    const count = /^[0-9a-z]{1,3}$/.test(run) ? parseInt(run, 36) : PIXELS + 1;
    if (place + count > PIXELS) throw new Error("expected runs of pixels");
    if (k % 2 === 1) changed.fill(1, place, place + count);
    place += count;
  });
  return changed;
}

/** The roles that the answer has of the transform: those that are taken by hand, or that of the action. */
export function rolesTaken(state) {
  return state.how === "hand" ? state.taken : [state.action];
}

/** Everything that is shown for a state. */
export function imageView(state, data) {
  const model = modelOf(data);
  const { grid, splits } = data;
  const taken = rolesTaken(state);
  const reference = seenObject(state.reference, data, state.drawn);
  const transform = seenObject(state.transform, data);
  const exchanged = exchangedObject(reference.object, transform.object, taken);
  const object = state.how === "hand" ? exchanged : model.compose(reference.object, transform.object, state.action);
  const classes = exchangedClasses(grid, state.reference, state.transform, taken);
  const isOwn = state.drawn !== "";
  const truth = isOwn ? null : seenFrame(classes, data).image;
  const answers = [{ name: "fillers", image: model.drawFillers(object) }];
  const codes = model.hasMemory ? model.readCodes(object) : null;
  if (codes) answers.push({ name: "codes", image: model.drawCodes(codes) });
  return {
    reference, transform, object, codes, taken, classes, truth, isOwn,
    pose: model.pose(object),
    colours: model.colours(object),
    answers: answers.map((answer) => ({ ...answer, ...(truth && judged(answer.image, truth)) })),
    heldOut: heldOutBy(grid, splits, classes),
    apart: object.data.reduce((most, number, k) => Math.max(most, Math.abs(number - exchanged.data[k])), 0),
  };
}

function seenFrame(classes, { grid }, changed = null) {
  const mask = frameMask(grid, classes);
  if (changed) changed.forEach((one, k) => (mask[k] ^= one));
  const colour = grid.columns.findIndex(({ name }) => name === "colour");
  return { mask, image: frameImage(mask, classes[colour], grid.columns[colour].values.length) };
}

let lastSeen = []; // the newest objects, so that a control computes only what it changes

function seenObject(classes, data, drawn = "") {
  const key = `${classes}/${drawn}`;
  const known = lastSeen.find((one) => one.key === key && one.data === data);
  if (known) return known.seen;
  const frame = seenFrame(classes, data, drawn ? pixelsOf(drawn) : null);
  const heldOut = heldOutBy(data.grid, data.splits, classes);
  const seen = { ...frame, ...modelOf(data).encode(frame.image), heldOut };
  lastSeen = [{ key, data, seen }, ...lastSeen].slice(0, 4);
  return seen;
}

function exchangedObject(reference, transform, taken) {
  const width = reference.shape[1];
  return tensor(
    reference.shape,
    reference.data.map((number, k) => (taken.includes(Math.floor(k / width)) ? transform.data[k] : number)),
  );
}

/** Wrong pixels, and the intersection of what is on over its union, as `measure_images` has them. */
function judged(image, truth) {
  const on = (numbers, k) => [0, PIXELS, 2 * PIXELS].some((channel) => numbers[channel + k] > 0.5);
  let both = 0;
  let either = 0;
  for (let k = 0; k < PIXELS; k += 1) {
    const [seen, there] = [on(image, k), on(truth, k)];
    both += seen && there;
    either += seen || there;
  }
  return { ...wrongPixels(image, truth), iou: either ? both / either : 1 };
}
