// How pairs become keys and values, and what is read becomes an answer: the encoders of tpr_attention.models.recall.

import { add, at, layerNorm, linear, permute, reshape, scaled, tensor, zeros } from "../tensors.js";

const LENGTH_EPSILON = 1e-12; // of torch's normalize
const ROLE_MATCHES = 2; // roles of a key in the encoders "roles" and "fixed-roles"

/**
 * An encoder, by the name that the option `encoder` has. Keys, values and queries are lists with a tensor a head.
 * @typedef {{stored: function(number[][]): {keys: Tensor[], values: Tensor[], written: Tensor},
 *   asked: function(number[]): {queries: Tensor[], asked: Tensor|null},
 *   answer: function(Tensor[], Tensor|null): Tensor}} Encoder
 * @returns {Encoder}
 */
export function pairEncoder({ weights, options }, task) {
  if (options.encoder === "published") return tableEncoder(weights, task);
  if (options.encoder === "block") return blockEncoder(weights, options, task);
  return roleEncoder(weights, options, task);
}

/** Rows of a table for keys and of another for queries; values are one-hot. */
function tableEncoder(weights, task) {
  const encoded = (table, keys) => keys.map((part, field) => tableRows(at(table, field), part)).reduce(add);
  return {
    stored(pairs) {
      const { keys, values } = pairColumns(pairs, task);
      const written = encoded(weights["encoder.key"], keys);
      return { keys: [written], values: [oneHotRows(values, task.values)], written };
    },
    asked: (query) => ({ queries: [encoded(weights["encoder.query"], query.map((part) => [part]))], asked: null }),
    answer: ([read]) => read,
  };
}

/** A usual attention block: embeddings, a linear map, norms, keys, queries and values, a residual, a linear head. */
function blockEncoder(weights, options, task) {
  const w = (name) => weights[`encoder.${name}`];
  const valueTable = w("value_table.weight");
  const input = (keys, values) => {
    const tables = keys.map((part, field) => tableRows(w(`key_tables.${field}.weight`), part));
    return linear(joinedColumns([...tables, values]), w("input.weight"), w("input.bias"));
  };
  const heads = (x) => {
    const [length, width] = x.shape;
    const split = permute(reshape(x, length, options.num_heads, width / options.num_heads), 1, 0, 2);
    return Array.from({ length: options.num_heads }, (_, head) => at(split, head));
  };
  return {
    stored(pairs) {
      const { keys, values } = pairColumns(pairs, task);
      const written = layerNorm(input(keys, tableRows(valueTable, values)), w("norm.weight"), w("norm.bias"));
      return { keys: heads(linear(written, w("key.weight"))), values: heads(linear(written, w("value.weight"))), written };
    },
    asked(query) {
      const asked = input(query.map((part) => [part]), zeros(1, valueTable.shape[1]));
      const asking = layerNorm(asked, w("norm.weight"), w("norm.bias"));
      return { queries: heads(linear(asking, w("query.weight"))), asked };
    },
    answer(read, asked) {
      const stream = add(asked, linear(joinedColumns(read), w("output.weight")));
      return linear(layerNorm(stream, w("last_norm.weight"), w("last_norm.bias")), w("head.weight"), w("head.bias"));
    },
  };
}

/** The objects of TPR-Attention for any memory: unit-length fillers of all key roles together are one key. */
function roleEncoder(weights, options, task) {
  const size = options.width / ROLE_MATCHES;
  const values = options.encoder === "fixed-roles" ? "one-hot" : "learned";
  const objects = roleObjects(weights, "encoder.objects.", task, size, ROLE_MATCHES, values);
  const unit = (keys) => {
    const fillers = scaled(directions(objects.keys(keys)), Math.sqrt(size));
    return reshape(fillers, -1, options.width);
  };
  const queryMap = permute(weights["encoder.query"], 1, 0);
  return {
    stored(pairs) {
      const columns = pairColumns(pairs, task);
      const written = unit(columns.keys);
      const held = objects.values(columns.values);
      return { keys: [written], values: [reshape(held, held.shape[0], -1)], written };
    },
    asked: (query) => ({ queries: [linear(unit(query.map((part) => [part])), queryMap)], asked: null }),
    answer: ([read]) => objects.answer(reshape(read, -1, size)),
  };
}

/**
 * Objects of pairs: the parts of a key in their roles, the value in others.
 * @param {string} values "one-hot" or "learned"
 */
export function roleObjects(weights, prefix, task, size, matches, values) {
  const isOneHot = values === "one-hot";
  const valueRoles = isOneHot ? Math.ceil(task.values / size) : 1;
  return {
    numRoles: matches + valueRoles,
    /** @returns {Tensor} fillers `[t m f]` of keys, given as a list of numbers for each part */
    keys(keys) {
      const parts = keys.map((part, field) => tableRows(at(weights[`${prefix}key_fillers`], field), part));
      return reshape(joinedColumns(parts), keys[0].length, matches, size);
    },
    /** @returns {Tensor} fillers `[t v f]` of values */
    values(numbers) {
      const rows = isOneHot ? oneHotRows(numbers, valueRoles * size) : tableRows(weights[`${prefix}value_fillers`], numbers);
      return reshape(rows, numbers.length, valueRoles, size);
    },
    /** @returns {Tensor} objects `[t r f]` of keys with these values, or with nothing in their place */
    objects(keys, numbers = null) {
      const count = keys[0].length;
      const held = numbers === null ? zeros(count, valueRoles, size) : this.values(numbers);
      const joined = joinedColumns([reshape(this.keys(keys), count, -1), reshape(held, count, -1)]);
      return reshape(joined, count, this.numRoles, size);
    },
    /** @returns {Tensor} an entry for each value, of what is read `[v f]` in their roles */
    answer(fillers) {
      if (isOneHot) return tensor([1, task.values], fillers.data.slice(0, task.values));
      return linear(fillers, weights[`${prefix}values_of.weight`], weights[`${prefix}values_of.bias`]);
    },
  };
}

/** The parts of the keys and the values of pairs, as columns. */
export function pairColumns(pairs, task) {
  const column = (place) => pairs.map((pair) => pair[place]);
  return { keys: Array.from({ length: task.fields }, (_, field) => column(field)), values: column(task.fields) };
}

function tableRows(table, numbers) {
  const size = table.shape[1];
  const rows = new Float64Array(numbers.length * size);
  numbers.forEach((number, place) => rows.set(table.data.subarray(number * size, (number + 1) * size), place * size));
  return tensor([numbers.length, size], rows);
}

function oneHotRows(numbers, size) {
  const rows = zeros(numbers.length, size);
  numbers.forEach((number, place) => (rows.data[place * size + number] = 1));
  return rows;
}

function joinedColumns(parts) {
  const count = parts[0].shape[0];
  const width = parts.reduce((total, part) => total + part.shape[1], 0);
  const joined = zeros(count, width);
  let start = 0;
  for (const { shape: [, size], data } of parts) {
    for (let row = 0; row < count; row++) joined.data.set(data.subarray(row * size, (row + 1) * size), row * width + start);
    start += size;
  }
  return joined;
}

/** Vectors along the last axis, with length one. @returns {Tensor} */
export function directions(x) {
  return scaledVectors(x, (square) => 1 / Math.max(Math.sqrt(square), LENGTH_EPSILON));
}

/** Vectors along the last axis, each times a number that depends on its squared length. @returns {Tensor} */
export function scaledVectors({ shape, data }, factor) {
  const size = shape[shape.length - 1];
  const result = new Float64Array(data.length);
  for (let start = 0; start < data.length; start += size) {
    let square = 0;
    for (let k = start; k < start + size; k++) square += data[k] * data[k];
    const by = factor(square);
    for (let k = start; k < start + size; k++) result[k] = data[k] * by;
  }
  return tensor(shape, result);
}
