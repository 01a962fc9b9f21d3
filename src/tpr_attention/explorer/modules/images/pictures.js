// Pictures of 64 x 64 pixels with wrong ones marked, and pixels that are drawn by hand.

import { element } from "../dom.js";
import { FRAME_SIDE } from "./frames.js";

const WRONG = [255, 170, 240]; // lighter than red, green, blue and black

/**
 * A picture of an image.
 * @param {Float64Array} image [3 * 64 * 64], how much of each colour there is
 * @param {{key: string, label: string, wrong?: Uint8Array, class?: string}} options `wrong` has 1 for pixels to mark
 */
export function pixelPicture(image, { key, label, wrong = null, ...others }) {
  return element("img", {
    class: "pixel-picture", "data-picture": key, src: pixelAddress(image, wrong), alt: label, draggable: "false", width: 64, height: 64,
    ...others,
  });
}

/** The image as the address of a PNG. */
function pixelAddress(image, wrong) {
  const pixels = FRAME_SIDE * FRAME_SIDE;
  const levels = new Uint8ClampedArray(4 * pixels);
  for (let k = 0; k < pixels; k += 1) {
    const isMarked = wrong && wrong[k];
    for (let c = 0; c < 3; c += 1) levels[4 * k + c] = isMarked ? WRONG[c] : Math.round(255 * image[c * pixels + k]);
    levels[4 * k + 3] = 255;
  }
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = FRAME_SIDE;
  canvas.getContext("2d").putImageData(new ImageData(levels, FRAME_SIDE, FRAME_SIDE), 0, 0);
  return canvas.toDataURL("image/png");
}

let stroke = null; // the one that is being drawn: where it was last, and what it paints

/**
 * What makes a picture one to draw on: pointers paint, arrow keys move a cursor and the space bar changes its pixel.
 * @param {(paint: (mask: Uint8Array, cursor: number) => void) => void} change is given a function that changes the
 *   newest mask
 * @param {(next: (cursor: number) => number) => void} move is given a function of the newest cursor
 */
export function drawingHandlers(change, move) {
  return {
    onpointerdown: (event) => {
      if (event.button !== 0) return;
      event.preventDefault();
      event.currentTarget.focus();
      event.currentTarget.setPointerCapture(event.pointerId);
      const place = pixelUnder(event);
      stroke = { last: place, value: null };
      change((mask) => paintLine(mask, place, place));
    },
    onpointermove: (event) => {
      if (!stroke) return;
      const place = pixelUnder(event);
      const from = stroke.last;
      stroke.last = place;
      change((mask) => paintLine(mask, from, place));
    },
    onpointerup: () => (stroke = null),
    onpointercancel: () => (stroke = null),
    onkeydown: (event) => {
      const isSpace = event.key === " ";
      const arrow = Object.hasOwn(ARROWS, event.key) ? ARROWS[event.key] : null;
      if (isSpace) change((mask, cursor) => (mask[cursor] = 1 - mask[cursor]));
      else if (arrow) move((cursor) => movedCursor(cursor, arrow));
      else return;
      event.preventDefault();
    },
  };
}

function pixelUnder(event) {
  const box = event.currentTarget.getBoundingClientRect();
  const along = (at, from, size) => Math.min(FRAME_SIDE - 1, Math.max(0, Math.floor(((at - from) / size) * FRAME_SIDE)));
  return [along(event.clientX, box.left, box.width), along(event.clientY, box.top, box.height)];
}

/** The first pixel of a stroke decides whether it paints or erases. */
function paintLine(mask, from, to) {
  const steps = Math.max(1, Math.abs(to[0] - from[0]), Math.abs(to[1] - from[1]));
  for (let k = 0; k <= steps; k += 1) {
    const [x, y] = [0, 1].map((axis) => Math.round(from[axis] + ((to[axis] - from[axis]) * k) / steps));
    const place = y * FRAME_SIDE + x;
    stroke.value ??= 1 - mask[place];
    mask[place] = stroke.value;
  }
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function movedCursor(cursor, [dx, dy]) {
  const clamp = (number) => Math.min(FRAME_SIDE - 1, Math.max(0, number));
  return clamp(Math.floor(cursor / FRAME_SIDE) + dy) * FRAME_SIDE + clamp((cursor % FRAME_SIDE) + dx);
}
