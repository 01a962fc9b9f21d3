// The models of the composition task: answers to a reference, a transform and an action, and the stages to them.

import { headsUpdate } from "./composition_heads.js";
import { lawsStages } from "./composition_laws.js";

/**
 * @typedef {{shape: number[], data: Float32Array|Float64Array}} Tensor
 * @typedef {{kind: string, weights: Object<string, Tensor>, normalised: string[], heads: number, carries: boolean,
 *   sharpness: number}} Model
 */

/**
 * A model's answer.
 *
 * @param {Model} model
 * @param {Tensor} reference [r f]
 * @param {Tensor} transform [r f]
 * @param {number} action
 * @returns {{output: Tensor, stages: Object[]}} the answer, and what each of its layers does, to be shown
 */
export function answerOf(model, reference, transform, action) {
  const stages = [];
  let output = reference;
  for (const prefix of layerPrefixes(model.weights)) {
    const found = MODEL_KINDS[model.kind](model, prefix, output, transform, action);
    output = plus(output, found.update);
    stages.push(...found.stages);
  }
  return { output, stages };
}

/** The prefixes of layers that follow each other: those of `layers.0.`, `layers.1.`, ..., or one empty prefix. */
function layerPrefixes(weights) {
  const numbers = Object.keys(weights).map((name) => /^layers\.(\d+)\./.exec(name)?.[1]);
  const count = 1 + Math.max(-1, ...numbers.filter((number) => number !== undefined).map(Number));
  return count === 0 ? [""] : Array.from({ length: count }, (_, k) => `layers.${k}.`);
}

const MODEL_KINDS = {
  heads: headBlocks,
  laws: substitutionAndLaws,
  attention: attentionOverObjects,
  "role-attention": attentionOverRoles,
  "feed-forward": feedForward,
  linear: (model, prefix, ...inputs) => plainUpdate(inputs, dense(model.weights, `${prefix}output`, joinedInputs(model, ...inputs))),
  gates: interpolation,
  "linear-by-action": linearByAction,
};

/** Blocks of heads, each of which reads what the blocks before have left. */
function headBlocks(model, prefix, reference, transform, action) {
  const stages = [];
  let state = reference;
  for (const [number, layers] of blocksOf(model.weights, prefix).entries()) {
    const objects = [state, transform];
    for (const name of layers) {
      const isNormalised = model.normalised.includes(name);
      const found = headsUpdate(model.weights, `${name}.`, objects, action, isNormalised);
      stages.push({ type: "heads", name, block: number, isNormalised, ...found });
      state = plus(state, found.update);
    }
  }
  return { update: minus(state, reference), stages };
}

/** The names of the layers of heads, by block. */
function blocksOf(weights, prefix) {
  const names = Object.keys(weights)
    .filter((name) => name.startsWith(prefix) && name.endsWith(".query_map"))
    .map((name) => name.slice(0, -".query_map".length))
    .sort();
  const blocks = new Map();
  for (const name of names) {
    const block = /\bblocks\.(\d+)\./.exec(name)?.[1] ?? "0";
    blocks.set(block, [...(blocks.get(block) ?? []), name]);
  }
  return [...blocks.keys()].sort((a, b) => a - b).map((block) => blocks.get(block));
}

function substitutionAndLaws(model, prefix, reference, transform, action) {
  const heads = headsUpdate(model.weights, `${prefix}substitute.`, [reference, transform], action);
  const state = plus(reference, heads.update);
  const laws = lawsStages(model, prefix, state, [reference, transform], action);
  return {
    update: minus(laws.output, reference),
    stages: [{ type: "heads", name: `${prefix}substitute`, block: 0, isNormalised: false, ...heads }, { type: "laws", ...laws }],
  };
}

/** Softmax attention over two tokens, the objects. */
function attentionOverObjects(model, prefix, reference, transform, action) {
  const asking = [[...oneHotOf(action, actionsOf(model, prefix, reference.data.length)), ...reference.data]];
  const tokens = [reference, transform].map((object, t) => [...object.data, ...oneHotOf(t, 2)]);
  const { answers, heads } = softmaxAttention(model, `${prefix}attention.`, asking, tokens);
  const update = shaped(reference.shape, answers[0]);
  return { update, stages: [{ type: "attention", name: `${prefix}attention`, tokens: "objects", heads, update }] };
}

/** Softmax attention whose tokens are the role-filler bindings of both objects. */
function attentionOverRoles(model, prefix, reference, transform, action) {
  const [roles, width] = reference.shape;
  const rows = (object) => Array.from({ length: roles }, (_, r) => [...object.data.slice(r * width, (r + 1) * width)]);
  const actions = actionsOf(model, prefix, width + roles);
  const asking = rows(reference).map((row, r) => [...oneHotOf(action, actions), ...row, ...oneHotOf(r, roles)]);
  const tokens = [...rows(reference), ...rows(transform)].map((row, t) => [...row, ...oneHotOf(t, 2 * roles)]);
  const { answers, heads } = softmaxAttention(model, `${prefix}attention.`, asking, tokens);
  const update = shaped(reference.shape, answers.flat());
  return { update, stages: [{ type: "attention", name: `${prefix}attention`, tokens: "roles", heads, update }] };
}

/** How many actions there are: what is left of the width of a query's input. */
function actionsOf(model, prefix, others) {
  return model.weights[`${prefix}attention.query.weight`].shape[1] - others;
}

/**
 * Each asking vector reads all tokens.
 *
 * @returns {{answers: number[][], heads: {weights: number[][], update: number[]}[]}} the answer to each, and of each
 *   head its match weights, [asking][token], and what it adds to the answers, without the bias
 */
function softmaxAttention(model, prefix, asking, tokens) {
  const { weights, heads: count } = model;
  const project = (name, rows) => rows.map((row) => dense(weights, prefix + name, row));
  const [queries, keys, values] = [project("query", asking), project("key", tokens), project("value", tokens)];
  const size = keys[0].length / count;
  const part = (row, h) => row.slice(h * size, (h + 1) * size);
  const matches = Array.from({ length: count }, (_, h) =>
    queries.map((query) => softmaxOf(keys.map((key) => inner(part(query, h), part(key, h)) / Math.sqrt(size)))),
  );
  const read = matches.map((rows, h) =>
    rows.map((row) => part(values[0], h).map((_, d) => row.reduce((sum, match, t) => sum + match * values[t][h * size + d], 0))),
  );
  const answers = asking.map((_, q) => dense(weights, `${prefix}output`, read.flatMap((rows) => rows[q])));
  const heads = matches.map((rows, h) => ({ weights: rows, update: read[h].flatMap((row) => writtenBy(weights, prefix, row, h)) }));
  return { answers, heads };
}

/** What the output map makes of the part of one head. */
function writtenBy(weights, prefix, row, h) {
  const { shape, data } = weights[`${prefix}output.weight`];
  return Array.from({ length: shape[0] }, (_, y) =>
    row.reduce((sum, value, d) => sum + value * data[y * shape[1] + h * row.length + d], 0),
  );
}

/** One hidden layer on all that is given. */
function feedForward(model, prefix, reference, transform, action) {
  const inputs = joinedInputs(model, reference, transform, action, `${prefix}hidden`);
  const hidden = dense(model.weights, `${prefix}hidden`, inputs).map((value) => Math.max(0, value));
  const update = shaped(reference.shape, dense(model.weights, `${prefix}output`, hidden));
  return { update, stages: [{ type: "hidden", name: `${prefix}hidden`, hidden, update }] };
}

/** Each entry between those of the reference and the transform. */
function interpolation(model, prefix, reference, transform, action) {
  const gates = dense(model.weights, `${prefix}gate`, joinedInputs(model, reference, transform, action, `${prefix}gate`));
  const change = minus(transform, reference);
  return { update: shaped(reference.shape, gates.map((gate, k) => change.data[k] / (1 + Math.exp(-gate)))), stages: [] };
}

/** One linear map of the objects and 1 for each action. */
function linearByAction(model, prefix, reference, transform, action) {
  const { shape, data } = model.weights[`${prefix}weight`];
  const inputs = [...reference.data, ...transform.data, 1];
  const [, rows, columns] = shape;
  const update = Array.from({ length: columns }, (_, y) =>
    inputs.reduce((sum, value, x) => sum + value * data[(action * rows + x) * columns + y], 0),
  );
  return { update: shaped(reference.shape, update), stages: [] };
}

function plainUpdate([reference], update) {
  return { update: shaped(reference.shape, update), stages: [] };
}

/** Reference, transform and action side by side, as wide as a layer of this name takes them. */
function joinedInputs(model, reference, transform, action, name = "output") {
  const actions = model.weights[`${name}.weight`].shape[1] - 2 * reference.data.length;
  return [...reference.data, ...transform.data, ...oneHotOf(action, actions)];
}
