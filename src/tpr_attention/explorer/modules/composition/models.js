// The models of the composition task: answers to a reference, a transform and an action, and the stages to them.

import { headsUpdate, oneHot } from "./heads.js";
import { recompute } from "./laws.js";
import { add, at, einsum, linear, multiply, relu, reshape, sigmoid, softmax, subtract, tensor } from "../tensors.js";

/**
 * @typedef {{shape: number[], data: Float32Array|Float64Array}} Tensor
 * @typedef {{kind: string, weights: Object<string, Tensor>, normalised: string[], heads: number, carries: boolean,
 *   sharpness: number}} Model
 * @typedef {{update: Tensor, stages: Object[]}} Layer what a layer adds, and what it does, to be shown
 */

/**
 * A model's answer: the reference, to which every layer adds its update.
 *
 * @param {Model} model
 * @param {Tensor} reference [r f]
 * @param {Tensor} transform [r f]
 * @param {number} action
 * @returns {{output: Tensor, stages: Object[]}}
 */
export function answerOf(model, reference, transform, action) {
  const stages = [];
  let output = reference;
  for (const prefix of layerPrefixes(model.weights)) {
    const found = MODEL_KINDS[model.kind](model, prefix, output, transform, action);
    output = add(output, found.update);
    stages.push(...found.stages);
  }
  return { output, stages };
}

/** The prefixes of layers that follow each other, `layers.0.`, `layers.1.`, ..., or one empty prefix. */
function layerPrefixes(weights) {
  const numbers = Object.keys(weights).map((name) => Number(/^layers\.(\d+)\./.exec(name)?.[1] ?? -1));
  const count = 1 + Math.max(...numbers);
  return count === 0 ? [""] : Array.from({ length: count }, (_, k) => `layers.${k}.`);
}

const MODEL_KINDS = {
  heads: headBlocks,
  laws: substituteAndRecompute,
  attention: attentionOverObjects,
  "role-attention": attentionOverRoles,
  "feed-forward": hiddenLayer,
  linear: oneLinearMap,
  gates: interpolation,
  "linear-by-action": linearByAction,
};

/** Blocks of heads; the layers of a block read the same objects, each block what the blocks before have left. */
function headBlocks(model, prefix, reference, transform, action) {
  const stages = [];
  let state = reference;
  for (const layers of blocksOf(model.weights, prefix)) {
    const objects = [state, transform];
    for (const name of layers) {
      const isNormalised = model.normalised.includes(name);
      const found = headsUpdate(model.weights, `${name}.`, objects, action, isNormalised);
      stages.push({ type: "heads", name, isNormalised, ...found });
      state = add(state, found.update);
    }
  }
  return { update: subtract(state, reference), stages };
}

/** The names of the layers of heads, block by block. @returns {string[][]} */
function blocksOf(weights, prefix) {
  const names = Object.keys(weights).filter((name) => name.startsWith(prefix) && name.endsWith(".query_map"));
  const blocks = new Map();
  for (const name of names.map((one) => one.slice(0, -".query_map".length)).sort()) {
    const number = Number(/\bblocks\.(\d+)\./.exec(name)?.[1] ?? 0);
    blocks.set(number, [...(blocks.get(number) ?? []), name]);
  }
  return [...blocks.keys()].sort((a, b) => a - b).map((number) => blocks.get(number));
}

/** Heads substitute; then roles are recomputed by laws, and cleaned. */
function substituteAndRecompute(model, prefix, reference, transform, action) {
  const name = `${prefix}substitute`;
  const heads = headsUpdate(model.weights, `${name}.`, [reference, transform], action);
  const laws = recompute(model, prefix, add(reference, heads.update), [reference, transform], action);
  const stages = [{ type: "heads", name, isNormalised: false, ...heads }, { type: "laws", ...laws }];
  return { update: subtract(laws.output, reference), stages };
}

/** Softmax attention over two tokens, the objects. */
function attentionOverObjects(model, prefix, reference, transform, action) {
  const size = reference.data.length;
  const actions = actionsAsked(model.weights[`${prefix}attention.query.weight`], size);
  const asking = rowsBeside([oneHot(action, actions)], [reference]);
  const tokens = rowsBeside([reference, transform], [oneHot(0, 2), oneHot(1, 2)]);
  const { answers, heads } = attentionOfHeads(model, `${prefix}attention.`, asking, tokens);
  const update = reshape(answers, ...reference.shape);
  return { update, stages: [{ type: "attention", tokens: "objects", heads }] };
}

/** Softmax attention whose tokens are the role-filler bindings of both objects. */
function attentionOverRoles(model, prefix, reference, transform, action) {
  const [roles, width] = reference.shape;
  const actions = actionsAsked(model.weights[`${prefix}attention.query.weight`], width + roles);
  const rows = (obj) => Array.from({ length: roles }, (_, r) => at(obj, r));
  const names = (count) => Array.from({ length: count }, (_, k) => oneHot(k, count));
  const asking = rowsBeside(Array.from({ length: roles }, () => oneHot(action, actions)), rows(reference), names(roles));
  const tokens = rowsBeside([...rows(reference), ...rows(transform)], names(2 * roles));
  const { answers, heads } = attentionOfHeads(model, `${prefix}attention.`, asking, tokens);
  return { update: answers, stages: [{ type: "attention", tokens: "roles", heads }] };
}

/** How many actions there are: what other inputs leave of the width of a map. */
function actionsAsked(weight, others) {
  return weight.shape[1] - others;
}

/** Rows of numbers, each of which is a row of every list, side by side. @returns {Tensor} */
function rowsBeside(...lists) {
  const rows = lists[0].map((_, k) => lists.flatMap((list) => [...list[k].data]));
  return tensor([rows.length, rows[0].length], rows.flat());
}

/**
 * Each asking vector reads all tokens.
 *
 * @returns {{answers: Tensor, heads: {weights: Tensor, update: Tensor}[]}} the answers, [q z], and of each head its
 *   match weights, [q t], and what it adds to the answers, [q z], without the bias
 */
function attentionOfHeads({ weights, heads: count }, prefix, asking, tokens) {
  const project = (name, rows) => {
    const made = linear(rows, weights[`${prefix}${name}.weight`], weights[`${prefix}${name}.bias`]);
    return reshape(made, rows.shape[0], count, -1);
  };
  const [query, key, value] = [project("query", asking), project("key", tokens), project("value", tokens)];
  const root = Math.sqrt(query.shape[2]);
  const logits = einsum("q h d, t h d -> h q t", query, key);
  const matches = softmax(tensor(logits.shape, logits.data.map((score) => score / root)));
  const read = einsum("h q t, t h d -> q h d", matches, value);
  const output = weights[`${prefix}output.weight`];
  const parts = einsum("q h d, z h d -> h q z", read, reshape(output, output.shape[0], count, -1));
  const answers = linear(reshape(read, read.shape[0], -1), output, weights[`${prefix}output.bias`]);
  const heads = Array.from({ length: count }, (_, h) => ({ weights: at(matches, h), update: at(parts, h) }));
  return { answers, heads };
}

/** One hidden layer on all that is given. */
function hiddenLayer(model, prefix, reference, transform, action) {
  const hidden = relu(ofInputs(model, `${prefix}hidden`, reference, transform, action));
  const made = linear(hidden, model.weights[`${prefix}output.weight`], model.weights[`${prefix}output.bias`]);
  return { update: reshape(made, ...reference.shape), stages: [{ type: "hidden", hidden }] };
}

/** One linear map of all that is given. */
function oneLinearMap(model, prefix, reference, transform, action) {
  const made = ofInputs(model, `${prefix}output`, reference, transform, action);
  return { update: reshape(made, ...reference.shape), stages: [] };
}

/** Each entry of the answer between those of the reference and the transform. */
function interpolation(model, prefix, reference, transform, action) {
  const gates = sigmoid(ofInputs(model, `${prefix}gate`, reference, transform, action));
  return { update: multiply(reshape(gates, ...reference.shape), subtract(transform, reference)), stages: [] };
}

/** One linear map of the objects and 1 for each action. */
function linearByAction(model, prefix, reference, transform, action) {
  const inputs = tensor([2 * reference.data.length + 1], [...reference.data, ...transform.data, 1]);
  const made = einsum("x, x y -> y", inputs, at(model.weights[`${prefix}weight`], action));
  return { update: reshape(made, ...reference.shape), stages: [] };
}

/** A linear map of the reference, the transform and the action side by side. @returns {Tensor} */
function ofInputs(model, name, reference, transform, action) {
  const [weight, bias] = [model.weights[`${name}.weight`], model.weights[`${name}.bias`]];
  const actions = oneHot(action, actionsAsked(weight, 2 * reference.data.length));
  return linear(reshape(rowsBeside([reference], [transform], [actions]), -1), weight, bias);
}
