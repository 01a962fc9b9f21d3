// Recall tasks of pairs: names of keys and values, what training shows, right answers, and new sequences.

import { seeded } from "../memory/capacity.js";

/**
 * A task as rooms/sequences.py describes it. A pair is an array of numbers: the parts of the key, then the value.
 * @typedef {{fields: number, keys: number, values: number, lengths: number[], trained_length: number, drawn: string,
 *   density: number, are_probabilities: boolean, held_out: {columns: number[], table: Tensor}|null}} PairTask
 */

export const MOST_PAIRS = 600;

/** Pairs in a few letters, for the address. */
export function pairsText(pairs) {
  return pairs.map((pair) => pair.join(".")).join("_");
}

/** The pairs of a text; null if they are not pairs of this task. */
export function pairsOf(text, task) {
  const pairs = String(text).split("_").map((part) => part.split(".").map(Number));
  const isWhole = (number, count) => Number.isInteger(number) && number >= 0 && number < count;
  const fits = (pair) =>
    pair.length === task.fields + 1 && pair.every((number, place) => isWhole(number, place < task.fields ? task.keys : task.values));
  return pairs.length <= MOST_PAIRS && pairs.every(fits) ? pairs : null;
}

/** The name of one part of a key: letters for the first of two, numbers for the second. */
export function partName(task, field, number) {
  if (task.fields === 1) return `K${number + 1}`;
  if (field > 0) return String(number + 1);
  const letter = String.fromCharCode(65 + (number % 26));
  return number < 26 ? letter : `${letter}${Math.floor(number / 26)}'`;
}

/** The name of a key. */
export function keyName(task, key) {
  return Array.from({ length: task.fields }, (_, field) => partName(task, field, key[field])).join("");
}

/** The name of a key where there is little room. */
export function shortKeyName(task, key) {
  return task.fields === 1 ? String(key[0] + 1) : keyName(task, key);
}

/** The name of a value. */
export function valueName(value) {
  return `v${value + 1}`;
}

/** Whether a query asks for the key of a pair. */
export function hasKey(task, pair, query) {
  return Array.from({ length: task.fields }, (_, field) => pair[field] === query[field]).every(Boolean);
}

/** Whether training never shows such a pair. */
export function isNewPairing(task, pair) {
  if (!task.held_out) return false;
  const [row, column] = task.held_out.columns.map((place) => pair[place]);
  return row !== undefined && column !== undefined && task.held_out.table.data[row * task.held_out.table.shape[1] + column] === 1;
}

/** Where a key stands in a sequence, and its last value, which counts; null if it is not there. */
export function wantedFor(task, pairs, query) {
  const places = pairs.map((pair, place) => (hasKey(task, pair, query) ? place : -1)).filter((place) => place >= 0);
  return { places, value: places.length ? pairs[places[places.length - 1]][task.fields] : null };
}

/**
 * A sequence of so many pairs, in which those that are kept stand in their order among new ones. It has fewer pairs if
 * there are no more keys.
 * @param {boolean} isKnown whether new pairs are of a kind that training shows
 * @param {string} seed the same text gives the same pairs
 */
export function drawnSequence(task, count, isKnown, seed, kept = []) {
  const random = seeded(numberOf(seed));
  const fresh = PAIR_SOURCES[task.drawn](task, count - kept.length, isKnown, random, kept);
  const places = new Set(shuffled(fresh.length + kept.length, random).slice(0, kept.length));
  const [first, second] = [[...kept], [...fresh]];
  return Array.from({ length: kept.length + fresh.length }, (_, place) => (places.has(place) ? first : second).shift());
}

/** So many pairs of a sequence, with that of the query, in their order. */
export function fewerPairs(task, pairs, count, query) {
  const asked = wantedFor(task, pairs, query).places.slice(-1);
  const others = pairs.map((_, place) => place).filter((place) => !asked.includes(place));
  const taken = new Set([...asked, ...others].slice(0, count));
  return pairs.filter((_, place) => taken.has(place));
}

const PAIR_SOURCES = {
  /** Different pairings of few keys, as far as there are enough; any value. */
  pairings(task, count, isKnown, random, kept) {
    const side = Math.min(task.keys, Math.ceil(Math.sqrt((count + kept.length) / task.density)));
    const few = [0, 1].map((field) => {
      const used = new Set(kept.map((pair) => pair[field]));
      const others = shuffled(task.keys, random).filter((key) => !used.has(key));
      return new Set([...used, ...others.slice(0, Math.max(0, side - used.size))]);
    });
    const there = new Set(kept.map(([first, second]) => first * task.keys + second));
    const ranked = [];
    for (let number = 0; number < task.keys ** 2; number++) {
      const pair = [Math.floor(number / task.keys), number % task.keys];
      const isFew = few[0].has(pair[0]) && few[1].has(pair[1]);
      const rank = random() + (isFew ? 0 : 1);
      if (!there.has(number) && !(isKnown && isNewPairing(task, pair))) ranked.push({ pair, rank });
    }
    ranked.sort((a, b) => a.rank - b.rank);
    const first = isKnown || kept.some((pair) => isNewPairing(task, pair)) ? -1 : ranked.findIndex(({ pair }) => isNewPairing(task, pair));
    if (first > 0) ranked.unshift(...ranked.splice(first, 1)); // at least one new pairing
    return ranked.slice(0, count).map(({ pair }) => [...pair, below(task.values, random)]);
  },
  /** Every key at most once, each with a value of its own. */
  once(task, count, isKnown, random, kept) {
    const free = (size, place) => shuffled(size, random).filter((number) => !kept.some((pair) => pair[place] === number));
    const [keys, values] = [free(task.keys, 0), free(task.values, 1)];
    return keys.slice(0, count).map((key, place) => [key, values[place] ?? below(task.values, random)]);
  },
  /** Any key and any value, as often as it comes. */
  replacement(task, count, isKnown, random) {
    return Array.from({ length: count }, () => [below(task.keys, random), below(task.values, random)]);
  },
  /** Every key at most once, with values of the kinds that training shows or of any kind. */
  kinds(task, count, isKnown, random, kept) {
    const keys = shuffled(task.keys, random).filter((key) => !kept.some((pair) => pair[0] === key));
    return keys.slice(0, count).map((key) => {
      const values = Array.from({ length: task.values }, (_, value) => value).filter((value) => !isKnown || !isNewPairing(task, [key, value]));
      return [key, values[below(values.length, random)]];
    });
  },
};

function below(count, random) {
  return Math.min(count - 1, Math.floor(random() * count));
}

function shuffled(count, random) {
  const ranks = Array.from({ length: count }, () => random());
  return ranks.map((_, place) => place).sort((a, b) => ranks[a] - ranks[b]);
}

/** A whole number of a text: FNV-1a. */
function numberOf(text) {
  let hash = 0x811c9dc5;
  for (let place = 0; place < text.length; place++) hash = Math.imul(hash ^ text.charCodeAt(place), 0x01000193);
  return hash >>> 0;
}
