// A layer's statistics, colour limits and sentences from its values alone, exactly as Python has them, so that
// a page alone in a browser can show any layer. The reasons for each rule stand in Python: see
// `drawing/statistics.py`, `scales.py`, `layout.py` and `explorer/channel.py`.

import { say, written } from "../../explorer/client/shared.js";

/** How many levels of a palette run through the colormap. */
export const LEVELS = 253;
const [NAN_LEVEL, INFINITE_LEVEL] = [253, 254];
const TOPS = [16, 64, 256]; // how many channels a person can choose, beside all
const BINS = 48;
/** Facts about the tiles of a still image, without another beside it and without patches. */
const STILL = { isPatches: false, notes: [], pair: null, compare: null, isDifference: false, isOfA: false };
const EXTRA = 60; // digits behind those of a rounded number, to see whether it was in the middle of two

/**
 * Numbers of each channel over its finite values; NaN where it has none.
 * @typedef {Record<"lowest" | "mean" | "highest" | "variance" | "zeros" | "nan" | "inf", number[]>} Stats
 */

/**
 * The values of the end colours, of each channel, and whether there are values beyond.
 * @typedef {{scale: string, low: number[], high: number[], clipped: boolean}} Limits
 */

/**
 * English words for a colormap's colours.
 * @typedef {{low: string, middle: string, high: string, diverging: boolean}} Colormap
 */

// A number in the middle of two becomes the even one in Python, and the larger one in JavaScript.
const isEvenMiddle = (/** @type {string} */ exact) =>
  /^50*$/.test(exact.slice(-EXTRA)) && /[02468]\.?$/.test(exact.slice(0, -EXTRA));
const rounded = (/** @type {number} */ value, /** @type {number} */ decimals) => {
  const exact = value.toFixed(decimals + EXTRA);
  return Number(isEvenMiddle(exact) ? exact.slice(0, -EXTRA) : value.toFixed(decimals));
};
/** The 8 digits that float32 has, as `json_numbers` rounds; null for NaN, which no limit is. */
const inDigits = (/** @type {number} */ value) => {
  if (Number.isNaN(value)) return /** @type {any} */ (null);
  const [exact, power] = value.toExponential(7 + EXTRA).split("e");
  return Number(isEvenMiddle(exact) ? `${exact.slice(0, -EXTRA)}e${power}` : value.toExponential(7));
};

const capitalised = (/** @type {string} */ word) => word[0].toUpperCase() + word.slice(1);

/** A colour in the page's language; all are named here so that the page has their translations. */
const colourOf = (/** @type {string} */ english) => {
  const light = { white: say("white"), yellow: say("yellow"), "pale yellow": say("pale yellow"), pink: say("pink") };
  const cold = { blue: say("blue"), "light blue": say("light blue"), "dark blue": say("dark blue"), teal: say("teal") };
  const grey = { grey: say("grey"), "light grey": say("light grey"), black: say("black") };
  const warm = { red: say("red"), crimson: say("crimson"), "dark violet": say("dark violet") };
  return /** @type {Record<string, string>} */ ({ ...light, ...cold, ...grey, ...warm })[english] ?? english;
};

/**
 * A sum in NumPy's order, so that both agree to the last digit: halves down to 128 values, these in eight columns.
 * @param {Float64Array} values
 * @returns {number}
 */
const sumOf = (values) => {
  const count = values.length;
  if (count > 128) {
    const half = 8 * Math.floor(count / 16);
    return sumOf(values.subarray(0, half)) + sumOf(values.subarray(half));
  }
  const [columns, whole] = [new Float64Array(8), count - (count % 8)];
  for (let at = 0; at < whole; at += 1) columns[at % 8] += values[at];
  const [a, b, c, d, e, f, g, h] = columns;
  return values.subarray(whole).reduce((sum, value) => sum + value, a + b + (c + d) + (e + f + (g + h)));
};

/** The value of a rank among values, which are partly sorted by it: a tenth of the time of sorting them all. */
const ranked = (/** @type {Float32Array} */ values, /** @type {number} */ rank) => {
  let [from, to] = [0, values.length - 1];
  while (from < to) {
    const middle = values[(from + to) >> 1];
    let [left, right] = [from, to];
    while (left <= right) {
      while (values[left] < middle) left += 1;
      while (values[right] > middle) right -= 1;
      if (left > right) break;
      [values[left], values[right]] = [values[right], values[left]];
      left += 1;
      right -= 1;
    }
    if (rank > right && rank < left) break;
    if (rank <= right) to = right;
    else from = left;
  }
  return values[rank];
};

/** The finite values; a loop takes a fifth of the time of `filter`. */
const finiteOf = (/** @type {Float32Array} */ values) => {
  const finite = new Float32Array(values.length);
  let count = 0;
  for (let at = 0; at < values.length; at += 1) {
    if (Number.isFinite(values[at])) finite[count++] = values[at];
  }
  return finite.subarray(0, count);
};

/**
 * The statistics of each channel, as Python's `channel_stats`.
 * @param {Float32Array} values of all channels, one after the other
 * @param {number} channels how many
 */
export const statisticsOf = (values, channels) => {
  /** @type {Stats} */
  const stats = { lowest: [], mean: [], highest: [], variance: [], zeros: [], nan: [], inf: [] };
  const cells = values.length / channels;
  for (let channel = 0; channel < channels; channel += 1) {
    const map = values.subarray(channel * cells, (channel + 1) * cells);
    const finite = new Float64Array(finiteOf(map));
    const count = finite.length;
    let [lowest, highest, zeros] = count ? [finite[0], finite[0], 0] : [Number.NaN, Number.NaN, 0];
    const mean = sumOf(finite) / count; // NaN of none
    for (let at = 0; at < count; at += 1) {
      const value = finite[at];
      if (value < lowest) lowest = value;
      if (value > highest) highest = value;
      if (value === 0) zeros += 1;
      finite[at] = (value - mean) * (value - mean);
    }
    const variance = sumOf(finite) / count;
    const nan = count < cells ? map.filter(Number.isNaN).length : 0;
    const of = { lowest, mean, highest, variance, zeros: zeros / count, nan, inf: cells - count - nan };
    for (const [name, number] of Object.entries(of)) stats[/** @type {keyof Stats} */ (name)].push(number);
  }
  return stats;
};

/** The lowest and the highest value of a layer; NaN where none is finite. */
const endsOf = (/** @type {Stats} */ { lowest, highest }) => [
  lowest.reduce((least, value) => (value < least || Number.isNaN(least) ? value : least), Number.NaN),
  highest.reduce((most, value) => (value > most || Number.isNaN(most) ? value : most), Number.NaN),
];

/**
 * The limits of a layer under one of Python's `SCALES`.
 * @param {Float32Array} values
 * @param {Stats} stats
 * @param {string} scale
 * @returns {Limits}
 */
export const limitsOf = (values, stats, scale) => {
  const orZero = (/** @type {number[]} */ numbers) => numbers.map((each) => (Number.isNaN(each) ? 0 : each));
  if (scale === "channel") return { scale, low: orZero(stats.lowest), high: orZero(stats.highest), clipped: false };
  const [lowest, highest] = orZero(endsOf(stats));
  const largest = Math.max(Math.abs(lowest), Math.abs(highest));
  let [low, high, clipped] = [lowest, highest, false];
  if (scale === "symmetric") {
    high = largest || 1; // all zeros: any span puts them in the middle
    low = -high;
  } else if (scale === "percentile") {
    const finite = finiteOf(values);
    const end = finite.length - 1;
    const [first, last] = [Math.floor(end / 100), Math.ceil((end * 99) / 100)].map((rank) => ranked(finite, rank));
    if (first < last) [low, high, clipped] = [first, last, first > lowest || last < highest];
  } else if (scale === "balanced") {
    const sizes = finiteOf(values);
    for (let at = 0; at < sizes.length; at += 1) sizes[at] = Math.abs(sizes[at]);
    high = ranked(sizes, Math.ceil(((sizes.length - 1) * 99) / 100)) || largest || 1;
    [low, clipped] = [low < 0 ? -high : 0, high < largest];
  }
  return { scale, low: stats.mean.map(() => low), high: stats.mean.map(() => high), clipped };
};

const meaningOf = (
  /** @type {Limits} */ { scale, low: [low], high: [high], clipped },
  /** @type {Stats} */ stats,
  /** @type {Colormap} */ colormap,
) => {
  const [least, most] = endsOf(stats);
  const [lowest, middle, highest] = [colormap.low, colormap.middle, colormap.high].map(colourOf);
  const halfway = low / 2 + high / 2;
  const through = say("through {colour} ({value}) ", { colour: middle, value: written(halfway) });
  const facts = {
    ...{ low_colour: lowest, zero_colour: middle, high_colour: highest },
    ...{ low_value: written(low), high_value: written(high), end_value: written(high) },
    middle: colormap.diverging ? through : "", // it invites the reading that its middle is zero
  };
  const first = capitalised(lowest.toLowerCase());
  const beyond = clipped ? say("; values beyond take the end colours") : "";
  if (Number.isNaN(least)) return say("This layer has no finite value");
  const colour = most === low ? lowest : most === high ? highest : most === halfway ? middle : "";
  if (least === most && colour)
    return say("Every value of this layer is {value}, drawn in {colour}", { value: written(most), colour });
  if (scale === "channel" && stats.mean.length > 1) {
    const own = say(
      "Each channel has its own scale, {low_colour} at its lowest and {high_colour} at its " +
        "highest value, so compare shapes between channels, not brightness",
      facts,
    );
    const hasConstant = stats.lowest.some((value, at) => value === stats.highest[at]);
    return own + (hasConstant ? say("; a channel with one value everywhere is {low_colour}", facts) : "");
  }
  if (scale === "symmetric") {
    const sides = say(
      "{low_colour} is below zero, {zero_colour} is zero and {high_colour} is above, and the " +
        "end colours stand for ±{end_value} in all channels of this layer",
      { ...facts, low_colour: first },
    );
    return sides + beyond;
  }
  if (scale === "balanced") {
    const above = say("{zero_colour} is zero and {high_colour} is {end_value}", { ...facts, zero_colour: first });
    const both = say(
      "{low_colour} is below zero, {zero_colour} is zero and {high_colour} is above, up to ±{end_value}",
      { ...facts, low_colour: first },
    );
    const clipping = clipped ? say("; what is beyond, at most 1 % of all, takes the end colours") : "";
    const colours = low < 0 ? both : above;
    return say("{colours} in all channels of this layer{clipping}", { colours, clipping });
  }
  if (scale === "percentile" && clipped)
    return say(
      "Colours run from {low_colour} ({low_value}, the layer's 1st percentile) {middle}to " +
        "{high_colour} ({high_value}, its 99th), and the values beyond, at most 2 % of all, " +
        "take the end colours",
      facts,
    );
  const run = say(
    "Colours run from {low_colour} ({low_value}) {middle}to {high_colour} ({high_value}), " +
      "the same for all channels of this layer",
    facts,
  );
  return run + beyond;
};

/**
 * In one sentence what the colours mean.
 * @param {Limits} limits
 * @param {Stats} stats
 * @param {Colormap} colormap
 */
export const legendOf = (limits, stats, colormap) => {
  const [nan, inf] = [stats.nan, stats.inf].map((counts) => counts.reduce((sum, count) => sum + count, 0));
  const parts = [meaningOf(limits, stats, colormap)];
  const ofNan = { count: nan, colour: say("magenta") };
  const ofInf = { count: inf, colour: say("cyan") };
  if (nan === 1) parts.push(say("1 NaN value is {colour}", ofNan));
  if (nan > 1) parts.push(say("{count:,} NaN values are {colour}", ofNan));
  if (inf === 1) parts.push(say("1 infinite value is {colour}", ofInf));
  if (inf > 1) parts.push(say("{count:,} infinite values are {colour}", ofInf));
  const between = say("; ");
  return say("{meaning}.", { meaning: parts.join(between) });
};

/** A number with its thousands apart; it has three decimals at most. */
const apart = (/** @type {string} */ digits) => digits.replace(/\B(?=(\d{3})+(\.|$))/g, ",");
/**
 * Marks for a colour bar: both ends, and round numbers that keep clear of them.
 * @param {number} low
 * @param {number} high
 * @returns {[number, string][]} each the fraction from the low end, and its label
 */
export const ticksOf = (low, high) => {
  if (!(low < high)) return [[0, written(low)]];
  const span = high - low;
  /** @type {[number, string][]} */
  const marks = [[0, written(low)]];
  if (Number.isFinite(span) && span >= 1e-300) {
    const unit = Number(`1e${Math.floor(Math.log10(span / 5))}`);
    const step = [1, 2, 5, 10, 20].map((mantissa) => mantissa * unit).find((each) => span / each <= 5) ?? span;
    const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    for (let at = 0; at < 8; at += 1) {
      const value = (Math.floor(low / step) + at) * step;
      const fraction = (value - low) / span;
      if (fraction < 0.16 || fraction > 0.84) continue;
      const isPlain = value !== 0 && step >= 1e-3 && step < 1e6; // else its digits would be many
      const text = isPlain ? `${value < 0 ? "−" : ""}${apart(Math.abs(value).toFixed(decimals))}` : written(value);
      marks.push([fraction, text]);
    }
  }
  return [...marks, [1, written(high)]];
};

const [ASPECT, WIDTH, EMPTY_COST, RAGGED_COST] = [1.6, 1200, 3, 0.18]; // of Python's `lay_out`
/** The geometry of the tiles with a pixel for a cell, as `lay_out` and then `sprite_geometry` have it. */
const geometryOf = (/** @type {number} */ count, /** @type {number} */ rows, /** @type {number} */ columns) => {
  let [across, down, least] = [1, count, Number.POSITIVE_INFINITY];
  for (let wide = 1; wide <= count; wide += 1) {
    const high = Math.ceil(count / wide);
    const mismatch = Math.log((wide * columns) / (high * rows) / ASPECT);
    const empty = 1 - count / (high * wide);
    const cost = mismatch * mismatch + EMPTY_COST * empty + (empty > 0 ? RAGGED_COST : 0);
    if (cost < least) [across, down, least] = [wide, high, cost];
  }
  // The gap is that of tiles as large as a file has them, about `WIDTH` pixels together.
  const gapAt = (/** @type {number} */ zoom) => {
    const side = Math.sqrt(rows * columns) * zoom;
    return Math.min(4, Math.max(side > 8 ? 2 : 1, rounded(side / 20, 0)));
  };
  const sizeOf = (/** @type {number} */ zoom, /** @type {number} */ gap) => ({
    width: across * (columns * zoom + gap) - gap,
    height: down * (rows * zoom + gap) - gap,
  });
  const overshoot = (/** @type {number} */ zoom) => {
    const { width, height } = sizeOf(zoom, gapAt(zoom));
    return Math.max(width / WIDTH, height / (WIDTH / ASPECT));
  };
  const below = Math.max(1, Math.floor(1 / overshoot(1)));
  const off = (/** @type {number} */ zoom) => Math.abs(Math.log(overshoot(zoom)));
  const zooms = [Math.max(1, below - 1), below, below + 1];
  const gap = gapAt(zooms.reduce((best, zoom) => (off(zoom) < off(best) ? zoom : best)));
  const [tile, pitch] = /** @type {[number, number][]} */ ([
    [rows, columns],
    [rows + gap, columns + gap],
  ]);
  return { columns: across, tile, pitch, ...sizeOf(1, gap) };
};

/** The index of the highest finite value, or of the lowest for the sign −1; of equal ones the first, of none 0. */
const strongestOf = (/** @type {Float32Array} */ map, sign = 1) => {
  let best = -1;
  for (let at = 0; at < map.length; at += 1) {
    if (Number.isFinite(map[at]) && (best < 0 || sign * map[at] > sign * map[best])) best = at;
  }
  return Math.max(0, best);
};

/**
 * The answer to the question "tiles", as far as it follows from the values.
 * @param {Float32Array} values
 * @param {number[]} shape channels, rows and columns
 * @param {{scale: string, colormap: Colormap, alt: string, title: string, stats?: Stats, limits?: Limits}} look with
 *   the image's description, the layer's name, and the statistics and limits of who has them already
 */
export const tileFacts = (values, [channels, rows, columns], look) => {
  const { scale, colormap, alt, title, stats = statisticsOf(values, channels) } = look;
  const limits = look.limits ?? limitsOf(values, stats, scale);
  const legend = legendOf(limits, stats, colormap);
  const order = [...stats.mean.keys()];
  const digits = (/** @type {("lowest" | "mean" | "highest" | "zeros")[]} */ ...names) =>
    Object.fromEntries(names.map((name) => [name, stats[name].map(inDigits)]));
  const sorted = (/** @type {number[]} */ by) => {
    const keys = by.map((key) => (Number.isNaN(key) ? Number.NEGATIVE_INFINITY : key)); // these come last
    return [...order].sort((one, other) => keys[other] - keys[one] || 0);
  };
  const [max, mean, variance, zeros] = [stats.highest, stats.mean, stats.variance, stats.zeros].map(sorted);
  const all = channels === 1 ? say("1 channel") : say("all {total:,} channels", { total: channels });
  const some = (/** @type {number} */ count) => say("{count:,} of {total:,} shown", { count, total: channels });
  const counts = [["all", all], ...TOPS.filter((top) => top < channels).map((top) => [`${top}`, some(top)])];
  const ends = [say("lowest"), say("highest")].map((label, at) => [at, label]);
  const cells = rows * columns;
  return {
    alt: say("{channels} of layer {layer} for: {alt}. {legend}", { channels: all, layer: title, alt, legend }),
    geometry: geometryOf(channels, rows, columns),
    order,
    stats: digits("lowest", "mean", "highest", "zeros"),
    limits: { low: limits.low.map(inDigits), high: limits.high.map(inDigits) },
    levels: LEVELS,
    nan: NAN_LEVEL,
    infinity: INFINITE_LEVEL,
    ticks: scale === "channel" && channels > 1 ? ends : ticksOf(limits.low[0], limits.high[0]),
    legend: [[legend, ""]],
    orders: { max, mean, variance, zeros },
    shown: Object.fromEntries(
      counts.map(([count, text]) => [count, say("{meaning}.", { meaning: capitalised(text) })]),
    ),
    ...STILL,
    strongest: order.map((channel) => strongestOf(values.subarray(channel * cells, (channel + 1) * cells))),
    rows,
    columns,
  };
};

/** The histogram of a map's finite cells in NumPy's bins, as bars in percent of the highest. */
const histogramOf = (/** @type {Float32Array} */ map, /** @type {number} */ lowest, /** @type {number} */ highest) => {
  const wider = lowest === highest ? Math.max(0.5, Math.abs(lowest) * 2 ** -40) : 0; // bins wider than a rounding
  const [first, last] = [lowest - wider, highest + wider];
  const step = (last - first) / BINS;
  const edges = Array.from({ length: BINS + 1 }, (_, at) => (at < BINS ? at * step + first : last));
  const counts = new Array(BINS).fill(0);
  const finite = finiteOf(map);
  for (const value of finite) {
    let bin = Math.min(BINS - 1, Math.floor(((value - first) / (last - first)) * BINS));
    // The quotient is rounded, so the edges decide: a bin has its lower one, and the last bin both.
    if (value < edges[bin]) bin -= 1;
    if (value >= edges[bin + 1] && bin < BINS - 1) bin += 1;
    counts[bin] += 1;
  }
  const most = Math.max(...counts);
  const height = (/** @type {number} */ count) => count && rounded(Math.max(1, (100 * count) / most), 1);
  const [low, high] = [written(first), written(last)];
  return {
    bars: counts.map((count, bin) => [height(count), (edges[bin + 1] + edges[bin]) / 2 < 0 ? "below" : "above"]),
    low,
    high,
    says: say("Histogram of {size:,} cells from {low} to {high}", { size: finite.length, low, high }),
  };
};

/**
 * The answer to the question "channel" without its pictures and values.
 * @param {Float32Array} values
 * @param {number[]} shape channels, rows and columns
 * @param {number} channel
 * @param {Limits} limits
 * @param {Stats} stats
 */
export const channelFacts = (values, [channels, rows, columns], channel, limits, stats) => {
  const map = values.subarray(channel * rows * columns, (channel + 1) * rows * columns);
  const [lowest, highest] = [stats.lowest[channel], stats.highest[channel]];
  const facts = {
    title: say("Channel {channel}", { channel }),
    channel,
    says: say("The map of channel {channel}: arrow keys move, Enter looks at a cell.", { channel }),
    rows,
    columns,
    ticks: ticksOf(limits.low[channel], limits.high[channel]),
    ...{ numbers: [], histogram: null, dead: "", deadHint: "", noFinite: "" },
  };
  if (Number.isNaN(lowest)) return { ...facts, noFinite: say("No cell of this map is a finite number.") };
  const cellOf = (/** @type {number} */ at) => [Math.floor(at / columns), at % columns];
  const rank = 1 + stats.highest.filter((value) => value > highest).length;
  const isDead = map.length > 1 && lowest === highest;
  const share = rounded(100 * stats.zeros[channel], 0);
  const constant = say(
    "A channel whose map has the same value everywhere on this image; one that is zero on " +
      "every image is a dead channel.",
  );
  return {
    ...facts,
    numbers: [
      [say("minimum"), written(lowest), cellOf(strongestOf(map, -1))],
      [say("mean"), written(stats.mean[channel]), null],
      [say("maximum"), written(highest), cellOf(strongestOf(map))],
      [say("standard deviation"), written(Math.sqrt(stats.variance[channel])), null],
      [say("zeros"), say("{share:.0f} %").replace("{share:.0f}", String(share)), null],
      [say("rank by maximum"), say("{rank} of {count}", { rank, count: channels }), null],
    ],
    histogram: histogramOf(map, lowest, highest),
    dead: isDead ? say("constant here: every cell has the same value") : "",
    deadHint: isDead ? constant : "",
  };
};
