// Laws of objects and clean-up: what `tpr-laws` does after its heads have substituted.

import { unitLengths } from "./heads.js";
import { add, at, einsum, gelu, reshape, scaled, softmax, subtract, tensor } from "../tensors.js";

/** @typedef {{shape: number[], data: Float32Array|Float64Array}} Tensor */

const LAW_READS = 3; // fillers that the feed-forward of a role is given

/**
 * What the other roles of an object say about each of its roles.
 *
 * law(O)_r = b_r + sum_{s != r} L_rs O_s + sum_h P_rh (f_1 (x) f_2) + sum_h U_rh (g / |g|) + V_r act(W_r e + c_r)
 *
 * @param {(name: string) => Tensor} weight of the laws, by name
 * @param {Tensor} obj [r f]
 * @returns {Tensor} [r f]
 */
export function roleLaws(weight, obj) {
  const [roles, width] = obj.shape;
  const pairs = weight("pair_map").shape[2];
  const units = weight("unit_map").shape[2];
  const others = tensor([roles, roles], Array.from({ length: roles * roles }, (_, k) => (k % (roles + 1) === 0 ? 0 : 1)));
  const read = einsum("r h s, r s, s f -> r h f", weight("query_map"), others, obj);
  const [first, second, unit, given] = splitHeads(read, [pairs, pairs, units, LAW_READS]);
  const hidden = add(einsum("r k n f, r n f -> r k", weight("hidden_map"), given), weight("hidden_bias"));
  const parts = [
    einsum("r f s g, r s, s g -> r f", weight("linear_map"), others, obj),
    einsum("r f p i j, r p i, r p j -> r f", weight("pair_map"), first, second),
    einsum("r f u g, r u g -> r f", weight("unit_map"), unitLengths(unit)),
    einsum("r f k, r k -> r f", weight("output_map"), gelu(hidden)),
  ];
  return parts.reduce(add, reshape(weight("bias"), roles, width));
}

/** Parts of the second axis of a tensor [r h f]. */
function splitHeads({ shape, data }, sizes) {
  const [roles, heads, width] = shape;
  let start = 0;
  return sizes.map((size) => {
    const from = start;
    start += size;
    const rows = Array.from({ length: roles }, (_, r) => [...data.slice((r * heads + from) * width, (r * heads + from + size) * width)]);
    return tensor([roles, size, width], rows.flat());
  });
}

/**
 * What inputs have beyond their own laws, as far as the law says the same of the answer as of them.
 *
 * sum_t m_t prod_{u < t} (1 - m_u) (O_t - law(O_t)),    m_t = exp(-sharpness |law(answer) - law(O_t)|^2), role by role
 *
 * @returns {Tensor} [r f]
 */
export function carriedFillers(law, inputs, laws, sharpness) {
  const left = Array.from({ length: law.shape[0] }, () => 1);
  let total = scaled(law, 0);
  inputs.forEach((obj, t) => {
    const apart = subtract(law, laws[t]);
    const squares = einsum("r f, r f -> r", apart, apart).data;
    const matches = Array.from(squares, (square) => Math.exp(-sharpness * square));
    const shares = tensor([matches.length], matches.map((one, r) => left[r] * one));
    total = add(total, einsum("r, r f -> r f", shares, subtract(obj, laws[t])));
    matches.forEach((one, r) => (left[r] *= 1 - one));
  });
  return total;
}

/** The mean of the codes of each role, weighted by how near they are: codes [r c f], sharpness [r], obj [r f]. */
export function cleanByCodes(codes, sharpness, obj) {
  const squares = einsum("r c f, r c f -> r c", codes, codes);
  const nearness = subtract(scaled(einsum("r c f, r f -> r c", codes, obj), 2), squares);
  const sharp = tensor(sharpness.shape, Array.from(sharpness.data, Math.exp));
  return einsum("r c, r c f -> r f", softmax(einsum("r, r c -> r c", sharp, nearness)), codes);
}

/**
 * From the substituted object to the answer.
 *
 * S'_r = S_r + g_r(a) (law(S)_r + carried_r - S_r),    output_r = S'_r + k_r(a) (clean(S')_r - S'_r)
 *
 * @param {Object} model
 * @param {Tensor} state S, [r f]
 * @param {Tensor[]} inputs the reference and the transform
 * @param {number} action
 * @returns {{state: Tensor, law: Tensor, carried: Tensor, lawGate: Tensor, recomputed: Tensor, codeGate: Tensor|null,
 *   output: Tensor}}
 */
export function recompute(model, prefix, state, inputs, action) {
  const { weights } = model;
  const weight = (name) => weights[`${prefix}laws.${name}`];
  const law = roleLaws(weight, state);
  const laws = inputs.map((obj) => roleLaws(weight, obj));
  const carried = model.carries ? carriedFillers(law, inputs, laws, model.sharpness) : scaled(law, 0);
  const lawGate = at(weights[`${prefix}law_gate`], action);
  const recomputed = gatedRoles(state, lawGate, add(law, carried));
  const codeGates = weights[`${prefix}code_gate`];
  if (!codeGates) return { state, law, carried, lawGate, recomputed, codeGate: null, output: recomputed };
  const codeGate = medianGates(codeGates);
  const cleaned = cleanByCodes(weights[`${prefix}clean_up.codes`], weights[`${prefix}clean_up.sharpness`], recomputed);
  return { state, law, carried, lawGate, recomputed, codeGate, output: gatedRoles(recomputed, codeGate, cleaned) };
}

/** From each role of an object to that of another, as far as its gate is open. */
function gatedRoles(obj, gate, other) {
  return add(obj, einsum("r, r f -> r f", gate, subtract(other, obj)));
}

/** The median over actions, of two middle ones the lower: [a r] -> [r]. */
function medianGates({ shape, data }) {
  const [actions, roles] = shape;
  const middle = Math.floor((actions - 1) / 2);
  const column = (r) => Array.from({ length: actions }, (_, a) => data[a * roles + r]).sort((a, b) => a - b);
  return tensor([roles], Array.from({ length: roles }, (_, r) => column(r)[middle]));
}
