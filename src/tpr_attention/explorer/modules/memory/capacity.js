// How many objects a memory holds: the share of right answers against the number of objects.

import { softmax, tensor } from "../tensors.js";

const COUNTS = [1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64];
const TRIALS = 12;
const kept = new Map();

/** A generator of numbers in [0, 1) from a seed (mulberry32). */
export function seeded(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Random unit vectors `[count size]`, which share a part: the cosine of two is about `overlap`. */
export function unitVectors(count, size, overlap, random) {
  const shared = unit(normals(size, random));
  const rows = Array.from({ length: count }, () => {
    const own = unit(normals(size, random));
    return unit(own.map((value, k) => Math.sqrt(1 - overlap) * value + Math.sqrt(overlap) * shared[k]));
  });
  return tensor([count, size], rows.flat());
}

function normals(size, random) {
  return Array.from({ length: size }, () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()));
}

function unit(vector) {
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}

/** The keys `[n d]` and values `[n d]` of a memory that capacity is measured with. */
export function drawnPairs(count, size, overlap, random) {
  return [unitVectors(count, size, overlap, random), unitVectors(count, size, 0, random)];
}

/**
 * How many objects are recalled: each is asked for by its key, and what is read must be most like its own value.
 * @returns {{sum: number, softmax: number}} counts
 */
export function recalled(keys, values, temperature) {
  const [count, size] = keys.shape;
  const found = { sum: 0, softmax: 0 };
  for (let asked = 0; asked < count; asked++) {
    const score = tensor([count], products(keys, keys.data.subarray(asked * size, (asked + 1) * size)));
    const sharp = softmax(tensor([count], score.data.map((value) => value / temperature)));
    if (nearest(values, score.data) === asked) found.sum++;
    if (nearest(values, sharp.data) === asked) found.softmax++;
  }
  return found;
}

function products({ shape: [count, size], data }, vector) {
  const result = new Float64Array(count);
  for (let k = 0; k < count; k++) for (let axis = 0; axis < size; axis++) result[k] += data[k * size + axis] * vector[axis];
  return result;
}

/** The value most like the weighted sum of all. */
function nearest(values, weights) {
  const [count, size] = values.shape;
  const read = new Float64Array(size);
  for (let k = 0; k < count; k++) for (let axis = 0; axis < size; axis++) read[axis] += weights[k] * values.data[k * size + axis];
  const likeness = products(values, read);
  return likeness.indexOf(Math.max(...likeness));
}

/** The shares of right answers at each number of objects; computed once for the same settings. */
export function capacityCurve({ dimension, overlap, temperature, seed }) {
  const name = JSON.stringify([dimension, overlap, temperature, seed]);
  if (!kept.has(name)) {
    const random = seeded(seed);
    const points = COUNTS.map((count) => {
      const right = { sum: 0, softmax: 0 };
      for (let trial = 0; trial < TRIALS; trial++) {
        const found = recalled(...drawnPairs(count, dimension, overlap, random), temperature);
        right.sum += found.sum;
        right.softmax += found.softmax;
      }
      return { count, sum: right.sum / (count * TRIALS), softmax: right.softmax / (count * TRIALS) };
    });
    if (kept.size > 200) kept.clear();
    kept.set(name, points);
  }
  return kept.get(name);
}
