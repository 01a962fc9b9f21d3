// Frames of dSprites, pixel for pixel those of `tpr_attention.tasks.images.frames`: a pixel is on where its centre is
// inside the sprite. The arithmetic is that of `tasks.composition.sprites`, operation by operation, in float64.

export const FRAME_SIDE = 64;

/** How many pixels a shape reaches from its centre at scale 1, and whether a point (u, v) of its own frame is inside. */
const FRAME_SHAPES = {
  square: { reach: 14, inside: (u, v) => Math.abs(u) < 9.598 && Math.abs(v) < 9.598 },
  ellipse: { reach: 13, inside: (u, v) => squared(u / 12.766) + squared(v / 7.214) < 1 },
  heart: { reach: 12, inside: insideHeart },
};

function squared(number) {
  return number * number;
}

const HEART_LINES = heartLines();

/** The right half of the heart's outline: from the notch to the top of the lobe, and from there to the point. */
function heartLines() {
  const across = [];
  const down = [];
  for (let k = 0; k < 76; k += 1) {
    const t = (2 * Math.PI * k) / 150;
    across.push(k === 75 ? 0 : 9.6 * Math.sin(t) ** 3);
    down.push(
      -0.6623 * (13 * Math.cos(t) - 5 * Math.cos(2 * t) - 2 * Math.cos(3 * t) - Math.cos(4 * t)) - 1.44,
    );
  }
  const top = down.indexOf(Math.min(...down));
  const inner = straightPieces(down.slice(0, top + 1).reverse(), across.slice(0, top + 1).reverse());
  return { inner, outer: straightPieces(down.slice(top), across.slice(top)) };
}

/** A line of straight pieces, which goes on vertically past its ends: start and slope of each piece. */
function straightPieces(down, across) {
  const start = [across[0]];
  const slope = [0];
  for (let k = 0; k + 1 < down.length; k += 1) {
    const rise = (across[k + 1] - across[k]) / (down[k + 1] - down[k]);
    slope.push(rise);
    start.push(across[k] - rise * down[k]);
  }
  start.push(across[across.length - 1]);
  slope.push(0);
  return { down, start, slope };
}

function lineAt({ down, start, slope }, v) {
  let low = 0;
  let high = down.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (down[middle] < v) low = middle + 1;
    else high = middle;
  }
  return start[low] + slope[low] * v;
}

function insideHeart(u, v) {
  const far = Math.abs(u);
  return lineAt(HEART_LINES.inner, v) <= far && far < lineAt(HEART_LINES.outer, v);
}

function roundHalfToEven(number) {
  const low = Math.floor(number);
  const rest = number - low;
  if (rest !== 0.5) return Math.round(number);
  return low % 2 === 0 ? low : low + 1;
}

/** How far along its column a class is, from 0 to 1, as `torch.linspace` has it. */
function fractionOf(classes, number) {
  const step = 1 / (classes - 1);
  return number < Math.floor(classes / 2) ? step * number : 1 - step * (classes - 1 - number);
}

/**
 * Draw the mask of an object.
 * @param grid {columns: [{name, values, labels}]}
 * @param classes one number a column of the grid
 * @returns Uint8Array [64 * 64] of 0 and 1, row by row
 */
export function frameMask(grid, classes) {
  const of = Object.fromEntries(grid.columns.map((column, k) => [column.name, { ...column, number: classes[k] }]));
  const { reach, inside } = FRAME_SHAPES[of.shape.labels[of.shape.number]];
  const [column, row] = ["position_x", "position_y"].map(
    (name) => 16 + 32 * fractionOf(of[name].values.length, of[name].number),
  );
  const left = roundHalfToEven(column) - reach;
  const top = roundHalfToEven(row) - reach;
  const angle = of.orientation.values[of.orientation.number];
  const scale = of.scale.values[of.scale.number];
  const cos = Math.cos(angle) / scale;
  const sin = Math.sin(angle) / scale;
  const mask = new Uint8Array(FRAME_SIDE * FRAME_SIDE);
  for (let y = 0; y < 2 * reach; y += 1) {
    const dy = top - row + (y + 0.5);
    for (let x = 0; x < 2 * reach; x += 1) {
      const dx = left - column + (x + 0.5);
      if (inside(cos * dx - sin * dy, sin * dx + cos * dy)) mask[(top + y) * FRAME_SIDE + left + x] = 1;
    }
  }
  return mask;
}

/** An image with one channel a colour: the mask is in the channel of the object's colour. Float64Array [3 * 64 * 64]. */
export function frameImage(mask, channel, channels = 3) {
  const image = new Float64Array(channels * mask.length);
  image.set(mask, channel * mask.length);
  return image;
}

/** The classes of the reference with those of the transform for every factor of the roles that are taken. */
export function exchangedClasses(grid, reference, transform, roles) {
  const names = new Set(roles.flatMap((role) => grid.actions[role].columns));
  return grid.columns.map((column, k) => (names.has(column.name) ? transform[k] : reference[k]));
}

/** The names of the splits that hold an object out of training. */
export function heldOutBy(grid, splits, classes) {
  return splits.filter((split) => {
    let place = 0;
    for (const name of split.columns) {
      const k = grid.columns.findIndex((column) => column.name === name);
      place = place * grid.columns[k].values.length + classes[k];
    }
    return split.table[place] === "1";
  }).map((split) => split.name);
}

/** How many pixels differ after rounding, in any channel, and where. */
export function wrongPixels(output, target) {
  const pixels = FRAME_SIDE * FRAME_SIDE;
  const where = new Uint8Array(pixels);
  for (let k = 0; k < output.length; k += 1) {
    if (output[k] > 0.5 !== target[k] > 0.5) where[k % pixels] = 1;
  }
  return { where, count: where.reduce((sum, one) => sum + one, 0) };
}
