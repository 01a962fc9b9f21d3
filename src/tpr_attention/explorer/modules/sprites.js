// Sprites of dSprites as SVG paths, in the 64 x 64 frame of the dataset.

import { svgElement } from "./dom.js";

/** Colours that differ in hue and lightness, for all who see; `auto` is the colour of text. */
export const COLOURS = {
  red: "#d3402f",
  green: "#3b9b57",
  blue: "#2f6fd0",
  yellow: "#e7b10a",
  white: "#f4f5f7",
};

const PATHS = {
  square: "M-9.6,-9.6 H9.6 V9.6 H-9.6 Z",
  ellipse: "M-12.77,0 A12.77,7.21 0 1 0 12.77,0 A12.77,7.21 0 1 0 -12.77,0 Z",
  heart: "M0,12 C-16,1 -14,-11 -7,-11 C-3.5,-11 -1,-9 0,-6 C1,-9 3.5,-11 7,-11 C14,-11 16,1 0,12 Z",
  triangle: "M0,-11 L11,9 H-11 Z",
  disc: "M-10.5,0 A10.5,10.5 0 1 0 10.5,0 A10.5,10.5 0 1 0 -10.5,0 Z",
};

/**
 * A picture of objects.
 * @param {{shape: string, colour: string, scale?: number, angle?: number, x?: number, y?: number, faint?: number}[]}
 *   objects `scale` from 0.5 to 1, `angle` in radians, `x` and `y` from -1 to 1, `faint` an opacity
 * @param {{label: string, size?: number, class?: string}} options
 */
export function spritePicture(objects, { label, size = 64, ...others }) {
  return svgElement(
    "svg",
    { viewBox: "0 0 64 64", width: size, height: size, role: "img", "aria-label": label, ...others, class: `sprite ${others.class ?? ""}`.trim() },
    svgElement("rect", { width: 64, height: 64, rx: 6, class: "frame" }),
    objects.map(spritePath),
  );
}

/** One object of a picture; an unknown shape is a question mark. */
export function spritePath({ shape, colour, scale = 1, angle = 0, x = 0, y = 0, faint = 1 }) {
  const place = `translate(${32 + 16 * x} ${32 + 16 * y}) rotate(${(-angle * 180) / Math.PI}) scale(${scale})`;
  const fill = COLOURS[colour] ?? "var(--muted)";
  if (!Object.hasOwn(PATHS, shape)) {
    const middle = { x: 32, y: 40, "text-anchor": "middle", class: "unknown", fill, opacity: faint };
    return svgElement("text", middle, "?");
  }
  return svgElement("path", { d: PATHS[shape], transform: place, fill, opacity: faint, class: "shape" });
}

const PLACES_BY_NAME = { left: [-1, 0], right: [1, 0], top: [0, -1], bottom: [0, 1] };
const SIZES_BY_NAME = { tiny: 0.45, small: 0.65, medium: 0.85, large: 1.1 };

/** A picture of one property alone: a shape without colour, a colour without shape, a size, a place; null: nothing. */
export function attributePicture(role, filler, { label, size = 56 }) {
  const parts = () => {
    if (filler === null) return spritePath({ shape: "", colour: "" });
    if (role === "colour") return svgElement("rect", { x: 14, y: 14, width: 36, height: 36, rx: 14, fill: COLOURS[filler], class: "shape" });
    if (role === "shape") return spritePath({ shape: filler, colour: "", scale: 1.5 });
    const [x, y] = PLACES_BY_NAME[filler] ?? [0, 0];
    const radius = role === "size" ? 16 * (SIZES_BY_NAME[filler] ?? 1) : 5;
    return svgElement("circle", { cx: 32 + 16 * x, cy: 32 + 16 * y, r: radius, class: "outline" });
  };
  return svgElement(
    "svg",
    { viewBox: "0 0 64 64", width: size, height: size, role: "img", "aria-label": label, class: "sprite" },
    svgElement("rect", { width: 64, height: 64, rx: 6, class: "frame" }),
    parts(),
  );
}
