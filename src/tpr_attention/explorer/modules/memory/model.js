// The room "Memory and attention" without its view: states, and every stage of an answer.

import { einsum, scaled, softmax, tensor, zeros } from "../tensors.js";
import { bind, extract, match, memorise, rebind, scores, superpose, weighted } from "../algebra.js";

export const MOST_OBJECTS = 24;
const SMALLEST = 1e-9;
const MOST_TRIES = 1000; // all fillers of a role may be answers

/**
 * Where the room starts: the question of figure 1. Roles and fillers are numbers.
 * `objects` has the filler of each role of each object; `matches` has one or two pairs of role and filler.
 */
export function memoryDefaults(data) {
  return {
    objects: data.objects,
    selected: 1,
    matches: [[1, 1]],
    target: 0,
    map: "identity",
    bound: 0,
    overlap: 0,
    temperature: 0.1,
    dimension: 16,
    seed: 1,
  };
}

/** A state that can be shown: what does not fit the vocabulary is replaced by the default. */
export function memoryChecked(state, data) {
  const usual = memoryDefaults(data);
  const roles = data.roles.length;
  const isRole = (value) => Number.isInteger(value) && value >= 0 && value < roles;
  const isFiller = (role, value) => Number.isInteger(value) && value >= 0 && value < data.fillers[role].length;
  const isObject = (one) => Array.isArray(one) && one.length === roles && one.every((value, role) => isFiller(role, value));
  const isPair = (one) => Array.isArray(one) && one.length === 2 && isRole(one[0]) && isFiller(...one);
  const objects = state.objects.every(isObject) ? state.objects.slice(0, MOST_OBJECTS) : usual.objects;
  const isQuestion = state.matches.length >= 1 && state.matches.length <= 2 && state.matches.every(isPair);
  const within = (name, low, high) => (state[name] >= low && state[name] <= high ? state[name] : usual[name]);
  return {
    objects,
    selected: Math.max(0, Math.min(objects.length - 1, Math.round(state.selected))),
    matches: isQuestion ? state.matches : usual.matches,
    target: isRole(state.target) ? state.target : usual.target,
    map: data.maps.some(({ name }) => name === state.map) ? state.map : usual.map,
    bound: isRole(state.bound) ? state.bound : usual.bound,
    overlap: within("overlap", 0, 0.9),
    temperature: within("temperature", 0.02, 1),
    dimension: Math.round(within("dimension", 2, 64)),
    seed: Math.round(within("seed", 0, 2 ** 31)),
  };
}

/** Unit vectors `[k k]`, one a row, any two of which have the inner product `overlap`. */
export function fillerVectors(count, overlap) {
  const own = Math.sqrt(1 - overlap);
  const shared = (Math.sqrt(own * own + count * overlap) - own) / count;
  const vectors = zeros(count, count);
  for (let k = 0; k < count; k++) for (let axis = 0; axis < count; axis++) vectors.data[k * count + axis] = shared + (k === axis ? own : 0);
  return vectors;
}

/** The matrix `[r f]` of an object that is given by its filler of each role. */
export function objectMatrix(fillers, roles, vectors) {
  const size = vectors.shape[1];
  const bindings = fillers.map((filler, role) => bind(row(roles, role), row(vectors, filler)).data);
  return superpose(tensor([fillers.length, roles.shape[1], size], bindings.flatMap((one) => [...one])));
}

/**
 * Every stage of an answer, by sum (the paper's) and by softmax.
 * @returns {{vectors, objects, memory, scores, fillerMap, queries, sum, softmax, truth}} `sum` and `softmax` have
 *   `weights [t]`, `matched [r f]`, `extracted [f]`, `mapped [f]`, `bound [r f]`, `likeness` (of `mapped` to each
 *   filler of the new role) and `answer`, the most alike filler or null if there is none
 */
export function memoryStages(state, data) {
  const count = data.roles.length;
  const roles = identity(count);
  const vectors = fillerVectors(data.fillers[0].length, state.overlap);
  const size = vectors.shape[1];
  const matrices = state.objects.map((one) => objectMatrix(one, roles, vectors));
  const objects = tensor([matrices.length, count, size], matrices.flatMap(({ data: numbers }) => [...numbers]));
  const queries = state.matches.map(([role, filler]) => [row(roles, role), row(vectors, filler)]);
  const each = queries.map(([role, filler]) => scores(objects, role, filler));
  const fillerMap = data.maps.find(({ name }) => name === state.map).map;
  const memory = memorise(objects);
  const product = combined(each, (a, b) => a * b);
  const total = combined(each, (a, b) => a + b);
  const sharp = matrices.length ? softmax(scaled(total, 1 / state.temperature)) : total;
  // One pair of role and filler is read from the memory itself; two need a memory of three copies (App. C).
  const superposed = queries.length === 1 ? match(memory, ...queries[0]) : weighted(objects, product);
  const rest = (weights, matched) => {
    const extracted = extract(matched, row(roles, state.target));
    const mapped = einsum("f, f f_out -> f_out", extracted, fillerMap);
    const bound = rebind(extracted, fillerMap, row(roles, state.bound));
    const likeness = [...einsum("k f, f -> k", vectors, mapped).data];
    return { weights: [...weights.data], matched, extracted, mapped, bound, likeness, answer: mostAlike(likeness) };
  };
  return {
    vectors, objects, memory, queries, fillerMap,
    scores: each.map(({ data: numbers }) => [...numbers]),
    sum: rest(product, superposed),
    softmax: rest(sharp, weighted(objects, sharp)),
    truth: memoryTruth(state, fillerMap),
  };
}

/** The objects that answer the question word by word, and the fillers that a right answer may name. */
export function memoryTruth({ objects, matches, target }, fillerMap) {
  const matching = objects.flatMap((one, s) => (matches.every(([role, filler]) => one[role] === filler) ? [s] : []));
  const size = fillerMap.shape[1];
  const answers = matching.flatMap((s) => {
    const image = [...fillerMap.data.subarray(objects[s][target] * size, (objects[s][target] + 1) * size)];
    const best = mostAlike(image);
    return best === null ? [] : [best];
  });
  return { matching, answers: [...new Set(answers)] };
}

/** The index of the largest number; null if it is not above zero, or not above all others. */
export function mostAlike(likeness) {
  const best = likeness.indexOf(Math.max(...likeness));
  const ties = likeness.filter((value) => value > likeness[best] - SMALLEST).length;
  return likeness[best] > SMALLEST && ties === 1 ? best : null;
}

/** Whether an answer names what a matching object has. */
export function isRight(part, truth) {
  return part.answer !== null && truth.answers.includes(part.answer);
}

/** A random object that has neither what is asked for nor what is answered; `random` gives numbers in [0, 1). */
export function otherObject({ objects, matches, target }, data, random) {
  const isMatch = (one) => matches.every(([role, filler]) => one[role] === filler);
  const answered = objects.filter(isMatch).map((one) => one[target]);
  for (let tries = 0; ; tries++) {
    const one = data.fillers.map((names) => Math.floor(random() * names.length));
    if (!isMatch(one) && (tries > MOST_TRIES || !answered.includes(one[target]))) return one;
  }
}

/** Add other objects until the sum names a wrong filler, or the memory is full. */
export function crowded(state, data, random) {
  let now = state;
  while (now.objects.length < MOST_OBJECTS) {
    now = { ...now, objects: [...now.objects, otherObject(now, data, random)] };
    const { sum, truth } = memoryStages(now, data);
    if (truth.answers.length && !isRight(sum, truth)) break;
  }
  return now.objects;
}

function combined(each, combine) {
  return tensor(each[0].shape, each[0].data.map((value, k) => (each.length === 1 ? value : combine(value, each[1].data[k]))));
}

function row({ shape, data }, index) {
  return tensor([shape[1]], data.slice(index * shape[1], (index + 1) * shape[1]));
}

function identity(size) {
  return tensor([size, size], Array.from({ length: size * size }, (_, k) => (k % (size + 1) === 0 ? 1 : 0)));
}
