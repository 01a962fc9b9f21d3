// Dense tensors in row-major order, and the operations that models need. Every one is tested against torch.

/** @typedef {{shape: number[], data: Float64Array|Float32Array|Int32Array|Uint8Array}} Tensor */

/** A tensor of a shape and its numbers in row-major order. @returns {Tensor} */
export function tensor(shape, data) {
  const size = shape.reduce((a, b) => a * b, 1);
  const numbers = ArrayBuffer.isView(data) ? data : Float64Array.from(data);
  if (numbers.length !== size) throw new Error(`tensor: expected ${size} numbers for [${shape}], got ${numbers.length}`);
  return { shape: [...shape], data: numbers };
}

/** @returns {Tensor} zeros */
export function zeros(...shape) {
  return tensor(shape, new Float64Array(shape.reduce((a, b) => a * b, 1)));
}

/** Nested arrays of the numbers of a tensor; a number for a tensor without axes. */
export function toNested({ shape, data }) {
  const part = (axis, offset, size) => {
    if (axis === shape.length) return data[offset];
    const step = size / shape[axis];
    return Array.from({ length: shape[axis] }, (_, k) => part(axis + 1, offset + k * step, step));
  };
  return part(0, 0, data.length);
}

/** The same numbers in another shape; one size may be -1. @returns {Tensor} */
export function reshape({ data }, ...shape) {
  const known = shape.reduce((a, b) => (b === -1 ? a : a * b), 1);
  return tensor(shape.map((size) => (size === -1 ? data.length / known : size)), data);
}

/** One entry along the first axis. @returns {Tensor} */
export function at({ shape, data }, index) {
  const size = data.length / shape[0];
  return tensor(shape.slice(1), data.slice(index * size, (index + 1) * size));
}

/** Tensors of one shape along a new first axis. @returns {Tensor} */
export function stack(tensors) {
  return tensor([tensors.length, ...tensors[0].shape], tensors.flatMap(({ data }) => [...data]));
}

/** Apply a function to every number. @returns {Tensor} */
export function mapped({ shape, data }, change) {
  return tensor(shape, Float64Array.from(data, change));
}

/** Combine two tensors number by number; the shape of the second is the end of the first's. @returns {Tensor} */
export function zipped(a, b, combine) {
  if (b.shape.some((size, k) => size !== a.shape[a.shape.length - b.shape.length + k])) {
    throw new Error(`zipped: expected the end of [${a.shape}], got [${b.shape}]`);
  }
  const size = b.data.length;
  return tensor(a.shape, Float64Array.from(a.data, (value, k) => combine(value, b.data[k % size])));
}

/** @returns {Tensor} */
export function add(a, b) {
  return zipped(a, b, (x, y) => x + y);
}

/** @returns {Tensor} */
export function subtract(a, b) {
  return zipped(a, b, (x, y) => x - y);
}

/** @returns {Tensor} */
export function multiply(a, b) {
  return zipped(a, b, (x, y) => x * y);
}

/** @returns {Tensor} */
export function scaled(a, factor) {
  return mapped(a, (value) => factor * value);
}

/**
 * A sum of products, as einops writes it: `einsum("t r f, r -> t f", objects, role)`.
 * It loops over all axes at once: for small tensors. `matmul` is for large ones.
 * @returns {Tensor}
 */
export function einsum(pattern, ...tensors) {
  const [left, right] = pattern.split("->").map((part) => part.trim());
  const operands = left.split(",").map(words);
  const kept = words(right);
  const sizes = {};
  operands.forEach((names, k) => {
    if (names.length !== tensors[k].shape.length) throw new Error(`einsum: [${names}] does not fit [${tensors[k].shape}]`);
    names.forEach((name, axis) => {
      sizes[name] ??= tensors[k].shape[axis];
      if (sizes[name] !== tensors[k].shape[axis]) throw new Error(`einsum: ${name} has two sizes in ${pattern}`);
    });
  });
  const names = [...kept, ...Object.keys(sizes).filter((name) => !kept.includes(name))];
  const counts = names.map((name) => sizes[name]);
  const result = zeros(...kept.map((name) => sizes[name]));
  const steps = [kept, ...operands].map((own) => stepsOf(names, own, sizes));
  const places = steps.map(() => 0);
  const index = names.map(() => 0);
  const total = counts.reduce((a, b) => a * b, 1);
  for (let n = 0; n < total; n++) {
    let product = 1;
    for (let k = 0; k < tensors.length; k++) product *= tensors[k].data[places[k + 1]];
    result.data[places[0]] += product;
    for (let axis = names.length - 1; axis >= 0; axis--) {
      index[axis]++;
      for (let k = 0; k < places.length; k++) places[k] += steps[k][axis];
      if (index[axis] < counts[axis]) break;
      for (let k = 0; k < places.length; k++) places[k] -= steps[k][axis] * counts[axis];
      index[axis] = 0;
    }
  }
  return result;
}

function words(text) {
  return text.trim() ? text.trim().split(/\s+/) : [];
}

/** By how much a place in a tensor moves with each of `names`; an axis that stands twice moves by both. */
function stepsOf(names, own, sizes) {
  const steps = own.map((_, axis) => own.slice(axis + 1).reduce((product, name) => product * sizes[name], 1));
  return names.map((name) => own.reduce((sum, one, axis) => (one === name ? sum + steps[axis] : sum), 0));
}

/** Axes in another order. @returns {Tensor} */
export function permute(a, ...axes) {
  const names = a.shape.map((_, axis) => `a${axis}`);
  return einsum(`${names.join(" ")} -> ${axes.map((axis) => names[axis]).join(" ")}`, a);
}

/** `[... n k] x [k m]`, or `[... n k] x [... k m]` with the same leading axes. @returns {Tensor} */
export function matmul(a, b) {
  const [n, k] = a.shape.slice(-2);
  const m = b.shape[b.shape.length - 1];
  const lead = a.shape.slice(0, -2);
  const isShared = b.shape.length === 2;
  const fits = isShared || String(b.shape.slice(0, -2)) === String(lead);
  if (b.shape[b.shape.length - 2] !== k || !fits) throw new Error(`matmul: [${a.shape}] x [${b.shape}]`);
  const batches = lead.reduce((x, y) => x * y, 1);
  const result = zeros(...lead, n, m);
  for (let batch = 0; batch < batches; batch++) {
    const right = isShared ? 0 : batch * k * m;
    for (let row = 0; row < n; row++) {
      const to = (batch * n + row) * m;
      for (let inner = 0; inner < k; inner++) {
        const value = a.data[(batch * n + row) * k + inner];
        if (value === 0) continue;
        const from = right + inner * m;
        for (let column = 0; column < m; column++) result.data[to + column] += value * b.data[from + column];
      }
    }
  }
  return result;
}

/** `x W^T + b` over the last axis, as torch.nn.Linear; weight `[out in]`, bias `[out]` or nothing. @returns {Tensor} */
export function linear(x, weight, bias = null) {
  const [out, size] = weight.shape;
  if (x.shape[x.shape.length - 1] !== size) throw new Error(`linear: [${x.shape}] x [${weight.shape}]`);
  const rows = x.data.length / size;
  const result = zeros(...x.shape.slice(0, -1), out);
  for (let row = 0; row < rows; row++) {
    for (let to = 0; to < out; to++) {
      let sum = bias ? bias.data[to] : 0;
      for (let k = 0; k < size; k++) sum += x.data[row * size + k] * weight.data[to * size + k];
      result.data[row * out + to] = sum;
    }
  }
  return result;
}

/** Over the last axis. @returns {Tensor} */
export function softmax({ shape, data }) {
  const size = shape[shape.length - 1];
  const result = new Float64Array(data.length);
  for (let start = 0; start < data.length; start += size) {
    const row = data.subarray(start, start + size);
    const largest = row.reduce((a, b) => Math.max(a, b), -Infinity);
    let total = 0;
    for (let k = 0; k < size; k++) total += result[start + k] = Math.exp(row[k] - largest);
    for (let k = 0; k < size; k++) result[start + k] /= total;
  }
  return tensor(shape, result);
}

/** Over the last axis, with weight and bias `[size]` or nothing, as torch.nn.LayerNorm. @returns {Tensor} */
export function layerNorm({ shape, data }, weight = null, bias = null, epsilon = 1e-5) {
  const size = shape[shape.length - 1];
  const result = new Float64Array(data.length);
  for (let start = 0; start < data.length; start += size) {
    const row = data.subarray(start, start + size);
    const mean = row.reduce((a, b) => a + b, 0) / size;
    const variance = row.reduce((a, b) => a + (b - mean) ** 2, 0) / size;
    const factor = 1 / Math.sqrt(variance + epsilon);
    for (let k = 0; k < size; k++) {
      result[start + k] = (row[k] - mean) * factor * (weight ? weight.data[k] : 1) + (bias ? bias.data[k] : 0);
    }
  }
  return tensor(shape, result);
}

/** @returns {Tensor} */
export function relu(x) {
  return mapped(x, (value) => Math.max(value, 0));
}

/** @returns {Tensor} */
export function sigmoid(x) {
  return mapped(x, (value) => 1 / (1 + Math.exp(-value)));
}

/** x times the normal distribution function of x, as torch.nn.GELU. @returns {Tensor} */
export function gelu(x) {
  return mapped(x, (value) => 0.5 * value * (1 + errorFunction(value / Math.SQRT2)));
}

/** erf by its series near zero and by a continued fraction elsewhere, to 1e-12. */
export function errorFunction(x) {
  const size = Math.abs(x);
  if (size > 6) return Math.sign(x);
  if (size < 2.5) {
    let term = x;
    let sum = x;
    for (let n = 1; n < 80; n++) {
      term *= (-x * x) / n;
      sum += term / (2 * n + 1);
    }
    return (2 / Math.sqrt(Math.PI)) * sum;
  }
  let fraction = size;
  for (let n = 80; n >= 1; n--) fraction = size + n / 2 / fraction;
  return Math.sign(x) * (1 - Math.exp(-size * size) / (Math.sqrt(Math.PI) * fraction));
}
