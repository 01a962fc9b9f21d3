// Composition: a reference, a transform and an action, and what each trained model answers.

import { modelAnswer } from "./answers.js";
import { insidePanels, shownHeads } from "./inside.js";
import { answerOf } from "./models.js";
import { factorPicture, factorPlane, inputCard, kindNotice } from "./question.js";
import { bestAnswer, drawQuestion, encodeFactors, errorsOf, kindOf, substituteFactors } from "./task.js";
import { element } from "../dom.js";
import { button, checkbox, choice, leftOut, panel, select } from "../widgets.js";

const SPLIT_WORDS = {
  square_red: "red squares",
  square_pos: "squares on the right",
  scale_pos: "large objects on the right",
};
const INTERACTION_WORDS = {
  none: "none",
  shape_col: "categorical: shape and colour",
  scale_pos: "numerical: scale and position",
};
const DRAWN_WORDS = { train: "training", ood_reference: "Test 1", ood_transform: "Test 2", ood_composition: "Test 3" };
const FIRST_QUESTION = { reference: [2, 4, 5, 9, 20, 0], transform: [0, 2, 0, 24, 8, 1], action: "shape" };

/** The worlds of a split and an interaction; there are several if their other options or seeds differ. */
function worldsOf(data, { split, interaction }) {
  return data.worlds.map((world, number) => ({ world, number })).filter((one) => one.world.split === split && one.world.interaction === interaction);
}

/** The numbers of training pairs of the models of a world, the fewest first. */
function sizesOf(data, number) {
  return distinctValues(data.models.filter((model) => model.world === number).map((model) => model.pairs)).sort((a, b) => a - b);
}

function modelsOf(data, number, pairs) {
  return data.models.filter((model) => model.world === number && model.pairs === pairs);
}

function distinctValues(values) {
  return [...new Set(values)];
}

/** A world in words: what is unusual about it. */
function variantWords({ world }) {
  const options = Object.entries(world.options).map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`);
  return [...options, ...(world.seed === null ? [] : [`seed ${world.seed}`])].join(", ") || "usual options";
}

function validFactors(world, factors) {
  return factors.length === world.columns.length && factors.every((value, k) => Number.isInteger(value) && value >= 0 && value < world.columns[k].values.length);
}

/** A state that can be shown, nearest to the one given. */
function checkedState(state, data) {
  const split = data.worlds.some((world) => world.split === state.split) ? state.split : data.worlds[0].split;
  const interactions = data.worlds.filter((world) => world.split === split).map((world) => world.interaction);
  const interaction = interactions.includes(state.interaction) ? state.interaction : interactions[0];
  const worlds = worldsOf(data, { split, interaction });
  const variant = worlds[state.variant] ? state.variant : 0;
  const { world, number } = worlds[variant];
  const action = world.actions.some((one) => one.name === state.action) ? state.action : world.actions[0].name;
  const sizes = sizesOf(data, number);
  const pairs = sizes.includes(state.pairs) ? state.pairs : sizes.at(-1);
  const models = modelsOf(data, number, pairs);
  const inside = models.some((model) => model.name === state.inside) ? state.inside : models[0].name;
  const [reference, transform] = ["reference", "transform"].map((part) =>
    validFactors(world, state[part]) ? state[part] : world.columns.map((column, k) => Math.min(FIRST_QUESTION[part][k] ?? 0, column.values.length - 1)),
  );
  return { ...state, split, interaction, variant, pairs, action, inside, reference, transform, heads: state.heads === true };
}

function settingPanel(data, state, update) {
  const splits = distinctValues(data.worlds.map((world) => world.split));
  const interactions = distinctValues(data.worlds.filter((world) => world.split === state.split).map((world) => world.interaction));
  const variants = worldsOf(data, state);
  const sizes = sizesOf(data, variants[state.variant].number);
  const named = (values, said) => values.map((value) => ({ value, label: said[value] ?? value }));
  return element(
    "div",
    { class: "fields composition-cell" },
    select({ key: "split", label: "never in training", options: named(splits, SPLIT_WORDS), value: state.split, onChange: (split) => update({ split }) }),
    select({
      key: "interaction",
      label: "interaction of factors",
      options: named(interactions, INTERACTION_WORDS),
      value: state.interaction,
      onChange: (interaction) => update({ interaction }),
    }),
    variants.length > 1
      ? select({
          key: "variant",
          label: "task",
          options: variants.map((one, value) => ({ value, label: variantWords(one) })),
          value: state.variant,
          onChange: (value) => update({ variant: Number(value) }),
        })
      : null,
    sizes.length > 1
      ? select({
          key: "pairs",
          label: "training pairs",
          options: sizes.map((size) => ({ value: size, label: size.toLocaleString("en-US") })),
          value: state.pairs,
          onChange: (value) => update({ pairs: Number(value) }),
        })
      : null,
  );
}

/** Buttons that ask a question of training or of a test. */
function drawButtons(world, state, update) {
  const start = [...state.reference, ...state.transform].reduce((sum, value) => Math.imul(sum, 31) + value, 7) >>> 0;
  return element(
    "div",
    { class: "field" },
    element("span", { class: "label" }, "ask a question of"),
    element(
      "div",
      { class: "choice" },
      Object.keys(world.conditions).map((condition) =>
        button({
          key: `draw-${condition}`,
          label: DRAWN_WORDS[condition] ?? condition,
          onClick: () => {
            const found = drawQuestion(world, condition, start);
            if (found) update({ reference: found.reference, transform: found.transform, action: world.actions[found.action].name });
          },
        }),
      ),
    ),
  );
}

function modelNote(model) {
  const pairs = model.pairs.toLocaleString("en-US");
  return `${model.label}; ${pairs} training pairs, seed ${model.seed}${model.bits < 32 ? `, weights of ${model.bits} bits` : ""}`;
}

export const compositionRoom = {
  key: "composition",
  title: "Composition",

  defaults(data) {
    const [first] = data.worlds;
    const inside = data.models.some((model) => model.world === 0 && model.name === "tpr") ? "tpr" : data.models[0].name;
    return checkedState({ split: first.split, interaction: first.interaction, variant: 0, pairs: sizesOf(data, 0)[0], inside, heads: false, ...FIRST_QUESTION }, data);
  },

  check: checkedState,

  render(place, state, update, data) {
    const { world, number } = worldsOf(data, state)[state.variant];
    const { tables } = data;
    const action = world.actions.findIndex((one) => one.name === state.action);
    const { reference, transform } = state;
    const factors = substituteFactors(world, reference, transform, action);
    const [first, second, target] = [reference, transform, factors].map((one) => encodeFactors(world, tables, one));
    const best = bestAnswer(world, tables, reference, transform, action);
    const kind = kindOf(world, reference, transform, action);
    const floor = errorsOf(world, best.answer, target).loss;
    const models = modelsOf(data, number, state.pairs);
    const answers = models.map((model) => ({ model, ...answerOf(model, first, second, action) }));
    const changed = (part) => (column, value) =>
      update((newest) => ({ [part]: newest[part].map((own, k) => (k === column ? value : own)) }));
    const acted = world.actions[action].columns;
    place.append(
      element("h2", {}, "What do trained models answer for a combination that they have never met?"),
      element("p", {}, "The answer is the reference with one factor of the transform; bars at the left mark what it takes. Dashed and orange values make an object that training never shows."),
      element(
        "div",
        { class: "composition-setting" },
        settingPanel(data, state, update),
        choice({ key: "action", label: "take from the transform", options: world.actions.map((one) => one.name), value: state.action, onChange: (name) => update({ action: name }) }),
        drawButtons(world, state, update),
      ),
      element(
        "div",
        { class: "composition-question" },
        inputCard(world, "reference", "Reference", reference, acted, changed("reference")),
        inputCard(world, "transform", "Transform", transform, acted, changed("transform")),
        panel(
          { title: "This question" },
          element(
            "div",
            { class: "composition-sum" },
            factorPicture(world, reference, "Reference", 64),
            element("span", {}, "+ ", element("b", {}, state.action), " of"),
            factorPicture(world, transform, "Transform", 64),
            element("span", {}, "="),
            factorPicture(world, factors, "Target", 64),
          ),
          kindNotice(world, kind, best.unknown, floor),
          factorPlane(world, { reference, transform, answer: factors }),
          element("p", { class: "note" }, "R reference, T transform, A answer; hatched: held out of training."),
        ),
      ),
      element("h2", {}, "Answers"),
      element(
        "div",
        { class: "model-answers" },
        modelAnswer(world, tables, { key: "target", title: "Target", note: "what should be answered", answer: target, target }, true),
        best.unknown.length
          ? modelAnswer(world, tables, { key: "best", title: "Best guess", note: "knows all that can be known", answer: best.answer, target, floor })
          : null,
        answers.map(({ model, output }) =>
          modelAnswer(world, tables, { key: model.name, title: model.words, note: modelNote(model), answer: output, target, floor }),
        ),
      ),
      insideOf(world, answers, action, state, update),
      leftOut(data.left_out) ?? "",
    );
  },
};

/** The part of the room that looks inside one model. */
function insideOf(world, answers, action, state, update) {
  const { model, stages } = answers.find((one) => one.model.name === state.inside);
  const hasMore = stages.some((stage) => stage.heads && shownHeads(stage, false).length < stage.heads.length);
  return element(
    "section",
    { class: "composition-inside" },
    element("h2", {}, "Inside one model"),
    element(
      "div",
      { class: "composition-setting" },
      choice({ key: "inside", label: "model", options: answers.map((one) => ({ value: one.model.name, label: one.model.words })), value: model.name, onChange: (inside) => update({ inside }) }),
      hasMore || state.heads ? checkbox({ key: "heads", label: "all heads", value: state.heads, onChange: (heads) => update({ heads }) }) : null,
    ),
    stages.length ? insidePanels(world, model, stages, action, state.heads) : element("p", { class: "note" }, "One linear map: there is nothing between inputs and answer."),
  );
}
