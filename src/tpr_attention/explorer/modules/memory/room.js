// Memory and attention: the paper's figure 1, to be changed and asked.

import { capacityCurve, seeded } from "./capacity.js";
import { lineChart } from "../charts.js";
import { element } from "../dom.js";
import { equation } from "../equations.js";
import { crowded, isRight, memoryChecked, memoryDefaults, memoryStages, MOST_OBJECTS } from "./model.js";
import { numbered, questionPanel } from "./question.js";
import { memoryPanel, stagesPanel } from "./stages.js";
import { spritePicture } from "../sprites.js";
import { button, numeral, select, slider } from "../widgets.js";

const SIZES = [0.45, 0.65, 0.85, 1.1];
const PLACES = [[-1, 0], [1, 0], [0, -1], [0, 1]];
const FEW = 6; // objects, of which nothing is said as long as all is right
const BAR = 44; // the height of a weight of one, in pixels

/** States worth a look, by name: changes to where the room starts. */
const STORIES = [
  { name: "Figure 1", change: {} },
  { name: "Two matches", change: { objects: [[0, 0, 3, 0], [1, 1, 3, 1], [2, 1, 1, 2]], selected: 2 } },
  { name: "No match", change: { matches: [[1, 3]] } },
  {
    name: "Conjunction",
    change: { objects: [[0, 0, 3, 0], [1, 1, 3, 1], [2, 1, 1, 2], [3, 2, 1, 3]], matches: [[1, 1], [2, 1]], selected: 2 },
  },
  { name: "Another role", change: { target: 2, bound: 3, map: "next" } },
  { name: "Overlap", change: { overlap: 0.3 } },
  {
    name: "Crowded",
    change: { overlap: 0.3, objects: [[1, 1, 3, 1], [0, 0, 3, 0], [0, 2, 1, 2], [0, 3, 2, 3], [0, 0, 0, 2], [0, 2, 3, 3]], selected: 0 },
  },
];

export const memoryRoom = {
  key: "memory",
  title: "Memory and attention",
  defaults: memoryDefaults,
  check: memoryChecked,
  render(place, state, update, data) {
    const stages = memoryStages(state, data);
    place.append(
      introduction(state, update, data),
      element("div", { class: "memory-top" }, objectsPanel(state, stages, update, data), questionPanel(state, stages, update, data)),
      element(
        "div",
        { class: "memory-stages" },
        memoryPanel(state, stages, data),
        stagesPanel(state, stages, data),
      ),
      capacityPanel(state, update),
    );
  },
};

function introduction(state, update, data) {
  const usual = memoryDefaults(data);
  const same = (change) => JSON.stringify({ ...usual, ...change, selected: 0 }) === JSON.stringify({ ...state, selected: 0 });
  return element(
    "div",
    { class: "intro" },
    element(
      "p",
      {},
      "Objects are stored in one memory, all at once. A question finds an object by what it has in one role, and reads what it has in another. ",
      "Change anything; every number is computed here.",
    ),
    element(
      "div",
      { class: "stories", role: "group", "aria-label": "Examples" },
      STORIES.map(({ name, change }) =>
        button({ key: `story-${name}`, label: name, pressed: same(change), onClick: () => update({ ...usual, ...change }) }),
      ),
    ),
  );
}

/** Names of fillers of an object, in the order in which one says them. */
export function describedObject([shape, colour, size, position], { fillers }) {
  return `${fillers[2][size]} ${fillers[1][colour]} ${fillers[0][shape]}, ${fillers[3][position]}`;
}

/** An object of the room as `spritePicture` takes it. */
export function asSprite([shape, colour, size, position], { fillers }) {
  const [x, y] = PLACES[position];
  return { shape: fillers[0][shape], colour: fillers[1][colour], scale: SIZES[size], x, y };
}

function objectsPanel(state, stages, update, data) {
  const isFull = state.objects.length >= MOST_OBJECTS;
  const add = (one) => update(({ objects }) => ({ objects: [...objects, one], selected: objects.length }));
  const random = () => seeded(state.seed * 1009 + state.objects.length);
  const { truth } = stages;
  return element(
    "section",
    { class: "panel objects" },
    element("h3", {}, "Objects", element("span", { class: "section" }, "3.1")),
    element("div", { class: "equation" }, equation("*O_s = ∑_j *r_j ⊗ *f_j")),
    element(
      "div",
      { class: state.objects.length > 8 ? "cards many" : "cards" },
      state.objects.map((one, s) => objectCard(one, s, state, stages, update, data)),
      state.objects.length ? null : element("p", { class: "note" }, "The memory is empty."),
    ),
    element(
      "p",
      { class: "note legend" },
      element("span", { class: "key sum" }), " weight of the sum, ",
      element("span", { class: "key softmax" }), " of the softmax",
    ),
    editor(state, update, data),
    element(
      "div",
      { class: "actions" },
      button({ key: "add", label: "Add", disabled: isFull, onClick: () => add(state.objects[state.selected] ?? data.objects[0]) }),
      button({ key: "random", label: "Add a random one", disabled: isFull, onClick: () => add(data.fillers.map(anyOf(random()))) }),
      button({
        key: "crowd",
        label: "Add until recall fails",
        title: "Adds random objects that have neither what is asked for nor what is answered, until the sum names a wrong filler",
        disabled: isFull || truth.answers.length === 0,
        onClick: () => update((now) => ({ objects: crowded(now, data, seeded(now.seed * 1009 + now.objects.length)), seed: now.seed + 1 })),
      }),
      button({
        key: "remove",
        label: "Remove",
        disabled: state.objects.length === 0,
        onClick: () => update(({ objects, selected }) => ({ objects: objects.filter((_, s) => s !== selected) })),
      }),
    ),
    crowdNote(state, stages),
  );
}

function anyOf(random) {
  return (names) => Math.floor(random() * names.length);
}

function crowdNote(state, { sum, softmax, truth }) {
  if (truth.answers.length === 0 || (state.objects.length < FEW && isRight(sum, truth))) return null;
  const count = state.objects.length;
  const word = (part) => (isRight(part, truth) ? "right" : "wrong");
  const reason = state.overlap === 0 ? " Orthogonal fillers do not disturb each other: raise the overlap." : "";
  return element("p", { class: "note", role: "status" }, `With ${count} objects the sum is ${word(sum)}, the softmax is ${word(softmax)}.${isRight(sum, truth) ? reason : ""}`);
}

function objectCard(one, s, state, stages, update, data) {
  const isMatch = stages.truth.matching.includes(s);
  const weights = [stages.sum.weights[s], stages.softmax.weights[s]];
  const words = describedObject(one, data);
  return element(
    "button",
    {
      type: "button",
      class: isMatch ? "card match" : "card",
      "data-key": `object-${s}`,
      "aria-pressed": String(s === state.selected),
      "aria-label": `Object ${s + 1}: ${words}. Weight of the sum ${numeral(weights[0])}, of the softmax ${numeral(weights[1])}.`,
      title: words,
      onclick: () => update({ selected: s }),
    },
    spritePicture([asSprite(one, data)], { label: words, size: 84 }),
    element("span", { class: "card-name" }, element("i", {}, "O"), element("sub", {}, s + 1)),
    element(
      "span",
      { class: "weights" },
      ["sum", "softmax"].map((name, k) =>
        element(
          "span",
          { class: "weight" },
          element("span", { class: `column ${name}`, style: `height:${Math.max(1, BAR * Math.min(1, Math.abs(weights[k])))}px` }),
          element("span", { class: "number", "data-weight": `${name}.${s}`, "data-value": weights[k] }, numeral(weights[k])),
        ),
      ),
    ),
  );
}

function editor(state, update, data) {
  const { selected, objects } = state;
  if (!objects.length) return null;
  const change = (role) => (value) =>
    update((now) => ({ objects: now.objects.map((one, s) => (s === selected ? one.with(role, Number(value)) : one)) }));
  return element(
    "fieldset",
    { class: "editor" },
    element("legend", {}, element("i", {}, "O"), element("sub", {}, selected + 1), " has"),
    element(
      "div",
      { class: "fields" },
      data.roles.map((role, k) =>
        select({ key: `edit-${role}`, label: role, options: numbered(data.fillers[k]), value: objects[selected][k], onChange: change(k) }),
      ),
    ),
  );
}

function capacityPanel(state, update) {
  const curve = capacityCurve(state);
  const first = (name) => curve.find((point) => point[name] < 0.9)?.count;
  const said = (name, title) => (first(name) ? `${title} falls below 90 % at ${first(name)} objects` : `${title} stays above 90 % up to ${curve.at(-1).count} objects`);
  return element(
    "section",
    { class: "panel capacity" },
    element("h3", {}, "Capacity: how many objects can be told apart"),
    element(
      "div",
      { class: "capacity-parts" },
      element(
        "div",
        { class: "scroll", tabindex: 0 },
        lineChart({
          key: "capacity", at: curve.map(({ count }) => count), xTitle: "objects in the memory", yTitle: "right answers", width: 640, height: 270,
          label: `Share of right answers against the number of objects. ${said("sum", "The sum")}; ${said("softmax", "the softmax")}.`,
          lines: [
            { name: "softmax", values: curve.map((point) => point.softmax), class: "softmax" },
            { name: "sum", values: curve.map((point) => point.sum), class: "sum" },
          ],
        }),
      ),
      element(
        "div",
        {},
        element("div", { class: "equation" }, equation("*f = ∑_s ( *k^{⊤} *k_s ) *v_s")),
        element("p", {}, "Here fillers are random unit vectors. Each object has a key and a value; all are stored, each is asked for by its key, and what is read must be most like its own value."),
        element("p", { role: "status" }, `${said("sum", "The sum")}; ${said("softmax", "the softmax")}.`),
        element(
          "div",
          { class: "fields" },
          slider({ key: "dimension", label: "numbers of a filler", min: 2, max: 64, step: 2, value: state.dimension, shown: String(state.dimension), onInput: (dimension) => update({ dimension }) }),
          button({ key: "draw", label: "Draw again", onClick: () => update(({ seed }) => ({ seed: seed + 1 })) }),
        ),
        element("p", { class: "note" }, "Overlap and temperature are those of the question above. With overlap, keys share a direction."),
      ),
    ),
  );
}
