// Memories of pairs of keys and values: TPR-Attention, softmax attention, linear attention, the delta rule.
//
// What every memory reads at a query is a sum of the values of all pairs. So each is computed as weights of the pairs:
// `match` is how well a pair answers the query, `share` how much of its value is in what is read. They differ where
// later pairs correct or replace earlier ones.

import { directions, pairColumns, pairEncoder, roleObjects, scaledVectors } from "./encoders.js";
import { add, at, einsum, linear, mapped, matmul, multiply, permute, reshape, scaled, sigmoid, softmax, tensor, zeros } from "../tensors.js";

const SUM_EPSILON = 1e-6; // of linear attention's normaliser
const SHORT_KEY_FILLER = 1e-3; // of to_unit_length
const TINY_SQUARE = 1e-12; // of to_unit_rms

/**
 * A trained memory: its name, the options of its constructor and its weights by name.
 * @typedef {{name: string, options: Object, weights: Object<string, Tensor>}} PairModel
 * What it makes of a query: for each head a number for each pair, and an entry for each value.
 * @typedef {{match: number[][], share: number[][], output: number[]}} PairAnswer
 */

/**
 * Store pairs, and return a function from the key of a query to a `PairAnswer`.
 * @param {PairModel} model
 * @param {{values: number, fields: number}} task how many values there are, and parts of a key
 * @param {number[][]} pairs the parts of the key, then the value
 * @returns {function(number[]): PairAnswer}
 */
export function storedPairs(model, task, pairs) {
  return model.name === "recall-tpr" ? tprMemory(model, task, pairs) : headMemory(model, task, pairs);
}

/** TPR-Attention: an object matches by the fillers of its key, and its value is read. */
function tprMemory({ options, weights }, task, pairs) {
  const w = (name) => weights[`layer.${name}`];
  const { filler_dim: size, num_matches: matches } = options;
  const make = roleObjects(weights, "objects.", task, size, matches, options.values);
  const columns = pairColumns(pairs, task);
  const objects = make.objects(columns.keys, columns.values);
  const isUnit = options.write !== "replace";
  const stored = isUnit ? unitFillers(objects) : objects;
  const [numHeads] = w("filler_map").shape;
  const heads = Array.from({ length: numHeads }, (_, h) => ({
    keys: Array.from({ length: matches }, (_, m) =>
      einsum("r, t r f -> t f", at(at(w("queries.match_role"), h), m), stored),
    ),
    values: einsum("r, t r f -> t f", at(w("queries.target_role"), h), objects),
  }));
  const shares = heads.map(({ keys }) => sharesOf(options, keys, objects));
  return (query) => {
    const asking = reshape(make.objects(query.map((part) => [part])), 1, -1);
    const asked = linear(asking, w("queries.match_filler.weight"), w("queries.match_filler.bias"));
    const fillers = reshape(asked, numHeads, matches, 1, size);
    let written = zeros(make.numRoles, size);
    const match = [];
    const share = [];
    heads.forEach(({ keys, values }, h) => {
      const scores = keys.map((key, m) => {
        const filler = at(at(fillers, h), m);
        return linear(isUnit ? unitFillers(filler) : filler, key);
      });
      const found = options.match === "softmax" ? softmax(scaled(scores.reduce(add), Math.sqrt(size))) : scores.reduce(multiply);
      match.push([...found.data]);
      share.push(shares[h](match[h]));
      const read = readout(matmul(tensor([1, pairs.length], share[h]), values), options.normalise, pairs.length);
      const filler = matmul(read, at(w("filler_map"), h));
      written = add(written, matmul(reshape(at(w("new_role"), h), -1, 1), filler));
    });
    const read = tensor([make.numRoles - matches, size], written.data.slice(matches * size));
    return { match, share, output: [...make.answer(read).data] };
  };
}

/** How a head's memory turns match weights into shares. */
function sharesOf(options, keys, objects) {
  if (options.write === "delta") {
    const products = keys.map((key) => linear(key, key)).reduce(multiply);
    return (match) => correctedShares(match, products, null);
  }
  if (options.write === "replace") {
    const ids = at(permute(objects, 1, 0, 2), 0); // the first role says which object it is
    const kept = replacements(linear(ids, ids));
    return (match) => [...matmul(tensor([1, match.length], match), kept).data];
  }
  return (match) => match;
}

function unitFillers(fillers) {
  return scaledVectors(fillers, (square) => 1 / Math.sqrt(square + SHORT_KEY_FILLER ** 2));
}

/** What is read, normalised; see tpr_attention.functional.readout. */
function readout(filler, normalise, count) {
  if (normalise === "unit") return unitFillers(filler);
  if (normalise === "count") return scaled(filler, 1 / count);
  if (normalise !== "rms") return filler;
  const largest = filler.data.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1;
  const size = filler.data.length;
  return scaledVectors(scaled(filler, 1 / largest), (square) => 1 / Math.sqrt(square / size + TINY_SQUARE));
}

/** All others: an encoder, and a memory between keys and queries for each head. */
function headMemory(model, task, pairs) {
  const encoder = pairEncoder(model, task);
  const { keys, values, written } = encoder.stored(pairs);
  const heads = keys.map((key, head) => PAIR_MEMORIES[model.name](model, key, written, head));
  return (query) => {
    const { queries, asked } = encoder.asked(query);
    const found = heads.map((head, place) => head(queries[place]));
    const read = found.map(({ share }, head) => matmul(tensor([1, pairs.length], share), values[head]));
    return {
      match: found.map((head) => head.match),
      share: found.map((head) => head.share),
      output: [...encoder.answer(read, asked).data],
    };
  };
}

const PAIR_MEMORIES = {
  "recall-softmax": (model, keys) => (query) => {
    const match = [...softmax(scaled(linear(query, keys), 1 / Math.sqrt(keys.shape[1]))).data];
    return { match, share: match };
  },
  "recall-linear": (model, keys) => normalisedSum(keys, positiveFeatures),
  "recall-dpfp": (model, keys) => normalisedSum(keys, (x) => deterministicFeatures(x, model.options.nu)),
  "recall-delta": ({ options, weights }, keys, written, head) => {
    const features = options.features === "dpfp" ? (x) => deterministicFeatures(x, 1) : (x) => multiply(x, sigmoid(x));
    const stored = directions(features(keys));
    const gates = sigmoid(linear(written, weights["gate.weight"], weights["gate.bias"]));
    const ofHead = [...at(permute(gates, 1, 0), head).data];
    const products = linear(stored, stored);
    return (query) => {
      const match = [...linear(directions(features(query)), stored).data];
      return { match, share: correctedShares(match, products, ofHead) };
    };
  },
};

function normalisedSum(keys, features) {
  const stored = features(keys);
  return (query) => {
    const scores = linear(features(query), stored);
    const total = scores.data.reduce((a, b) => a + b, SUM_EPSILON);
    const match = [...scaled(scores, 1 / total).data];
    return { match, share: match };
  };
}

function positiveFeatures(x) {
  return mapped(x, (value) => (value > 0 ? value + 1 : Math.exp(value)));
}

/** DPFP-nu: products of neighbouring rectified entries. */
function deterministicFeatures({ shape: [count, size], data }, nu) {
  const double = 2 * size;
  const result = zeros(count, nu * double);
  for (let row = 0; row < count; row++) {
    const entry = (k) => Math.max(k < size ? data[row * size + k] : -data[row * size + k - size], 0);
    for (let shift = 1; shift <= nu; shift++) {
      for (let k = 0; k < double; k++) {
        const to = row * nu * double + (shift - 1) * double + k;
        result.data[to] = entry(k) * entry((k - shift + double) % double);
      }
    }
  }
  return result;
}

/**
 * Shares after the delta rule, the last pair first: each correction takes away what it finds of earlier pairs.
 * @param {Tensor} products of all pairs of keys, `[t t]`
 */
function correctedShares(match, products, gates) {
  const shares = [...match];
  const count = shares.length;
  for (let t = count - 1; t >= 0; t--) {
    if (gates) shares[t] *= gates[t];
    for (let s = 0; s < t; s++) shares[s] -= shares[t] * products.data[t * count + s];
  }
  return shares;
}

/**
 * The memory as numbers between objects, after each replaced the one with its id: C += e_t e_t^T - p p^T, p = C s_t.
 * @param {Tensor} scores of the ids of all objects, `[t t]`
 * @returns {Tensor} `[t t]`
 */
function replacements(scores) {
  const count = scores.shape[0];
  const kept = zeros(count, count);
  for (let t = 0; t < count; t++) {
    const old = new Float64Array(t);
    for (let a = 0; a < t; a++) for (let b = 0; b < t; b++) old[b] += scores.data[t * count + a] * kept.data[a * count + b];
    for (let a = 0; a < t; a++) for (let b = 0; b < t; b++) kept.data[a * count + b] -= old[a] * old[b];
    kept.data[t * count + t] = 1;
  }
  return kept;
}
