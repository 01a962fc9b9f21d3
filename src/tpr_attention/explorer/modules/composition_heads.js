// Action-conditioned heads (App. D): what each reads, maps and writes under an action, and what all do together.

/**
 * @typedef {{shape: number[], data: Float32Array|Float64Array}} Tensor
 * @typedef {{weights: Tensor, filler: number[]}} Read how much of each role of each object, [t r], and what was found
 * @typedef {{reads: Read[], mapped: number[], newRole: number[], update: Tensor}} HeadSteps
 */

const SHORT_FILLER = 1e-3; // much shorter than that, a filler has no direction worth keeping

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
  const layer = layerAt(weights, prefix);
  const heads = Array.from({ length: layer.count }, (_, h) => headSteps(layer, h, objects, action, isNormalised));
  const update = zeros([layer.roles, layer.width]);
  for (const head of heads) addTo(update, head.update);
  return { update, heads };
}

/** The weights of a layer, and its sizes; heads of first order have no axis for the order. */
function layerAt(weights, prefix) {
  const [queries, ids, maps, newRoles] = ["query_map", "id_query", "filler_map", "role_map"].map(
    (name) => weights[prefix + name].data,
  );
  const { shape } = weights[`${prefix}query_map`];
  const order = shape.length === 4 ? shape[1] : 1;
  const [actions, roles] = shape.slice(-2);
  const width = weights[`${prefix}filler_map`].shape.at(-1);
  const objects = weights[`${prefix}id_query`].shape.at(-1);
  return { queries, ids, maps, newRoles, count: shape[0], order, actions, roles, width, objects };
}

function headSteps(layer, h, objects, action, isNormalised) {
  const { roles, width, order } = layer;
  const reads = Array.from({ length: order }, (_, k) => {
    const weights = readWeights(layer, h * order + k, action);
    const filler = Array.from({ length: width }, (_, f) => {
      let sum = 0;
      objects.forEach((object, t) => {
        for (let r = 0; r < roles; r += 1) sum += weights.data[t * roles + r] * object.data[r * width + f];
      });
      return sum;
    });
    return { weights, filler: isNormalised ? toUnitLength(filler) : filler };
  });
  const combined = reads.map((one) => one.filler).reduce((product, filler) => product.flatMap((a) => filler.map((b) => a * b)));
  const size = width ** order;
  const mapped = Array.from({ length: width }, (_, f) =>
    combined.reduce((sum, value, p) => sum + value * layer.maps[(h * size + p) * width + f], 0),
  );
  const newRole = newRoleOf(layer, h, action);
  const update = zeros([roles, width]);
  newRole.forEach((weight, r) => mapped.forEach((value, f) => (update.data[r * width + f] = weight * value)));
  return { reads, mapped, newRole, update };
}

/** How much a query reads of each role of each object under an action. */
function readWeights(layer, query, action) {
  const { roles, objects, actions } = layer;
  const weights = zeros([objects, roles]);
  for (let t = 0; t < objects; t += 1) {
    for (let r = 0; r < roles; r += 1) {
      const asked = layer.queries[(query * actions + action) * roles + r];
      weights.data[t * roles + r] = layer.ids[query * objects + t] * asked;
    }
  }
  return weights;
}

function newRoleOf({ newRoles, actions, roles }, h, action) {
  return Array.from(newRoles.slice((h * actions + action) * roles, (h * actions + action + 1) * roles));
}

/** A filler of length one; zero stays zero. */
export function toUnitLength(filler) {
  const length = Math.sqrt(filler.reduce((sum, value) => sum + value * value, SHORT_FILLER ** 2));
  return filler.map((value) => value / length);
}

/**
 * The same head with its scale and signs in what it maps: the largest read weight and the largest entry of the new role
 * are 1. Its update is the same. Of normalised heads only the signs of what is read count.
 *
 * @param {HeadSteps} head
 * @returns {HeadSteps}
 */
export function readable(head, isNormalised = false) {
  const written = peak(head.newRole);
  let scale = written;
  const reads = head.reads.map(({ weights, filler }) => {
    const largest = peak(weights.data);
    const ownScale = isNormalised ? Math.sign(largest) : largest;
    scale *= ownScale;
    return {
      weights: { shape: weights.shape, data: weights.data.map((value) => ratio(value, largest)) },
      filler: filler.map((value) => ratio(value, ownScale)),
    };
  });
  const newRole = head.newRole.map((value) => ratio(value, written));
  const mapped = head.mapped.map((value) => value * written);
  return { reads, mapped, newRole, update: head.update, size: Math.abs(scale) };
}

/**
 * What all heads of first order do in sum under an action: from role r of object t to role s.
 *
 * @returns {{object: number, role: number, newRole: number, copied: number, mixed: number}[]} the strongest, in order;
 *   copied: how much of the filler arrives unchanged (1 writes it, -1 erases it); mixed: the rest of the map of fillers
 */
export function transfersOf(weights, prefix, action, most = 8, least = 0.05) {
  const layer = layerAt(weights, prefix);
  const { roles, width } = layer;
  const found = [];
  for (let t = 0; t < layer.objects; t += 1) {
    for (let r = 0; r < roles; r += 1) {
      for (let s = 0; s < roles; s += 1) found.push({ object: t, role: r, newRole: s, ...block(layer, action, t, r, s) });
    }
  }
  const size = ({ copied, mixed }) => Math.hypot(copied, mixed);
  const strongest = found.filter((one) => size(one) >= least).sort((a, b) => size(b) - size(a));
  const kept = new Set(strongest.slice(0, most));
  void width;
  return found.filter((one) => kept.has(one));
}

/** The map of fillers from role r of object t to role s, as the part that copies and the rest. */
function block(layer, action, t, r, s) {
  const { width, roles, actions } = layer;
  const map = new Float64Array(width * width);
  for (let h = 0; h < layer.count; h += 1) {
    const place = (h * actions + action) * roles;
    const scale = layer.ids[h * layer.objects + t] * layer.queries[place + r] * layer.newRoles[place + s];
    for (let k = 0; k < map.length; k += 1) map[k] += scale * layer.maps[h * map.length + k];
  }
  let copied = 0;
  for (let f = 0; f < width; f += 1) copied += map[f * width + f] / width;
  let rest = 0;
  map.forEach((value, k) => (rest += (value - (k % (width + 1) === 0 ? copied : 0)) ** 2));
  return { copied, mixed: Math.sqrt(rest / width) };
}

function peak(values) {
  return values.reduce((largest, value) => (Math.abs(value) > Math.abs(largest) ? value : largest), 0);
}

function ratio(value, unit) {
  return unit === 0 ? 0 : value / unit;
}

function zeros(shape) {
  return { shape, data: new Float64Array(shape.reduce((product, size) => product * size, 1)) };
}

function addTo(sum, tensor) {
  tensor.data.forEach((value, k) => (sum.data[k] += value));
}
