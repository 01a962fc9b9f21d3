// Sequences: pairs of keys and values, a question, and what trained memories answer.

import { element } from "../dom.js";
import { softmax, tensor } from "../tensors.js";
import { storedPairs } from "./models.js";
import { drawnSequence, fewerPairs, isNewPairing, keyName, MOST_PAIRS, pairsOf, pairsText, partName, valueName, wantedFor } from "./tasks.js";
import { keyPlane, pairChips, planeLegend, recalledStrip, stateBars, swatch, topValues, valueChip, weightStrip } from "./views.js";
import { badge, button, choice, leftOut, panel, select } from "../widgets.js";

const WEIGHT_WORDS = {
  match: "Bars show how well each pair matches the query.",
  share: "Bars show how much of each pair's value is in what is read, after later pairs corrected or replaced it.",
};
const answered = new Map(); // what memories make of the newest sequences

export const sequencesRoom = {
  key: "sequences",
  title: "Sequences",
  defaults: (data) => startOf(data, 0),
  check: checkedSequence,
  render(place, state, update, data) {
    const task = data.tasks[state.task];
    const pairs = pairsOf(state.pairs, task);
    const wanted = wantedFor(task, pairs, state.query);
    const answers = task.models.map((model) => answersOf(model, task, pairs, state));
    place.append(
      sequenceIntroduction(state, update, data),
      element(
        "div",
        { class: "sequence-top" },
        sequencePanel(task, pairs, state, update),
        askedPanel(task, pairs, wanted, answers, state, update),
      ),
      answersPanel(task, pairs, wanted, answers, state, update),
      statePanel(task, pairs),
      leftOut(data.left_out) ?? "",
    );
  },
};

function startOf(data, number) {
  const task = data.tasks[number];
  const chosen = Math.max(0, wantedFor(task, task.example, task.query).places.at(-1) ?? 0);
  return { task: number, pairs: pairsText(task.example), query: task.query, chosen, drawn: "any", show: "match" };
}

/** A state that can be drawn; what does not fit the task is as at its start. */
function checkedSequence(state, data) {
  const number = Number.isInteger(state.task) && data.tasks[state.task] ? state.task : 0;
  const [task, start] = [data.tasks[number], startOf(data, number)];
  const pairs = pairsOf(state.pairs, task);
  if (pairs === null) return start;
  const isPart = (part) => Number.isInteger(part) && part >= 0 && part < task.keys;
  const isQuery = Array.isArray(state.query) && state.query.length === task.fields && state.query.every(isPart);
  return {
    task: number,
    pairs: pairsText(pairs),
    query: isQuery ? state.query : pairs[0].slice(0, task.fields),
    chosen: Number.isInteger(state.chosen) && state.chosen >= 0 ? Math.min(state.chosen, pairs.length - 1) : 0,
    drawn: state.drawn === "known" ? "known" : "any",
    show: state.show === "share" ? "share" : "match",
  };
}

/** What a memory answers to the query and to every pair of the sequence. */
function answersOf(model, task, pairs, state) {
  const name = `${state.task}/${model.digest}/${state.pairs}`;
  if (!answered.has(name)) {
    if (answered.size > 60) answered.clear();
    const ask = storedPairs(model, task, pairs);
    const right = pairs.map((pair, place) => {
      const { places, value } = wantedFor(task, pairs, pair);
      return places.at(-1) === place ? largestOf(ask(pair.slice(0, task.fields)).output) === value : null;
    });
    answered.set(name, { ask, right });
  }
  const { ask, right } = answered.get(name);
  const answer = ask(state.query);
  const numbers = task.are_probabilities ? [...softmax(tensor([answer.output.length], answer.output)).data] : answer.output;
  return { ...answer, numbers, value: largestOf(answer.output), right };
}

function largestOf(numbers) {
  return numbers.indexOf(numbers.reduce((a, b) => Math.max(a, b), -Infinity));
}

function sequenceIntroduction(state, update, data) {
  const options = data.tasks.map(({ title }, value) => ({ value, label: title }));
  return element(
    "div",
    { class: "intro" },
    element(
      "p",
      {},
      "Pairs of a key and a value come one after another, then one key is asked for. Every memory below was trained on this task and answers here, in the page. ",
      data.tasks[state.task].held_out
        ? "Change the sequence, make it longer, and ask for pairings that training never showed."
        : "Change the sequence, make it longer, and write keys again: the last value counts.",
    ),
    select({ key: "task", label: "Task", options, value: state.task, onChange: (value) => update(startOf(data, Number(value))) }),
  );
}

function sequencePanel(task, pairs, state, update) {
  const isKnown = state.drawn === "known";
  const take = (fresh, change = {}) => update({ pairs: pairsText(fresh), ...change });
  const chosenAt = (fresh) => Math.max(0, wantedFor(task, fresh, state.query).places.at(-1) ?? 0);
  const resize = (count) => {
    const fresh = count > pairs.length ? drawnSequence(task, count, isKnown, `${state.pairs}/${count}`, pairs) : fewerPairs(task, pairs, count, state.query);
    take(fresh, { chosen: chosenAt(fresh) });
  };
  const renew = () => {
    const fresh = drawnSequence(task, pairs.length, isKnown, `${state.pairs}/new`);
    const asked = Math.max(0, fresh.findIndex((pair) => isNewPairing(task, pair)));
    take(fresh, { chosen: asked, query: fresh[asked].slice(0, task.fields) });
  };
  const lengths = task.lengths.map((count) => ({ value: count, label: lengthName(task, count) }));
  return panel(
    { title: `Sequence: ${pairs.length} ${pairs.length === 1 ? "pair" : "pairs"}` },
    element(
      "div",
      { class: "sequence-controls" },
      choice({ key: "length", label: "Length", options: lengths, value: pairs.length, onChange: (value) => resize(Number(value)) }),
      task.held_out
        ? choice({
            key: "drawn", label: "Pairs that are drawn", value: state.drawn, onChange: (value) => update({ drawn: value }),
            options: [{ value: "any", label: "any" }, { value: "known", label: "as in training" }],
          })
        : null,
      element(
        "div",
        { class: "actions" },
        button({ key: "new", label: "New sequence", onClick: renew }),
        button({
          key: "add", label: "Add a pair", disabled: pairs.length >= MOST_PAIRS,
          onClick: () => take([...pairs, addedPair(task, pairs, isKnown, state)], { chosen: pairs.length }),
        }),
      ),
    ),
    pairChips({
      task, pairs, query: state.query, chosen: state.chosen,
      onChoose: (place) => update({ chosen: place, query: pairs[place].slice(0, task.fields) }),
    }),
    element(
      "p",
      { class: "note" },
      task.held_out ? "A dashed frame: training never shows this pairing. " : null,
      "A press on a pair asks for its key.",
    ),
    pairEditor(task, pairs, state, take),
  );
}

/** A pair with another key, or with any key where all are there. */
function addedPair(task, pairs, isKnown, state) {
  const kept = new Set(pairs.map(String));
  const fresh = drawnSequence(task, pairs.length + 1, isKnown, `${state.pairs}/add`, pairs).find((pair) => !kept.has(String(pair)));
  return fresh ?? pairs[0];
}

function lengthName(task, count) {
  const times = count / task.trained_length;
  if (times === 1) return `${count}, as in training`;
  return times > 1 ? `${count} (${Number(times.toFixed(1))}×)` : String(count);
}

function pairEditor(task, pairs, state, take) {
  const pair = pairs[state.chosen];
  const isAsked = pair.slice(0, task.fields).every((part, field) => part === state.query[field]);
  const change = (place, number) => {
    const fresh = pairs.map((one) => [...one]);
    fresh[state.chosen][place] = number;
    take(fresh, isAsked ? { query: fresh[state.chosen].slice(0, task.fields) } : {});
  };
  return element(
    "fieldset",
    { class: "editor" },
    element("legend", {}, `Pair ${state.chosen + 1}`),
    element(
      "div",
      { class: "pair-editor" },
      partSelects(task, "edit", "Key", pair, change),
      select({
        key: "edit-value", label: "Value", options: numberedOptions(task.values, valueName), value: pair[task.fields],
        onChange: (value) => change(task.fields, Number(value)),
      }),
      button({
        key: "remove", label: "Remove", disabled: pairs.length < 2,
        onClick: () => take(pairs.filter((_, place) => place !== state.chosen), { chosen: Math.max(0, state.chosen - 1) }),
      }),
    ),
  );
}

function numberedOptions(count, nameOf) {
  return Array.from({ length: count }, (_, value) => ({ value, label: nameOf(value) }));
}

function partSelects(task, key, label, numbers, change) {
  return Array.from({ length: task.fields }, (_, field) =>
    select({
      key: `${key}-${field}`, label: task.fields === 1 ? label : `${label}, part ${field + 1}`, value: numbers[field],
      options: numberedOptions(task.keys, (number) => partName(task, field, number)), onChange: (value) => change(field, Number(value)),
    }),
  );
}

function askedPanel(task, pairs, wanted, answers, state, update) {
  const ask = (query) => update({ query, chosen: wantedFor(task, pairs, query).places.at(-1) ?? state.chosen });
  const right = answers.filter(({ value }) => value === wanted.value).length;
  const isThere = wanted.value !== null;
  const plane = keyPlane({ task, pairs, query: state.query, onAsk: ask });
  return panel(
    { title: "Question" },
    element(
      "div",
      { class: "sequence-question" },
      element(
        "div",
        { class: "question-words" },
        element(
          "div",
          { class: "pair-editor" },
          partSelects(task, "ask", "Ask for", state.query, (field, number) => ask(state.query.map((part, place) => (place === field ? number : part)))),
        ),
        element(
          "p",
          { class: "asked", "data-figure": "wanted" },
          "Value of ", element("strong", {}, keyName(task, state.query)), "? ",
          isThere ? ["Right: ", valueChip(wanted.value)] : "It is not in the sequence: no answer is right.",
        ),
        element("p", { class: "question-badges", "data-figure": "badges" }, questionBadges(task, pairs, wanted, state)),
        isThere
          ? element("p", { "aria-live": "polite", "data-figure": "summary" }, `${right} of ${answers.length} memories answer ${valueName(wanted.value)}.`)
          : null,
      ),
      plane === null ? null : element("div", { class: "plane-place" }, plane, task.held_out ? planeLegend() : null),
    ),
  );
}

function questionBadges(task, pairs, wanted, state) {
  const said = [];
  const pair = wanted.value === null ? state.query : [...state.query, wanted.value];
  if (task.held_out) said.push(isNewPairing(task, pair) ? badge("new pairing: never in training", "fair") : badge("seen in training", "good"));
  if (wanted.places.length > 1) said.push(badge(`written ${wanted.places.length} times: the last value counts`, "plain"));
  if (wanted.places.length > 1 && task.drawn !== "replacement") said.push(badge("training has every key once", "fair"));
  if (pairs.length > task.trained_length) said.push(badge(`longer than in training (${task.trained_length})`, "plain"));
  return said;
}

function answersPanel(task, pairs, wanted, answers, state, update) {
  const differ = answers.some(({ match, share }) => match.some((row, head) => row.some((value, place) => value !== share[head][place])));
  const shown = differ ? state.show : "match";
  return panel(
    { title: "Answers", class: "sequence-answers" },
    element(
      "div",
      { class: "answers-top" },
      element(
        "p",
        { class: "note" },
        WEIGHT_WORDS[shown],
        " Orange is above zero, blue below; each memory has its own scale, and a row for each of several heads. ",
        "The marks below say which keys a memory recalls when it is asked for each of them.",
      ),
      differ
        ? choice({
            key: "show", label: "Weights", value: state.show, onChange: (value) => update({ show: value }),
            options: [{ value: "match", label: "match" }, { value: "share", label: "share in what is read" }],
          })
        : null,
    ),
    element("div", { class: "memories" }, task.models.map((model, number) => memoryCard(model, answers[number], task, pairs, wanted, state, shown))),
  );
}

function memoryCard(model, answer, task, pairs, wanted, state, shown) {
  const of = (right) => `${right.filter(Boolean).length} of ${right.length}`;
  const counted = answer.right.filter((one) => one !== null);
  const news = answer.right.filter((one, place) => one !== null && isNewPairing(task, pairs[place]));
  const recalled = `Recalls ${of(counted)} keys${news.length ? `, ${of(news)} new pairings` : ""}`;
  const isRight = answer.value === wanted.value;
  const verdict = wanted.value === null ? badge("no right answer", "plain") : badge(isRight ? "✓ right" : "✗ wrong", isRight ? "good" : "bad");
  const rounded = model.is_rounded ? "; weights rounded to 16 bits" : "";
  return element(
    "article",
    { class: "memory-card", "data-model": model.digest, "data-output": JSON.stringify(answer.output) },
    element(
      "header",
      {},
      element("h4", { title: `${model.label}; run ${model.digest}, ${model.steps} steps, seed ${model.seed}${rounded}` }, swatch(model), model.words),
      element("span", { class: "memory-said" }, valueChip(answer.value), " ", verdict),
    ),
    topValues(answer.numbers, wanted.value),
    element(
      "div",
      { class: "memory-weights" },
      weightStrip({ task, pairs, query: state.query, weights: answer[shown], key: `${shown}-${model.digest}`, label: `${model.words}: ${shown} of each pair` }),
      recalledStrip({ task, pairs, right: answer.right, key: `recalled-${model.digest}`, label: `${model.words}: ${recalled}` }),
      element("p", { class: "note", "data-recall": model.digest }, `${recalled}${rounded}.`),
    ),
  );
}

function statePanel(task, pairs) {
  return panel(
    {
      title: "What is kept of the sequence",
      note: "Numbers in the state of each memory after this sequence; the pale bar is that after the longest one. A constant state is the same at any length.",
    },
    stateBars({ models: task.models, count: pairs.length, longest: task.lengths[task.lengths.length - 1] }),
  );
}
