// The question of the room "Memory and attention", and its two answers.

import { element } from "../dom.js";
import { isRight } from "./model.js";
import { attributePicture } from "../sprites.js";
import { badge, button, numeral, select, slider } from "../widgets.js";

/** Choices by number. */
export function numbered(names) {
  return names.map((label, value) => ({ value, label }));
}

/** What is asked, as a sentence and by controls, and what is answered. */
export function questionPanel(state, stages, update, data) {
  const pair = ([role, filler], k) => {
    const change = (patch) => update(({ matches }) => ({ matches: matches.with(k, patch) }));
    return [
      select({ key: `match-role-${k}`, label: k ? "and role" : "match role", options: numbered(data.roles), value: role, onChange: (value) => change([Number(value), filler]) }),
      select({ key: `match-filler-${k}`, label: "match filler", options: numbered(data.fillers[role]), value: filler, onChange: (value) => change([role, Number(value)]) }),
    ];
  };
  const isPair = state.matches.length === 2;
  const free = data.roles.findIndex((_, role) => role !== state.matches[0][0] && role !== state.target);
  return element(
    "section",
    { class: "panel question" },
    element("h3", {}, "Question"),
    element("p", { class: "asked" }, asked(state, data)),
    element(
      "div",
      { class: "fields" },
      pair(state.matches[0], 0),
      button({
        key: "conjunction",
        label: "and ...",
        title: "A conjunction: match a second pair of role and filler",
        pressed: isPair,
        onClick: () => update(({ matches }) => ({ matches: isPair ? [matches[0]] : [matches[0], [free, state.objects[state.selected]?.[free] ?? 0]] })),
      }),
      isPair ? pair(state.matches[1], 1) : null,
    ),
    element(
      "div",
      { class: "fields three" },
      select({ key: "target", label: "target role", options: numbered(data.roles), value: state.target, onChange: (value) => update({ target: Number(value) }) }),
      select({ key: "map", label: "filler map", options: data.maps.map(({ name }) => ({ value: name, label: mapWords(name, data.fillers[state.target]) })), value: state.map, onChange: (value) => update({ map: value }) }),
      select({ key: "bound", label: "new role", options: numbered(data.roles), value: state.bound, onChange: (value) => update({ bound: Number(value) }) }),
    ),
    element(
      "div",
      { class: "fields two" },
      slider({ key: "overlap", label: "filler overlap", min: 0, max: 0.9, step: 0.05, value: state.overlap, shown: numeral(state.overlap), onInput: (overlap) => update({ overlap }) }),
      slider({ key: "temperature", label: "softmax temperature", min: 0.02, max: 1, step: 0.02, value: state.temperature, shown: numeral(state.temperature), onInput: (temperature) => update({ temperature }) }),
    ),
    element(
      "div",
      { class: "answers", role: "status", "aria-live": "polite" },
      answerCard("sum", "Sum (the paper's)", state, stages, data),
      answerCard("softmax", "Softmax (sharpened)", state, stages, data),
    ),
    anotherRole(state, stages, data),
  );
}

function asked({ matches, target, map, bound }, { roles, fillers }) {
  const conditions = matches.map(([role, filler]) => [element("b", {}, roles[role]), " is ", element("b", {}, fillers[role][filler])]);
  const joined = conditions.flatMap((one, k) => (k ? [" and whose ", ...one] : one));
  const mapped = map === "identity" ? "" : `, map it by “${mapWords(map, fillers[target])}”`;
  return ["Find the object whose ", joined, ", read its ", element("b", {}, roles[target]), mapped, ", and bind it to the role ", element("b", {}, roles[bound]), "."];
}

/** A map in the words of a role's fillers. */
function mapWords(name, fillers) {
  return { next: "next filler", swap: `swap ${fillers[0]} and ${fillers.at(-1)}` }[name] ?? name;
}

function anotherRole({ target, bound }, { sum }, { roles, fillers }) {
  if (target === bound || sum.answer === null) return null;
  const words = (role) => `“${fillers[role][sum.answer]}” as ${roles[role]}`;
  return element("p", { class: "note" }, `All roles share one space of fillers: the same vector means ${words(target)} and ${words(bound)}.`);
}

function answerCard(name, title, state, stages, data) {
  const part = stages[name];
  const { matching, answers } = stages.truth;
  const words = part.answer === null ? "no single answer" : data.fillers[state.bound][part.answer];
  const verdicts = () => {
    if (matching.length === 0) return ["no object matches", "plain"];
    if (answers.length === 0) return ["nothing to name", "plain"];
    if (isRight(part, stages.truth)) return ["right", "good"];
    return part.answer === null ? ["undecided", "fair"] : ["wrong", "bad"];
  };
  return element(
    "div",
    { class: `answer ${name}` },
    attributePicture(data.roles[state.bound], part.answer === null ? null : words, { label: words, size: 56 }),
    element("div", {}, element("span", { class: "label" }, title), element("strong", { "data-answer": name }, words), badge(...verdicts())),
  );
}
