// The current view as a file. The picture is drawn from what the browser has laid out: boxes, texts and figures become
// plain SVG, which every program for vector graphics opens.

import { svgElement } from "./dom.js";

const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight", "font-style"];
const MARGIN = 16;
const PNG_SCALE = 2;

/** Save an element as a file in the form "svg" or "png". */
export async function savePicture(place, name, form) {
  const picture = drawnView(place);
  const text = new XMLSerializer().serializeToString(picture);
  const svg = new Blob([text], { type: "image/svg+xml" });
  const blob = form === "svg" ? svg : await asPng(text, picture);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${name}.${form}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** An SVG element that looks like an element of the page. */
export function drawnView(place) {
  const box = place.getBoundingClientRect();
  const origin = { x: box.left - MARGIN, y: box.top - MARGIN };
  const size = { width: Math.ceil(box.width) + 2 * MARGIN, height: Math.ceil(box.height) + 2 * MARGIN };
  const picture = svgElement("svg", { ...size, viewBox: `0 0 ${size.width} ${size.height}` });
  picture.append(svgElement("rect", { ...size, fill: plainColour(getComputedStyle(document.body).backgroundColor) }));
  draw(place, picture, origin);
  return picture;
}

function draw(node, picture, origin) {
  if (node.nodeType === Node.TEXT_NODE) return drawText(node, picture, origin);
  if (node.nodeType !== Node.ELEMENT_NODE) return;
  const style = getComputedStyle(node);
  const box = node.getBoundingClientRect();
  if (style.display === "none" || style.visibility === "hidden" || box.width + box.height === 0) return;
  if (node.nodeName === "svg") return drawSvg(node, box, picture, origin);
  drawBox(box, style, picture, origin);
  if (node.nodeName === "CANVAS" || node.nodeName === "IMG") {
    const href = node.nodeName === "CANVAS" ? node.toDataURL() : node.src;
    picture.append(svgElement("image", { ...placed(box, origin), href, style: `image-rendering: ${style.imageRendering}` }));
  } else if (node.nodeName === "SELECT") {
    drawLine(node.selectedOptions[0]?.textContent ?? "", box, style, picture, origin, { indent: 9 });
  } else if (node.nodeName === "INPUT") {
    drawInput(node, box, style, picture, origin);
  } else {
    for (const child of node.childNodes) draw(child, picture, origin);
  }
}

function placed(box, origin) {
  return { x: round(box.left - origin.x), y: round(box.top - origin.y), width: round(box.width), height: round(box.height) };
}

function drawBox(box, style, picture, origin) {
  const fill = plainColour(style.backgroundColor);
  const sides = ["Top", "Right", "Bottom", "Left"].map((side) => ({ side, width: parseFloat(style[`border${side}Width`]) }));
  const isFramed = sides.every(({ width }) => width > 0 && width === sides[0].width);
  const at = placed(box, origin);
  const radius = Math.min(parseFloat(style.borderTopLeftRadius) || 0, box.height / 2);
  if (fill !== "none" || isFramed) {
    const stroke = isFramed ? { stroke: plainColour(style.borderTopColor), "stroke-width": sides[0].width } : {};
    picture.append(svgElement("rect", { ...at, rx: radius, fill, ...stroke }));
  }
  if (isFramed) return;
  for (const { side, width } of sides.filter((one) => one.width > 0)) {
    const isAcross = side === "Top" || side === "Bottom";
    picture.append(
      svgElement("rect", {
        x: side === "Right" ? at.x + at.width - width : at.x,
        y: side === "Bottom" ? at.y + at.height - width : at.y,
        width: isAcross ? at.width : width,
        height: isAcross ? width : at.height,
        fill: plainColour(style[`border${side}Color`]),
      }),
    );
  }
}

/** A text, line by line as it was broken. */
function drawText(node, picture, origin) {
  const words = node.data;
  if (!words.trim()) return;
  const style = getComputedStyle(node.parentElement);
  const isVariable = node.parentElement.localName === "mi"; // of an equation
  const range = document.createRange();
  let line = null;
  const finish = () => line && line.text.trim() && drawLine(line.text.trim(), line.box, style, picture, origin, { isVariable });
  for (let k = 0; k < words.length; k++) {
    range.setStart(node, k);
    range.setEnd(node, k + 1);
    const [box] = range.getClientRects();
    if (!box) continue;
    if (line === null || Math.abs(box.top - line.box.top) > 3) {
      if (!words[k].trim()) continue; // a line starts where its first letter is
      finish();
      line = { text: "", box: { left: box.left, top: box.top, height: box.height, width: 0 } };
    }
    line.text += words[k];
  }
  finish();
}

function drawLine(text, box, style, picture, origin, { indent = 0, isVariable = false } = {}) {
  const attributes = {
    x: round(box.left - origin.x + indent),
    y: round(box.top - origin.y + box.height / 2),
    "dominant-baseline": "central",
    fill: plainColour(style.color),
    "font-family": style.fontFamily,
    "font-size": style.fontSize,
    "font-weight": style.fontWeight,
    "font-style": isVariable ? "italic" : style.fontStyle,
  };
  picture.append(svgElement("text", attributes, text));
}

function drawInput(node, box, style, picture, origin) {
  const at = placed(box, origin);
  const accent = plainColour(style.accentColor === "auto" ? style.color : style.accentColor);
  const middle = at.y + at.height / 2;
  if (node.type === "range") {
    const share = (node.value - node.min) / (node.max - node.min || 1);
    const x = at.x + 8 + share * (at.width - 16);
    picture.append(
      svgElement("rect", { x: at.x, y: middle - 2, width: at.width, height: 4, rx: 2, fill: plainColour(style.color), opacity: 0.25 }),
      svgElement("rect", { x: at.x, y: middle - 2, width: round(x - at.x), height: 4, rx: 2, fill: accent }),
      svgElement("circle", { cx: round(x), cy: middle, r: 8, fill: accent }),
    );
  } else if (node.type === "checkbox") {
    picture.append(svgElement("rect", { ...at, rx: 3, fill: node.checked ? accent : "none", stroke: accent }));
  } else {
    drawLine(node.value, box, style, picture, origin, { indent: 9 });
  }
}

/** A figure of the page, with its styles written into it. */
function drawSvg(node, box, picture, origin) {
  const copy = node.cloneNode(true);
  const [originals, copies] = [node, copy].map((one) => [one, ...one.querySelectorAll("*")]);
  originals.forEach((original, k) => {
    const style = getComputedStyle(original);
    for (const name of STYLES) {
      const value = style.getPropertyValue(name);
      if (name === "fill" || name === "stroke") copies[k].setAttribute(name, plainColour(value));
      else if (value && value !== "none") copies[k].setAttribute(name, value);
    }
    for (const { name } of [...copies[k].attributes]) {
      if (name === "class" || name === "style" || name.startsWith("data-") || name.startsWith("aria-")) copies[k].removeAttribute(name);
    }
  });
  for (const [name, value] of Object.entries(placed(box, origin))) copy.setAttribute(name, value);
  picture.append(copy);
}

/** A colour as every program reads it: `color(srgb ...)` and the like become `rgb(...)`. */
function plainColour(value) {
  if (!value || value === "none" || value === "transparent" || /^rgba\(.*, 0\)$/.test(value)) return "none";
  const parts = /^color\(srgb ([\d.e-]+) ([\d.e-]+) ([\d.e-]+)(?: \/ ([\d.e-]+))?\)$/.exec(value);
  if (!parts) return value;
  const [red, green, blue] = parts.slice(1, 4).map((share) => Math.round(255 * Math.min(1, Math.max(0, Number(share)))));
  return parts[4] === undefined ? `rgb(${red}, ${green}, ${blue})` : `rgba(${red}, ${green}, ${blue}, ${parts[4]})`;
}

function round(value) {
  return Math.round(100 * value) / 100;
}

async function asPng(text, picture) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = PNG_SCALE * picture.getAttribute("width");
  canvas.height = PNG_SCALE * picture.getAttribute("height");
  const context = canvas.getContext("2d");
  context.scale(PNG_SCALE, PNG_SCALE);
  context.drawImage(image, 0, 0);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}
