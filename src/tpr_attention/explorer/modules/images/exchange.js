// Roles of two objects that are taken into an answer: by pointers that drag them, or by pressing them.

import { element } from "../dom.js";
import { colourOf, inkOn, numeral } from "../widgets.js";

const FAR_ENOUGH = 6; // pixels that a pointer moves before a press becomes a drag
let drag = null; // the one that is going on
let hasJustEnded = false; // a drag, whose end is a click too

/**
 * The roles of an object, one row each: a name and its filler.
 * @param {{side: string, object: Tensor, names: string[], scales: number[], from?: string[], onTake?: (role: number) => void}}
 *   options `from` says where each row comes from; with `onTake`, rows can be pressed and dragged to places with
 *   `data-drop`
 */
export function objectRows({ side, object, names, scales, from = [], onTake = null }) {
  const width = object.shape[1];
  return element(
    "div",
    { class: "pixel-rows" },
    names.map((name, role) => {
      const filler = [...object.data.slice(role * width, (role + 1) * width)];
      const parts = [
        element("span", { class: "role-name" }, onTake ? element("span", { class: "pixel-grip", "aria-hidden": "true" }, "⠿") : null, name),
        fillerCells(filler, scales[role], `${side}-${name}`),
      ];
      if (!onTake) return element("div", { class: `pixel-row from-${from[role] ?? "layer"}`, "data-role": name }, parts);
      const isUsed = from[role] === side;
      return element(
        "button",
        {
          type: "button", class: `pixel-row from-${side}`, "data-key": `take-${side}-${name}`, "aria-pressed": String(isUsed),
          "aria-label": `Take the ${name} of the ${side} into the answer`, title: "Press, or drag to the answer",
          ...dragHandlers(name, side, () => onTake(role)),
        },
        parts,
      );
    }),
  );
}

function fillerCells(filler, scale, key) {
  return element(
    "span",
    { class: "pixel-cells" },
    filler.map((number, k) =>
      element(
        "span",
        {
          class: `pixel-cell ${inkOn(number, scale)}`.trim(), style: `background: ${colourOf(number, scale)}`,
          title: numeral(number, 4), "data-cell": `${key}.${k}`, "data-value": number,
        },
        numeral(number, Math.abs(number) < 9.95 ? 2 : 1),
      ),
    ),
  );
}

/** A press takes; a drag takes if it ends on a place with `data-drop` that is not the object's own. */
function dragHandlers(name, side, take) {
  return {
    onpointerdown: (event) => {
      const isFinger = event.pointerType === "touch";
      if (event.button !== 0 || (isFinger && !event.target.closest(".pixel-grip"))) return;
      drag = { start: [event.clientX, event.clientY], ghost: null };
      event.currentTarget.setPointerCapture(event.pointerId);
    },
    onpointermove: (event) => {
      if (!drag) return;
      const far = Math.hypot(event.clientX - drag.start[0], event.clientY - drag.start[1]);
      if (!drag.ghost && far < FAR_ENOUGH) return;
      drag.ghost ??= startGhost(event.currentTarget, `${name} of the ${side}`);
      drag.ghost.style.transform = `translate(${event.clientX + 12}px, ${event.clientY + 8}px)`;
      highlight(dropUnder(event, side));
    },
    onpointerup: (event) => {
      const wasDragged = Boolean(drag?.ghost);
      const place = wasDragged ? dropUnder(event, side) : null;
      endDrag();
      if (place) take();
      hasJustEnded = wasDragged;
      setTimeout(() => (hasJustEnded = false));
    },
    onpointercancel: endDrag,
    onclick: () => {
      if (!hasJustEnded) take();
    },
  };
}

function startGhost(row, text) {
  const ghost = element("div", { class: "pixel-ghost", "aria-hidden": "true" }, text);
  document.body.append(ghost);
  row.dataset.lifted = "";
  return ghost;
}

function dropUnder(event, side) {
  const place = document.elementFromPoint(event.clientX, event.clientY)?.closest("[data-drop]") ?? null;
  return place && place.dataset.drop !== side ? place : null;
}

function highlight(place) {
  for (const one of document.querySelectorAll("[data-over]")) if (one !== place) delete one.dataset.over;
  if (place) place.dataset.over = "";
}

function endDrag() {
  drag?.ghost?.remove();
  drag = null;
  highlight(null);
  for (const row of document.querySelectorAll("[data-lifted]")) delete row.dataset.lifted;
}
