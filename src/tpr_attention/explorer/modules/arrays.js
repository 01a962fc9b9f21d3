// Arrays in the data of the page.

import { tensor } from "./tensors.js";

const ARRAYS = { float64: Float64Array, float32: Float32Array, int32: Int32Array, uint8: Uint8Array };

/** Values and arrays as `pack` in packing.py wrote them: arrays become tensors. */
export async function unpack({ values, bytes }) {
  const text = atob(bytes);
  const packed = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) packed[k] = text.charCodeAt(k); // ten times as fast as Uint8Array.from
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return withArrays(values, await new Response(stream).arrayBuffer());
}

/** Put the arrays of a buffer in their places. */
export function withArrays(values, buffer) {
  if (Array.isArray(values)) return values.map((value) => withArrays(value, buffer));
  if (values === null || typeof values !== "object") return values;
  if (Array.isArray(values.array)) {
    const [dtype, offset, shape] = values.array;
    const size = shape.reduce((a, b) => a * b, 1);
    if (dtype !== "float16") return tensor(shape, new ARRAYS[dtype](buffer, offset, size));
    return tensor(shape, fromHalves(new Uint8Array(buffer, offset, 2 * size)));
  }
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, withArrays(value, buffer)]));
}

let halves = null; // all numbers of 16 bits: a million of them are looked up faster than computed

/** Numbers of 16 bits, of which `pack` writes all low bytes and then all high ones. */
function fromHalves(bytes) {
  halves ??= new Float32Array(65536).map((_, bits) => fromHalf(bits));
  const numbers = new Float32Array(bytes.length / 2);
  for (let k = 0; k < numbers.length; k++) numbers[k] = halves[bytes[k] | (bytes[numbers.length + k] << 8)];
  return numbers;
}

function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15));
}
