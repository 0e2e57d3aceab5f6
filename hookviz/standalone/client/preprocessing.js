// Pixels as a network's input, equal to what Python's `preprocess.prepare` makes of them, to the last bit. Pillow
// resizes there, so this goes by the arithmetic of Pillow 13: weights are whole numbers, and levels are rounded
// after each of the two directions.

const BITS = 22; // of a weight's fraction: 8 of 32 are a level's, and 2 are for sums below black and above white
const MOST = 32_000_000; // pixels of a resized image, above which Python resizes only what the crop needs

/** @type {Record<string, {reach: number, weight: (distance: number) => number}>} */
const FILTERS = {
  bilinear: { reach: 1, weight: (x) => Math.max(0, 1 - x) },
  bicubic: {
    reach: 2,
    weight: (x) => (x < 1 ? (1.5 * x - 2.5) * x * x + 1 : x < 2 ? (((x - 5) * x + 8) * x - 4) * -0.5 : 0),
  },
};

/**
 * A resize along one dimension: the pixels from `low` to `high` become `length`. Both count from `begin`, and what
 * lies before that, or from `end` on, has no weight. Of the outcome only `count` pixels are wanted, from `first` on.
 * @typedef {Record<"begin" | "end" | "low" | "high" | "length" | "first" | "count", number>} Stretch
 */

/** @returns {Stretch} of a whole dimension of `end` pixels */
const wholeStretch = (/** @type {number} */ end, /** @type {number} */ length, first = 0, count = length) => {
  return { begin: 0, end, low: 0, high: end, length, first, count };
};

/** Which pixels become one, and with which weights: `counts` of them from `starts` on, and `most` weights for each. */
const weighed = (/** @type {Stretch} */ stretch, /** @type {string} */ filter) => {
  const { begin, end, low, high, length, first, count } = stretch;
  const { reach, weight } = FILTERS[filter];
  const from = Math.fround(low); // Pillow has both ends as float32
  const scale = Math.fround(Math.fround(high) - from) / length;
  const broad = Math.max(1, scale); // a pixel of a smaller image is the mean of all that it covers
  const most = Math.ceil(reach * broad) * 2 + 1;
  const [starts, counts] = [new Int32Array(count), new Int32Array(count)];
  const weights = new Int32Array(count * most);
  for (let index = 0; index < count; index += 1) {
    const centre = from + (first + index + 0.5) * scale;
    const start = Math.max(0, Math.trunc(centre - reach * broad + 0.5));
    const stop = Math.min(end - begin, Math.trunc(centre + reach * broad + 0.5));
    const distance = (/** @type {number} */ at) => Math.abs((start + at - centre + 0.5) * (1 / broad));
    const shares = Array.from({ length: stop - start }, (_, at) => weight(distance(at)));
    const sum = shares.reduce((before, share) => before + share, 0);
    for (const [at, share] of shares.entries()) {
      weights[index * most + at] = Math.trunc((share / sum) * 2 ** BITS + (share < 0 ? -0.5 : 0.5));
    }
    starts[index] = begin + start;
    counts[index] = stop - start;
  }
  return { starts, counts, weights, most };
};

/**
 * Levels resized along the middle one of three dimensions; its length only matters after several outer ones.
 * @param {Uint8Array} pixels
 * @param {[number, number, number]} shape
 * @param {ReturnType<typeof weighed>} weighing
 */
const along = (pixels, [outer, length, inner], { starts, counts, weights, most }) => {
  const levels = new Uint8ClampedArray(outer * starts.length * inner);
  let to = 0;
  for (let line = 0; line < outer; line += 1) {
    for (let index = 0; index < starts.length; index += 1) {
      const corner = (line * length + starts[index]) * inner;
      const last = index * most + counts[index];
      for (let each = 0; each < inner; each += 1, to += 1) {
        let sum = 1 << (BITS - 1); // a half, since the shift rounds down
        for (let tap = index * most, at = corner + each; tap < last; tap += 1, at += inner) {
          sum += Math.imul(pixels[at], weights[tap]); // all sums stay within 31 bits
        }
        levels[to] = sum >> BITS;
      }
    }
  }
  return new Uint8Array(levels.buffer);
};

/**
 * The wanted pixels of a resized image. A dimension that keeps its length needs no case: its weights are 0, 1, 0.
 * @param {Uint8Array} pixels
 * @param {[number, number]} size width and bands
 * @param {Stretch[]} stretches of rows and columns
 * @param {string} filter
 */
const resampled = (pixels, [width, bands], [rows, columns], filter) => {
  const [down, across] = [weighed(rows, filter), weighed(columns, filter)];
  const [lower, narrower] = [rows, columns].map(({ begin, end, length }) => end - begin - length);
  if (lower > Math.max(0, 2 * narrower)) {
    // Pillow goes down first here, which matters for rounding
    return along(along(pixels, [1, 0, width * bands], down), [rows.count, width, bands], across);
  }
  const top = down.starts[0];
  const height = down.starts[rows.count - 1] + down.counts[rows.count - 1] - top;
  const lines = pixels.subarray(top * width * bands, (top + height) * width * bands);
  const narrow = along(lines, [height, width, bands], across);
  return along(narrow, [1, 0, columns.count * bands], { ...down, starts: down.starts.map((at) => at - top) });
};

/**
 * An image in another size, as Pillow's `Image.resize` makes it.
 * @param {Uint8Array} pixels
 * @param {[number, number, number]} shape height, width and bands
 * @param {[number, number]} size height and width
 * @param {"bilinear" | "bicubic"} filter
 */
export const resized = (pixels, [height, width, bands], [toHeight, toWidth], filter) =>
  resampled(pixels, [width, bands], [wholeStretch(height, toHeight), wholeStretch(width, toWidth)], filter);

/** A level on white, as Pillow blends it: a 255th, rounded. */
const onWhite = (/** @type {number} */ level, /** @type {number} */ alpha) => {
  const sum = level * alpha + 255 * (255 - alpha) + 128;
  return ((sum >> 8) + sum) >> 8;
};

/** Red, green and blue on white, or Pillow's grey of them. */
const opaque = (/** @type {Uint8ClampedArray} */ rgba, /** @type {number} */ bands) => {
  const levels = new Uint8Array((rgba.length / 4) * bands);
  for (let at = 0, to = 0; at < rgba.length; at += 4, to += bands) {
    const alpha = rgba[at + 3];
    const red = onWhite(rgba[at], alpha);
    const green = onWhite(rgba[at + 1], alpha);
    const blue = onWhite(rgba[at + 2], alpha);
    levels[to] = bands === 3 ? red : (19595 * red + 38470 * green + 7471 * blue + 32768) >> 16;
    if (bands === 3) [levels[to + 1], levels[to + 2]] = [green, blue];
  }
  return levels;
};

/** One dimension of a resize to a length and a centre crop, as Python's `crop_axes` and `resize_and_crop` have it. */
const axisOf = (/** @type {number} */ source, /** @type {number} */ length, /** @type {number} */ crop) => {
  const half = (length - crop) / 2; // as Python rounds it: 0.5 to 0, 1.5 and 2.5 to 2
  const start = half < 0 ? Math.ceil(half) : Math.round(half) - (half % 2 === 0.5 ? 1 : 0);
  const toSource = (/** @type {number} */ position) => ((start + position) * source) / length;
  const [first, last] = [Math.max(0, -start), Math.min(crop, length - start)]; // of the crop, within the image
  const whole = wholeStretch(source, length, start + first, last - first);
  /** @returns {Stretch} of the pixels that the crop needs, with ends rounded to float32 */
  const part = (/** @type {number} */ reach) => {
    const margin = reach * Math.max(1, source / length) + 1;
    const [left, right] = [toSource(first), toSource(last)];
    const [begin, end] = [Math.max(0, Math.floor(left - margin)), Math.min(source, Math.ceil(right + margin))];
    const [low, high] = [Math.max(0, left - begin), Math.min(end - begin, right - begin)];
    return { begin, end, low, high, length: last - first, first: 0, count: last - first };
  };
  return { first, toSource, whole, part };
};

/**
 * An image as a network's input, the picture that the network sees, and its part of the image.
 * @param {Uint8ClampedArray} rgba
 * @param {[number, number]} size height and width
 * @param {{resize: number, crop: number, mean: number[], std: number[], interpolation: string}} steps
 */
export const prepared = (rgba, size, { resize, crop, mean, std, interpolation }) => {
  const bands = mean.length;
  const lengths = size.map((source) => Math.floor((resize * source) / Math.min(...size)));
  const axes = size.map((source, at) => axisOf(source, lengths[at], crop));
  const isLarge = lengths[0] * lengths[1] > MOST;
  const stretches = axes.map(({ whole, part }) => (isLarge ? part(FILTERS[interpolation].reach) : whole));
  const levels = resampled(opaque(rgba, bands), [size[1], bands], stretches, interpolation);
  const [rows, columns] = axes;
  const across = stretches[1].count * bands;
  const framed = new Uint8Array(crop * crop * bands); // black around an image that is smaller than the crop
  for (let row = 0; row < stretches[0].count; row += 1) {
    const line = levels.subarray(row * across, (row + 1) * across);
    framed.set(line, ((rows.first + row) * crop + columns.first) * bands);
  }
  const input = new Float32Array(framed.length);
  for (let band = 0; band < bands; band += 1) {
    // Each step is rounded to float32, as torch does it; there are only 256 values.
    const [middle, spread] = [Math.fround(mean[band]), Math.fround(std[band])];
    const values = Float32Array.from({ length: 256 }, (_, at) => Math.fround(Math.fround(at / 255) - middle) / spread);
    for (let at = 0; at < crop * crop; at += 1) input[band * crop * crop + at] = values[framed[at * bands + band]];
  }
  const picture = Uint8Array.from({ length: crop * crop * 3 }, (_, at) => framed[Math.floor((at * bands) / 3)]);
  const [top, bottom, left, right] = axes.flatMap(({ toSource }) => [toSource(0), toSource(crop)]);
  return { input, shape: [bands, crop, crop], picture, crop: { top, left, bottom, right, height: crop, width: crop } };
};
