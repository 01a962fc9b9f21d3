// `UnbindingEncoder` in float64: an image of one object is taken apart into colour, position, and what is left.
// Images are Float64Array [channel * side * side], objects are tensors [r f].

import { gelu, linear, tensor } from "../tensors.js";

const LEAST_MASS = 1; // pixels
const LARGE_WAVE = 30;
const OFFSET_RATE = 0.1;
export const FULL_TURN = 2 * Math.PI;

/** Cosines and sines of the waves -cutoff ... cutoff at the centres of pixels. */
export function waveTables(side, cutoff) {
  const count = 2 * cutoff + 1;
  const cos = new Float64Array(side * count);
  const sin = new Float64Array(side * count);
  for (let pixel = 0; pixel < side; pixel += 1) {
    for (let k = 0; k < count; k += 1) {
      const phase = (FULL_TURN / side) * (pixel + 0.5) * (k - cutoff);
      cos[pixel * count + k] = Math.cos(phase);
      sin[pixel * count + k] = Math.sin(phase);
    }
  }
  return { cos, sin };
}

/** `spectrum` of phases.py: the waves of a mask. @returns {{re: Float64Array, im: Float64Array}} [down across] */
export function maskSpectrum(mask, side, cutoff, waves = waveTables(side, cutoff)) {
  const down = 2 * cutoff + 1;
  const across = cutoff + 1;
  const re = new Float64Array(down * across);
  const im = new Float64Array(down * across);
  for (let y = 0; y < side; y += 1) {
    const rowRe = new Float64Array(across);
    const rowIm = new Float64Array(across);
    let some = false;
    for (let x = 0; x < side; x += 1) {
      const value = mask[y * side + x];
      if (value === 0) continue;
      some = true;
      for (let v = 0; v < across; v += 1) {
        rowRe[v] += value * waves.cos[x * down + cutoff + v];
        rowIm[v] -= value * waves.sin[x * down + cutoff + v];
      }
    }
    if (!some) continue;
    for (let u = 0; u < down; u += 1) {
      const cos = waves.cos[y * down + u];
      const sin = waves.sin[y * down + u];
      for (let v = 0; v < across; v += 1) {
        re[u * across + v] += cos * rowRe[v] + sin * rowIm[v];
        im[u * across + v] += cos * rowIm[v] - sin * rowRe[v];
      }
    }
  }
  return { re, im };
}

/** `moved` of phases.py: waves of a mask that moves by two angles, across and down. */
export function movedWaves({ re, im }, [ax, ay], cutoff) {
  const across = cutoff + 1;
  const turned = { re: new Float64Array(re.length), im: new Float64Array(im.length) };
  for (let k = 0; k < re.length; k += 1) {
    const phase = ay * (Math.floor(k / across) - cutoff) + ax * (k % across);
    const cos = Math.cos(phase);
    const sin = Math.sin(phase);
    turned.re[k] = re[k] * cos + im[k] * sin;
    turned.im[k] = im[k] * cos - re[k] * sin;
  }
  return turned;
}

/** `UnbindingEncoder.inspect`: the object of an image, and what was taken out of it on the way. */
export function encodeImage(image, { side, cutoff, weights, waves }) {
  const pixels = side * side;
  const channels = image.length / pixels;
  const mask = new Float64Array(pixels);
  const sums = new Float64Array(channels);
  for (let k = 0; k < image.length; k += 1) {
    mask[k % pixels] += image[k];
    sums[Math.floor(k / pixels)] += image[k];
  }
  const mass = Math.max(LEAST_MASS, sums.reduce((one, other) => one + other, 0));
  const colour = Array.from(sums, (sum) => sum / mass);
  const found = maskSpectrum(mask, side, cutoff, waves);
  const width = cutoff + 1;
  const angles = [cutoff * width + 1, (cutoff + 1) * width].map((k) => Math.atan2(-found.im[k], found.re[k]));
  const content = movedWaves(found, [-angles[0], -angles[1]], cutoff);
  const numbers = new Float64Array(2 * content.re.length);
  for (let k = 0; k < content.re.length; k += 1) {
    const even = (1 + Math.hypot(Math.floor(k / width) - cutoff, k % width)) / LARGE_WAVE;
    numbers[2 * k] = content.re[k] * even;
    numbers[2 * k + 1] = content.im[k] * even;
  }
  const layer = (input, name) => linear(input, weights[`${name}.weight`], weights[`${name}.bias`]);
  const first = gelu(layer(tensor([numbers.length], numbers), "encoder.content.0"));
  const hidden = gelu(layer(first, "encoder.content.2"));
  const fillers = layer(hidden, "encoder.fillers").data;
  const offset = Array.from(layer(hidden, "encoder.offset").data, (number) => OFFSET_RATE * number);
  const paint = layer(tensor([channels], Float64Array.from(colour)), "encoder.colour").data;
  const numbersEach = paint.length;
  const place = new Float64Array(numbersEach);
  angles.forEach((angle, k) => {
    place[2 * k] = Math.cos(angle + offset[k]);
    place[2 * k + 1] = Math.sin(angle + offset[k]);
  });
  const object = tensor([fillers.length / numbersEach + 2, numbersEach], Float64Array.from([...fillers, ...place, ...paint]));
  return { object, colour, angles, offset, content };
}
