/**
 * The composition task: factors to objects and back, what is held out, and what can be known.
 *
 * Every fact comes from Python as a table: the fillers of each role, the held-out combinations of the split, and which
 * rows training shows. Here they are only looked up.
 *
 * @typedef {{name: string, values: number[], labels: string[]}} Column
 * @typedef {{name: string, columns: number[], table: number, guess: number[]|null, known: number[]|null,
 *   scored: boolean}} Role
 * @typedef {{split: string, interaction: string, columns: Column[], actions: {name: string, columns: number[]}[],
 *   roles: Role[], held_out: {columns: number[], table: number[]}, conditions: Object<string, (boolean|null)[]>,
 *   require_change: boolean, noise: number, floors: Object<string, {linear: number, knowable: number}>}} World
 * @typedef {number[]} Factors a class number for each column of the grid
 * @typedef {{shape: number[], data: Float64Array}} Matrix
 */

/** Position of a combination of classes in a table over some columns, the last changing fastest. */
export function rowOf(world, columns, factors) {
  return columns.reduce((row, column) => row * world.columns[column].values.length + factors[column], 0);
}

/** Rows of the tables that an object has, one for each role. @returns {number[]} */
export function rowsOf(world, factors) {
  return world.roles.map((role) => rowOf(world, role.columns, factors));
}

/** The object with these factors. @returns {Matrix} [r f] */
export function encodeFactors(world, tables, factors) {
  return fillersAt(world, tables, rowsOf(world, factors));
}

/** The object with these rows of the tables. @returns {Matrix} [r f] */
function fillersAt(world, tables, rows) {
  const width = tables[world.roles[0].table].shape[1];
  const data = new Float64Array(world.roles.length * width);
  world.roles.forEach((role, j) => {
    const { data: fillers } = tables[role.table];
    for (let f = 0; f < width; f += 1) data[j * width + f] = fillers[rows[j] * width + f];
  });
  return { shape: [world.roles.length, width], data };
}

/** The row of a role's table that is nearest to the filler of an object. */
export function nearestRow(world, tables, object, j) {
  const { shape, data } = tables[world.roles[j].table];
  const [count, width] = shape;
  let best = 0;
  let least = Infinity;
  for (let k = 0; k < count; k += 1) {
    let distance = 0;
    for (let f = 0; f < width; f += 1) {
      const fillerEntry = data[k * width + f];
      distance += fillerEntry * (fillerEntry / 2 - object.data[j * width + f]);
    }
    if (distance < least) [best, least] = [k, distance];
  }
  return best;
}

/** The role that a column is read from: the one that depends on it and on the fewest others. */
function readerOf(world, column) {
  let best = -1;
  world.roles.forEach((role, j) => {
    const depends = role.columns.includes(column);
    if (depends && (best < 0 || role.columns.length < world.roles[best].columns.length)) best = j;
  });
  return best;
}

/** The factors whose fillers are nearest to those of an object. @returns {Factors} */
export function decodeObject(world, tables, object) {
  const nearest = new Map();
  return world.columns.map((_, column) => {
    const reader = readerOf(world, column);
    if (!nearest.has(reader)) nearest.set(reader, nearestRow(world, tables, object, reader));
    let row = nearest.get(reader);
    for (const other of [...world.roles[reader].columns].reverse()) {
      const size = world.columns[other].values.length;
      if (other === column) return row % size;
      row = Math.floor(row / size);
    }
    return 0;
  });
}

/** The reference, with the acted factor of the transform. @returns {Factors} */
export function substituteFactors(world, reference, transform, action) {
  const { columns } = world.actions[action];
  return reference.map((value, column) => (columns.includes(column) ? transform[column] : value));
}

/** Whether training never shows an object. */
export function isHeldOut(world, factors) {
  return world.held_out.table[rowOf(world, world.held_out.columns, factors)] === 1;
}

/**
 * What kind of question this is.
 *
 * @returns {{reference: boolean, transform: boolean, target: boolean, changes: boolean, condition: string|null}}
 *   what is held out, whether the acted factor changes, and the condition of the task that has such questions
 */
export function kindOf(world, reference, transform, action) {
  const target = substituteFactors(world, reference, transform, action);
  const held = [reference, transform, target].map((factors) => isHeldOut(world, factors));
  const changes = world.actions[action].columns.some((column) => reference[column] !== transform[column]);
  const fits = (wanted) => wanted.every((value, k) => value === null || value === held[k]);
  const allowed = changes || !world.require_change;
  const condition = allowed ? Object.keys(world.conditions).find((name) => fits(world.conditions[name])) : undefined;
  return { reference: held[0], transform: held[1], target: held[2], changes, condition: condition ?? null };
}

/**
 * The best answer for who knows the task, what training shows and the two inputs.
 *
 * @returns {{answer: Matrix, unknown: number[]}} the answer, and the roles whose filler is a guess
 */
export function bestAnswer(world, tables, reference, transform, action) {
  const rows = rowsOf(world, substituteFactors(world, reference, transform, action));
  const inputs = [rowsOf(world, reference), rowsOf(world, transform)];
  const answer = fillersAt(world, tables, rows);
  const width = answer.shape[1];
  const unknown = [];
  world.roles.forEach((role, j) => {
    const isKnown = role.known === null || role.known[rows[j]] === 1 || inputs.some((input) => input[j] === rows[j]);
    if (isKnown) return;
    unknown.push(j);
    for (let f = 0; f < width; f += 1) answer.data[j * width + f] = role.guess[f];
  });
  return { answer, unknown };
}

/**
 * Mean squared errors of an answer.
 *
 * @returns {{loss: number, roles: number[]}} over the roles that count, and of each role
 */
export function errorsOf(world, answer, target) {
  const [count, width] = target.shape;
  const roles = Array.from({ length: count }, (_, j) => {
    let sum = 0;
    for (let f = 0; f < width; f += 1) sum += (answer.data[j * width + f] - target.data[j * width + f]) ** 2;
    return sum / width;
  });
  const scored = roles.filter((_, j) => world.roles[j].scored);
  return { loss: scored.reduce((sum, error) => sum + error, 0) / scored.length, roles };
}

/** For each role, whether the filler nearest to the answer's is the target's; equal fillers count as one. */
export function rightRoles(world, tables, answer, target) {
  const width = target.shape[1];
  return world.roles.map((role, j) => {
    const row = nearestRow(world, tables, answer, j);
    const { data } = tables[role.table];
    for (let f = 0; f < width; f += 1) {
      if (Math.abs(data[row * width + f] - target.data[j * width + f]) > 1e-6) return false;
    }
    return true;
  });
}

/** For each class of a column, whether the object with that class would be held out. @returns {boolean[]} */
export function heldOutAlong(world, factors, column) {
  return world.columns[column].values.map((_, value) =>
    isHeldOut(world, factors.map((own, other) => (other === column ? value : own))),
  );
}

/**
 * A question of a condition, found by trying; the same for the same start.
 *
 * @param {number} start decides the question
 * @returns {{reference: Factors, transform: Factors, action: number}|null} null if none of the tries has the condition
 */
export function drawQuestion(world, condition, start, tries = 20000) {
  let state = (start ^ 0x9e3779b9) >>> 0;
  const below = (limit) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 4294967296) * limit);
  };
  const object = () => world.columns.map((column) => below(column.values.length));
  for (let k = 0; k < tries; k += 1) {
    const [reference, transform, action] = [object(), object(), below(world.actions.length)];
    const kind = kindOf(world, reference, transform, action);
    if (kind.condition === condition && kind.changes) return { reference, transform, action };
  }
  return null;
}
