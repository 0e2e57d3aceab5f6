// The parts of a network's map, each with its place on the map as a whole.

import { inWords } from "./address.js";
import { onScreen } from "./map_camera.js";
import { say } from "./shared.js";

/**
 * @typedef {import("./map_camera.js").Box} Box
 * @typedef {object} Placed
 * @property {any} facts of the server's answer
 * @property {Box} box on the map
 * @property {Placed | null} parent
 * @property {Placed[]} parts
 * @property {{from: number, to: number, points: [number, number][]}[]} lines
 * @property {number} first the number of its first step, from 1
 * @property {number} last
 */

const PADDING = 0.05; // of a block's card around the drawing in it

/**
 * Put the nested drawings of the server's answer onto one map.
 * @param {any} network
 * @param {{enters: [number, number][], leaves: [number, number][]}} [ends] points from the photograph, and to the
 *   classes
 */
export const placed = (network, ends) => {
  /** @type {Map<string, Placed>} */
  const byName = new Map();
  let steps = 0;
  /** @type {(facts: any, box: Box, parent: Placed | null) => Placed} */
  const put = (facts, box, parent) => {
    /** @type {Placed} */
    const here = { facts, box, parent, parts: [], lines: [], first: steps + 1, last: steps + 1 };
    if (facts.kind || !parent) byName.set(facts.name || "/", here); // a function may share a module's name
    if (!facts.parts) {
      steps += 1;
      return here;
    }
    const [wide, high] = facts.size;
    const free = parent ? 1 - 2 * PADDING : 1;
    const scale = Math.min((box.width * free) / wide, (box.height * free) / high);
    const left = box.left + (box.width - wide * scale) / 2;
    const top = box.top + (box.height - high * scale) / 2;
    here.parts = facts.parts.map((/** @type {any} */ part) =>
      put(
        part,
        { left: left + part.x * scale, top: top + part.y * scale, width: part.w * scale, height: part.h * scale },
        here,
      ),
    );
    here.lines = facts.lines.map((/** @type {[number, number, number[]]} */ [from, to, flat]) => {
      /** @type {[number, number][]} */
      const points = [];
      for (let at = 0; at < flat.length; at += 2) points.push([left + flat[at] * scale, top + flat[at + 1] * scale]);
      // At the border of the card, which is around the drawing: where the line outside of it ends.
      const middle = box.top + box.height / 2;
      const { enters = [[box.left, middle]], leaves = [[box.left + box.width, middle]] } = (!parent && ends) || {};
      if (from < 0) points.unshift(...enters);
      if (to < 0) points.push(...leaves);
      return { from, to, points };
    });
    here.last = steps;
    return here;
  };
  const [width, height] = network.size ?? [1, 1];
  const root = put(network, { left: 0, top: 0, width, height }, null);
  return { root, byName, steps };
};

/**
 * The layer or join that a step is.
 * @param {Placed} part
 * @param {number} step
 * @returns {Placed}
 */
export const leafAt = (part, step) => {
  const inner = part.parts.find(({ first, last }) => first <= step && step <= last);
  return inner ? leafAt(inner, step) : part;
};

/**
 * The innermost part under a point of the map, as far as parts are open.
 * @param {Placed} part
 * @param {{x: number, y: number}} point
 * @param {(part: Placed) => boolean} isOpen
 * @returns {Placed}
 */
export const partUnder = (part, point, isOpen) => {
  if (part.parent && !isOpen(part)) return part;
  const inner = part.parts.find(
    ({ box: { left, top, width, height } }) =>
      point.x >= left && point.x <= left + width && point.y >= top && point.y <= top + height,
  );
  return inner ? partUnder(inner, point, isOpen) : part;
};

const AROUND = 0.6; // of the window's width or height that a part takes which one is inside of

/**
 * The innermost part that one is inside of: it has the window's middle in it, and takes most of the window.
 * @param {Placed} part
 * @param {import("./map_camera.js").Camera} camera
 * @param {import("./map_camera.js").Room} room
 * @returns {Placed}
 */
export const partAround = (part, camera, room) => {
  const isAround = (/** @type {Placed} */ { facts, box }) => {
    const { left, top, width, height } = onScreen(camera, box);
    const [across, down] = [room.width / 2, room.height / 2];
    const hasMiddle = left <= across && top <= down && left + width >= across && top + height >= down;
    return Boolean(facts.kind) && hasMiddle && Math.max(width / room.width, height / room.height) > AROUND;
  };
  const inner = part.parts.find(isAround);
  return inner ? partAround(inner, camera, room) : part;
};

/**
 * How deep a layer's card is: 1 for a few channels, and one more each time that they are four times as many.
 * @param {Placed} part
 */
export const channelSteps = ({ facts: { maps } }) => (maps ? Math.max(1, Math.round(Math.log2(maps[0]) / 2)) : 0);

/**
 * How the channels of a layer lie in its card: as squares of one size, in rows.
 * @param {Box} box
 * @param {number} count
 * @param {number} aspect width over height of one
 */
export const channelsIn = (box, count, aspect) => {
  let best = { columns: 1, wide: 0 };
  const at = Math.sqrt((count * box.width) / box.height / aspect);
  for (const columns of [Math.floor(at), Math.ceil(at), Math.ceil(at) + 1]) {
    if (columns < 1) continue;
    const rows = Math.ceil(count / columns);
    const wide = Math.min(box.width / columns, (box.height / rows) * aspect);
    if (wide > best.wide) best = { columns, wide };
  }
  const { columns, wide } = best;
  const high = wide / aspect;
  const rows = Math.ceil(count / columns);
  const left = box.left + (box.width - Math.min(columns, count) * wide) / 2;
  const top = box.top + (box.height - rows * high) / 2;
  const gap = 0.06;
  return {
    /** @param {number} position @returns {Box} */
    boxOf: (position) => ({
      left: left + ((position % columns) + gap / 2) * wide,
      top: top + (Math.floor(position / columns) + gap / 2) * high,
      width: wide * (1 - gap),
      height: high * (1 - gap),
    }),
    /** @param {{x: number, y: number}} point @returns {number | null} */
    under: ({ x, y }) => {
      const [column, row] = [Math.floor((x - left) / wide), Math.floor((y - top) / high)];
      const position = row * columns + column;
      return column >= 0 && column < columns && row >= 0 && position < count ? position : null;
    },
  };
};

/** What a part is, for who can't see it. @param {Placed} part */
export const described = (part) => {
  const { kind, shape } = part.facts;
  const name = inWords(part.facts.name);
  if (!kind) return say("{name}: joins branches", { name: name || say("network") });
  const count = part.parts.length;
  const does = count
    ? say("{name}: {kind}, {count} parts, puts out {shape}", { name, kind, count, shape })
    : say("{name}: {kind}, puts out {shape}", { name, kind, shape });
  const { parent } = part;
  if (!parent || parent.lines.some(({ to }) => parent.parts[to] === part)) return does;
  const why = say("No line leads here: its input is made of nothing before it, or in a way that torch does not see.");
  return `${does}. ${why}`;
};

/** How a layer's channels lie in its card. @param {Placed} part */
export const boardOf = (part) => {
  const [count, rows, columns] = part.facts.maps;
  const { left, top, width, height } = part.box;
  const edge = 0.03 * width;
  const inner = { left: left + edge, top: top + edge, width: width - 2 * edge, height: height - 2 * edge };
  return channelsIn(inner, count, columns / rows);
};
