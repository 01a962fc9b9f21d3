// Roles of two objects that are taken into an answer: by pointers that drag them, or by pressing them.

import { element } from "./dom.js";
import { heatMap } from "./widgets.js";

const FAR_ENOUGH = 6; // pixels that a pointer moves before a press becomes a drag
let drag = null; // the one that is going on

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
    { class: "object-rows" },
    names.map((name, role) => {
      const filler = [...object.data.slice(role * width, (role + 1) * width)];
      const label = `${name} of the ${side}: ${filler.map((number) => number.toFixed(2)).join(", ")}`;
      const parts = [
        element("span", { class: "role-name" }, onTake ? element("span", { class: "grip", "aria-hidden": "true" }, "⠿") : null, name),
        heatMap({ values: [filler], label, scale: scales[role], key: `${side}-${name}`, cell: 34 }),
      ];
      if (!onTake) return element("div", { class: `object-row from-${from[role] ?? "layer"}`, "data-role": name }, parts);
      const isUsed = from[role] === side;
      return element(
        "button",
        {
          type: "button", class: `object-row from-${side}`, "data-key": `take-${side}-${name}`, "aria-pressed": String(isUsed),
          "aria-label": `Take the ${name} of the ${side} into the answer`, title: "Press, or drag to the answer",
          ...dragHandlers(name, side, () => onTake(role)),
        },
        parts,
      );
    }),
  );
}

/** A press takes; a drag takes if it ends on a place with `data-drop` that is not the object's own. */
function dragHandlers(name, side, take) {
  return {
    onpointerdown: (event) => {
      const isFinger = event.pointerType === "touch";
      if (event.button !== 0 || (isFinger && !event.target.closest(".grip"))) return;
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
      if (wasDragged) event.currentTarget.dataset.dragged = "";
    },
    onpointercancel: endDrag,
    onclick: (event) => {
      const { dataset } = event.currentTarget;
      if ("dragged" in dataset) delete dataset.dragged; // the click that ends a drag
      else take();
    },
  };
}

function startGhost(row, text) {
  const ghost = element("div", { class: "ghost", "aria-hidden": "true" }, text);
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
