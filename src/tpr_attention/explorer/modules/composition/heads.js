// Action-conditioned heads (App. D): what each reads, maps and writes under an action, and what all do together.

import { actionRead, actionWrite } from "../algebra.js";
import { at, einsum, mapped, reshape, scaled, stack, tensor, toNested } from "../tensors.js";

/**
 * @typedef {{shape: number[], data: Float32Array|Float64Array}} Tensor
 * @typedef {{weights: Tensor, filler: Tensor}} Read how much of each role of each object, [t r], and what it is, [f]
 * @typedef {{reads: Read[], mapped: Tensor, newRole: Tensor, update: Tensor}} HeadSteps [f], [r] and [r f]
 */

const NO_DIRECTION = 1e-3; // much shorter than that, a filler has no direction worth keeping
const MOST_TRANSFERS = 8;
const LEAST_TRANSFER = 0.05;

/** A vector with a one at an index. @returns {Tensor} */
export function oneHot(index, size) {
  return tensor([size], Array.from({ length: size }, (_, k) => (k === index ? 1 : 0)));
}

/**
 * What heads add to the first object.
 *
 * @param {Object<string, Tensor>} weights of a model
 * @param {string} prefix of the layer's weights
 * @param {Tensor[]} objects [r f] each
 * @param {number} action
 * @param {boolean} isNormalised whether what is read is brought to unit length
 * @returns {{update: Tensor, heads: HeadSteps[]}}
 */
export function headsUpdate(weights, prefix, objects, action, isNormalised = false) {
  const layer = layerOfHeads(weights, prefix);
  const asked = oneHot(action, layer.roleMap.shape[1]);
  const read = actionRead(stack(objects), asked, layer.ids, layer.queries);
  const fillers = isNormalised ? unitLengths(read) : read;
  const found = combinedFillers(fillers, layer.order);
  const update = actionWrite(found, asked, layer.maps, layer.roleMap);
  const readWeights = einsum("q t, a, q a r -> q t r", layer.ids, asked, layer.queries);
  const made = einsum("h p, h p f -> h f", found, layer.maps);
  const newRoles = einsum("a, h a r -> h r", asked, layer.roleMap);
  const updates = einsum("h r, h f -> h r f", newRoles, made);
  const heads = Array.from({ length: made.shape[0] }, (_, h) => ({
    reads: Array.from({ length: layer.order }, (_, k) => ({
      weights: at(readWeights, h * layer.order + k),
      filler: at(fillers, h * layer.order + k),
    })),
    mapped: at(made, h),
    newRole: at(newRoles, h),
    update: at(updates, h),
  }));
  return { update, heads };
}

/** The weights of a layer as those of queries and maps; heads of first order have no axis for the order. */
function layerOfHeads(weights, prefix) {
  const [queries, ids, maps, roleMap] = ["query_map", "id_query", "filler_map", "role_map"].map((name) => weights[prefix + name]);
  const order = queries.shape.length === 4 ? queries.shape[1] : 1;
  const width = maps.shape[maps.shape.length - 1];
  return {
    order,
    queries: reshape(queries, -1, ...queries.shape.slice(-2)),
    ids: reshape(ids, -1, ids.shape[ids.shape.length - 1]),
    maps: reshape(maps, maps.shape[0], width ** order, width),
    roleMap,
  };
}

/** The tensor product of the fillers of each head, flattened. @returns {Tensor} [h p] */
function combinedFillers(fillers, order) {
  const rows = toNested(fillers);
  const heads = Array.from({ length: rows.length / order }, (_, h) => rows.slice(h * order, (h + 1) * order));
  const products = heads.map((own) => own.reduce((product, filler) => product.flatMap((a) => filler.map((b) => a * b))));
  return tensor([heads.length, products[0].length], products.flat());
}

/** Fillers of length one, row by row; zero stays zero. @returns {Tensor} */
export function unitLengths(fillers) {
  const rows = reshape(fillers, -1, fillers.shape[fillers.shape.length - 1]);
  const lengths = einsum("q f, q f -> q", rows, rows).data.map((square) => 1 / Math.sqrt(square + NO_DIRECTION ** 2));
  return reshape(einsum("q f, q -> q f", rows, tensor([lengths.length], lengths)), ...fillers.shape);
}

/**
 * The same head with its scale and signs in what it maps: the largest read weight and the largest entry of the new role
 * are 1. Its update is the same. Of normalised heads the sizes of what is read do not count.
 *
 * @param {HeadSteps} head
 * @returns {HeadSteps}
 */
export function readableHead(head, isNormalised) {
  const written = peakOf(head.newRole);
  const reads = head.reads.map(({ weights, filler }) => {
    const largest = peakOf(weights);
    return {
      weights: mapped(weights, (value) => ratioOf(value, largest)),
      filler: mapped(filler, (value) => ratioOf(value, isNormalised ? Math.sign(largest) : largest)),
    };
  });
  const newRole = mapped(head.newRole, (value) => ratioOf(value, written));
  return { reads, mapped: scaled(head.mapped, written), newRole, update: head.update };
}

/**
 * What all heads of first order do in sum under an action: from role r of object t to role s.
 *
 * @returns {{object: number, role: number, newRole: number, copied: number, mixed: number}[]} the strongest, in order;
 *   copied: how much of the filler arrives unchanged (1 writes it, -1 erases it); mixed: the rest of the map of fillers
 */
export function transfersOf(weights, prefix, action) {
  const { queries, ids, maps, roleMap } = layerOfHeads(weights, prefix);
  const [count, size, width] = [ids.shape[1], queries.shape[2], maps.shape[2]];
  const asked = oneHot(action, roleMap.shape[1]);
  const [query, newRole] = [queries, roleMap].map((map) => einsum("a, h a r -> h r", asked, map));
  const whole = einsum("h t, h r, h s, h f g -> t r s f g", ids, query, newRole, maps).data;
  const found = Array.from({ length: count * size * size }, (_, k) => {
    const block = whole.subarray(k * width * width, (k + 1) * width * width);
    const copied = block.reduce((sum, value, n) => (n % (width + 1) === 0 ? sum + value / width : sum), 0);
    const rest = block.reduce((sum, value, n) => sum + (value - (n % (width + 1) === 0 ? copied : 0)) ** 2, 0);
    const [object, role, newRole] = [Math.floor(k / size / size), Math.floor(k / size) % size, k % size];
    return { object, role, newRole, copied, mixed: Math.sqrt(rest / width) };
  });
  const sizeOf = ({ copied, mixed }) => Math.hypot(copied, mixed);
  const strong = found.filter((one) => sizeOf(one) >= LEAST_TRANSFER).sort((a, b) => sizeOf(b) - sizeOf(a));
  const kept = new Set(strong.slice(0, MOST_TRANSFERS));
  return found.filter((one) => kept.has(one));
}

/** The entry of largest absolute value. */
function peakOf({ data }) {
  return data.reduce((largest, value) => (Math.abs(value) > Math.abs(largest) ? value : largest), 0);
}

function ratioOf(value, unit) {
  return unit === 0 ? 0 : value / unit;
}
