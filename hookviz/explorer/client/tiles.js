// The sprite that holds every tile once, a pixel for a cell: where a tile is in it, how it is painted,
// and how a value is read from its colour.

import { number, penOf, say } from "./shared.js";

/**
 * The tiles in the order that a view asks for, and as many as it shows. The picture that holds them is the
 * same: of its tiles `places` has the one that is shown at each position.
 * @param {any} facts the server's answer about the tiles
 * @param {Record<string, string>} view
 */
export const arranged = (facts, { sort = "index", top = "all" }) => {
  if (!facts.orders) return { ...facts, shown: facts.shown.all };
  const known = top in facts.shown ? top : "all";
  const order = (facts.orders[sort] ?? facts.order).slice(0, known === "all" ? undefined : Number(known));
  const each = (/** @type {Record<string, any[]>} */ numbers) =>
    Object.fromEntries(Object.entries(numbers).map(([name, of]) => [name, order.map((channel) => of[channel])]));
  return {
    ...facts,
    order,
    shown: facts.shown[known],
    geometry: { ...facts.geometry, places: order }, // for it has every channel of the layer
    stats: each(facts.stats),
    limits: each(facts.limits),
    pair: facts.pair && { ...facts.pair, stats: each(facts.pair.stats) },
  };
};

// The corner in the sprite of the tile that is shown at a position.
export const inSprite = ({ columns, pitch, places }, at) => {
  const place = places ? places[at] : at;
  return [(place % columns) * pitch[1], Math.floor(place / columns) * pitch[0]];
};

// Draws a tile of the sprite: shrunk by area, or grown as squares of one size. For that it is grown
// by a whole number first, and shrunk from there.
export const tilePainter = (picture, { tile: [rows, columns] }) => {
  const grown = penOf(document.createElement("canvas"));
  return (pen, [left, top], [x, y], [wide, high], density) => {
    const factor = Math.ceil((wide * density) / columns);
    const [across, down] = [columns * factor, rows * factor];
    if (grown.canvas.width !== across) [grown.canvas.width, grown.canvas.height] = [across, down];
    grown.imageSmoothingEnabled = false;
    grown.clearRect(0, 0, across, down);
    grown.drawImage(picture, left, top, columns, rows, 0, 0, across, down);
    pen.imageSmoothingEnabled = true;
    pen.imageSmoothingQuality = "high";
    pen.drawImage(grown.canvas, 0, 0, across, down, x, y, wide, high);
  };
};

/**
 * Reads the value that a pixel's colour stands for, to one step of the colour bar: NaN and Infinity have
 * colours of their own, and where there is no value it is null. Where the values themselves are there
 * they are read.
 * @param {CanvasImageSource} picture
 * @param {any} data
 * @returns {(at: number, cell: number[], below?: number) => number | null}
 */
export const colourReader = (picture, data) => {
  if (data.exact) return (at, [row, column]) => data.exact(data.order[at], row, column);
  const sample = penOf(document.createElement("canvas"), { willReadFrequently: true });
  [sample.canvas.width, sample.canvas.height] = [1, 1];
  const { geometry: sprite, limits, levels } = data;
  return (at, cell, below = 0) => {
    const [left, top] = inSprite(sprite, at);
    sample.clearRect(0, 0, 1, 1);
    sample.drawImage(picture, left + cell[1], top + cell[0] + below, 1, 1, 0, 0, 1, 1);
    const [red, green, blue, alpha] = sample.getImageData(0, 0, 1, 1).data;
    if (alpha === 0) return null;
    const level = data.palette.indexOf((red << 16) | (green << 8) | blue);
    if (level === data.nan) return Number.NaN;
    if (level === data.infinity) return Infinity;
    if (level < 0) return null;
    const [low, high] = [limits.low[at], limits.high[at]];
    return low + ((level + 0.5) / levels) * (high - low);
  };
};

/**
 * A value as it was read from a colour, for people.
 * @param {number | null} value
 */
export const nearly = (value) => {
  if (value === null) return null;
  if (Number.isNaN(value)) return "NaN";
  return Number.isFinite(value) ? `≈ ${number(value)}` : "infinite";
};

/**
 * What is said of a tile where nothing points into it.
 * @param {any} facts of the tiles
 * @param {number} position
 */
export const described = ({ order, pair, stats }, position) => {
  const channel = order[position];
  if (pair) {
    const [a, b] = [pair.stats, stats].map((of) => number(of.mean[position]));
    return say("channel {channel} · mean A {a} · B {b}", { channel, a, b });
  }
  const { lowest, mean, highest, zeros } = stats;
  return say("channel {channel} · min {low} · mean {mean} · max {high} · {zeros} % zeros", {
    channel,
    low: number(lowest[position]),
    mean: number(mean[position]),
    high: number(highest[position]),
    zeros: Math.round(zeros[position] * 100),
  });
};
