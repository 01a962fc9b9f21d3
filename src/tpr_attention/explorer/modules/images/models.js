// The model "images-composer" in float64: composition, decoder and clean-up memory, as in `tpr_attention.nn.images`.
// Images are looked at once, as in Python where codes are used.
// Images are Float64Array [channel * side * side], objects are tensors [r f].

import { actionRead, actionWrite } from "../algebra.js";
import { FULL_TURN, encodeImage, waveTables } from "./encoder.js";
import { linear, tensor } from "../tensors.js";

const COLOUR_GAIN = 4;
const UNUSED_CODE = 1e6; // a code that is not used

/**
 * @typedef {{centre: number[], direction: number[], logScale: number}} Pose
 * @typedef {{shape: number[], data: Float64Array}} Matrix
 */

/**
 * A model made of unpacked data; see `rooms/images.py`.
 * @returns {{encode, compose, pose, colours, drawFillers, readCodes, drawCodes}} functions of images, objects and codes
 */
export function imageModel({ side, cutoff, eager, weights, memory }) {
  const waves = waveTables(side, cutoff);
  const basis = joinedTemplates(weights);
  const codes = memory && { ...memory, seen: seenDirections(basis, rowsOfMatrix(memory.shapes)) };
  return {
    hasMemory: Boolean(memory),
    encode: (image) => encodeImage(image, { side, cutoff, weights, waves }),
    compose: (reference, transform, action) => composeObjects(reference, transform, action, weights, eager),
    pose: (object) => poseOf(object, weights, side),
    colours: (object) => coloursOf(object, weights),
    drawFillers: (object) => drawByFillers(object, weights, basis, side),
    readCodes: (object) => readCodes(object, { weights, basis, side, codes }),
    drawCodes: (numbers) => drawByCodes(numbers, memory, side),
  };
}

/** The reference, changed as the action asks: heads of appendix D, added to it. */
function composeObjects(reference, transform, action, weights, eager) {
  const [id, query, filler, role] = ["id_query", "query_map", "filler_map", "role_map"].map(
    (name) => weights[`composition.attention.${name}`],
  );
  const objects = tensor([2, ...reference.shape], Float64Array.from([...reference.data, ...transform.data]));
  const asked = tensor([query.shape[1]], Float64Array.from({ length: query.shape[1] }, (_, k) => Number(k === action)));
  const update = actionWrite(actionRead(objects, asked, id, query), asked, filler, role);
  return tensor(reference.shape, reference.data.map((number, k) => number + eager * update.data[k]));
}

function sigmoidOf(number) {
  return 1 / (1 + Math.exp(-number));
}

function fillerOf(object, role) {
  const width = object.shape[1];
  return tensor([width], object.data.slice(role * width, (role + 1) * width));
}

/** `TemplateDecoder.pose`: where and how the template of an object is drawn. @returns {Pose} */
function poseOf(object, weights, side) {
  const [cosX, sinX, cosY, sinY] = fillerOf(object, 3).data;
  const centre = [Math.atan2(sinX, cosX), Math.atan2(sinY, cosY)].map((angle) =>
    remainderOf((angle * side) / FULL_TURN, side),
  );
  const turn = linear(fillerOf(object, 2), weights["decoder.orientation.weight"], weights["decoder.orientation.bias"]);
  const length = Math.max(1e-12, Math.hypot(turn.data[0], turn.data[1]));
  const scale = linear(fillerOf(object, 1), weights["decoder.scale.weight"], weights["decoder.scale.bias"]);
  return { centre, direction: [turn.data[0] / length, turn.data[1] / length], logScale: scale.data[0] };
}

function remainderOf(number, modulus) {
  return number - modulus * Math.floor(number / modulus);
}

function coloursOf(object, weights) {
  const found = linear(
    fillerOf(object, object.shape[0] - 1), weights["decoder.colour.weight"], weights["decoder.colour.bias"],
  );
  return Array.from(found.data, (number) => sigmoidOf(COLOUR_GAIN * number));
}

/** Rows: the template without a filler, and those of its entries. */
function joinedTemplates(weights) {
  const base = weights["decoder.base"];
  const size = base.shape[0];
  const { data } = weights["decoder.templates"];
  const rows = [base.data];
  for (let k = 0; k < data.length; k += size * size) rows.push(data.subarray(k, k + size * size));
  return { size, rows };
}

function drawByFillers(object, weights, basis, side) {
  const gain = Math.exp(weights["decoder.gain"].data[0]);
  const shape = [1, ...fillerOf(object, 0).data];
  const template = new Float64Array(basis.size * basis.size);
  shape.forEach((entry, d) => {
    const row = basis.rows[d];
    for (let k = 0; k < template.length; k += 1) template[k] += entry * row[k] * gain;
  });
  const read = bilinearReader(template, basis.size);
  const field = fieldInFrame(read, poseOf(object, weights, side), side, weights.reach.data[0]);
  return paintedField(field, coloursOf(object, weights));
}

function paintedField(field, colours) {
  const image = new Float64Array(colours.length * field.length);
  field.forEach((odds, k) => {
    const on = sigmoidOf(odds);
    for (let c = 0; c < colours.length; c += 1) image[c * field.length + k] = colours[c] * on;
  });
  return image;
}

/** `own_frame`: what is read at the centres of all pixels, each in the frame of the object, from -1 to 1. */
export function fieldInFrame(read, pose, side, reach) {
  const zoom = Math.exp(-pose.logScale) / reach;
  const [cos, sin] = pose.direction;
  const field = new Float64Array(side * side);
  for (let y = 0; y < side; y += 1) {
    const down = (y + 0.5 - pose.centre[1]) * zoom;
    for (let x = 0; x < side; x += 1) {
      const across = (x + 0.5 - pose.centre[0]) * zoom;
      field[y * side + x] = read(cos * across - sin * down, sin * across + cos * down);
    }
  }
  return field;
}

function clampOwn(own) {
  return Math.min(1, Math.max(-1, own));
}

/** `grid_sample`: reads a template by bilinear interpolation; its border goes on outside. */
export function bilinearReader(template, size) {
  return (across, down) => {
    const column = ((clampOwn(across) + 1) / 2) * (size - 1);
    const row = ((clampOwn(down) + 1) / 2) * (size - 1);
    const left = Math.min(size - 2, Math.floor(column));
    const top = Math.min(size - 2, Math.floor(row));
    const k = top * size + left;
    const shareX = column - left;
    const shareY = row - top;
    const upper = template[k] * (1 - shareX) + template[k + 1] * shareX;
    const lower = template[k + size] * (1 - shareX) + template[k + size + 1] * shareX;
    return upper * (1 - shareY) + lower * shareY;
  };
}

/** `read_splines`: reads a cubic spline of coefficients; beyond -1 and 1, the value of the border. */
export function splineReader(coefficients, size) {
  const cellOf = (own) => (clampOwn(own) + 1) * ((size - 3) / 2);
  return (across, down) => {
    const column = cellOf(across);
    const row = cellOf(down);
    const left = Math.min(size - 4, Math.floor(column));
    const top = Math.min(size - 4, Math.floor(row));
    const columns = splineWeights(column - left);
    const rows = splineWeights(row - top);
    let found = 0;
    for (let j = 0; j < 4; j += 1) {
      const k = (top + j) * size + left;
      let line = 0;
      for (let i = 0; i < 4; i += 1) line += coefficients[k + i] * columns[i];
      found += rows[j] * line;
    }
    return found;
  };
}

function splineWeights(share) {
  const rest = 1 - share;
  return [
    rest ** 3 / 6,
    2 / 3 - share * share * (1 - share / 2),
    2 / 3 - rest * rest * (1 - rest / 2),
    share ** 3 / 6,
  ];
}

function rowsOfMatrix({ shape, data }) {
  return Array.from({ length: shape[0] }, (_, k) => data.slice(k * shape[1], (k + 1) * shape[1]));
}

/** Products of templates with each other, and for each filler of shape its length as a template. */
function seenDirections(basis, shapes) {
  const count = basis.rows.length;
  const products = new Float64Array(count * count);
  for (let i = 0; i < count; i += 1) {
    for (let j = 0; j <= i; j += 1) {
      const product = basis.rows[i].reduce((sum, entry, k) => sum + entry * basis.rows[j][k], 0);
      products[i * count + j] = products[j * count + i] = product;
    }
  }
  const product = (one, other) => {
    let sum = 0;
    for (let i = 0; i < count; i += 1) {
      for (let j = 0; j < count; j += 1) sum += one[i] * other[j] * products[i * count + j];
    }
    return sum;
  };
  const known = shapes.map((shape) => [1, ...shape]);
  return {
    product,
    known,
    lengths: known.map((shape) => Math.sqrt(product(shape, shape))),
  };
}

function nearestIndex(distances) {
  return distances.reduce((best, distance, k) => (distance < distances[best] ? k : best), 0);
}

/** `PoseMemory.read`: the nearest codes: shape, scale, angle, place across and down, colour. @returns {number[]} */
function readCodes(object, { weights, basis, side, codes }) {
  const pose = poseOf(object, weights, side);
  const { product, known, lengths } = codes.seen;
  const filler = [1, ...fillerOf(object, 0).data];
  // the nearest of directions of equal length has the largest cosine
  const shape = nearestIndex(known.map((one, k) => -product(one, filler) / lengths[k]));
  const angle = Math.atan2(pose.direction[1], pose.direction[0]);
  const turns = Array.from(codes.angles.data, (code) => {
    const turn = remainderOf(angle - code, FULL_TURN);
    return code < UNUSED_CODE ? Math.min(turn, FULL_TURN - turn) : UNUSED_CODE;
  });
  const colour = coloursOf(object, weights);
  const far = (row, number) => nearestIndex(Array.from(row, (code) => Math.abs(number - code)));
  const [across, down] = rowsOfMatrix(codes.places);
  return [
    shape,
    far(rowsOfMatrix(codes.log_scales)[shape], pose.logScale + codes.units.data[shape]),
    nearestIndex(turns),
    far(across, pose.centre[0]),
    far(down, pose.centre[1]),
    nearestIndex(
      rowsOfMatrix(codes.colours).map((row) => row.reduce((sum, code, k) => sum + (code - colour[k]) ** 2, 0)),
    ),
  ];
}

/** The pose that codes stand for. @returns {Pose} */
export function poseOfCodes([shape, scale, angle, across, down], memory) {
  const turn = memory.angles.data[angle];
  const places = rowsOfMatrix(memory.places);
  return {
    centre: [places[0][across], places[1][down]],
    direction: [Math.cos(turn), Math.sin(turn)],
    logScale: memory.log_scales.data[shape * memory.log_scales.shape[1] + scale],
  };
}

/** `PoseMemory.draw`: the image of codes. */
function drawByCodes(numbers, memory, side) {
  const size = memory.templates.shape[1];
  const template = memory.templates.data.subarray(numbers[0] * size * size, (numbers[0] + 1) * size * size);
  const field = fieldInFrame(splineReader(template, size), poseOfCodes(numbers, memory), side, memory.reach.data[0]);
  return paintedField(field, rowsOfMatrix(memory.colours)[numbers[5]]);
}
