// Paints a network's map: cards, the ways between them, what is in a block once it is large enough.

import { inWords } from "./address.js";
import { onScreen } from "./map_camera.js";
import { mapEnds } from "./map_ends.js";
import { boardOf, channelSteps } from "./map_parts.js";
import { typeSize } from "./shared.js";
import { inSprite } from "./tiles.js";

/**
 * @typedef {import("./map_camera.js").Box} Box
 * @typedef {import("./map_camera.js").Camera} Camera
 * @typedef {import("./map_parts.js").Placed} Placed
 * @typedef {object} Scene what is painted
 * @property {Camera} camera
 * @property {import("./map_camera.js").Room} room
 * @property {Placed} root
 * @property {HTMLImageElement | null} sprite small maps of all layers
 * @property {any} geometry of that picture, as of tiles
 * @property {(part: Placed) => Tiles | null} tilesOf all channels of a layer, where they are there
 * @property {Placed | null} chosen
 * @property {number} reached the last step that has run, while the pass is played
 * @property {number | null} channel that is picked up of the chosen layer
 * @property {HTMLImageElement | null} photograph
 * @property {Box} photographBox
 * @property {{top: number, left: number, bottom: number, right: number} | null} sees shares of the photograph
 * @property {import("./class_paths.js").Lit | null} lit what a class needs, of the one that is lit
 * @property {{name: string, number: number, share: number, says: string}[]} classes
 * @property {Box} classesBox
 * @typedef {{picture: HTMLImageElement, geometry: any, order: number[]}} Tiles
 */

const OPEN = 84; // pixels of a block's card from which one sees into it
const NEAR = 170; // pixels of a layer's card from which all its channels are shown
const LEAST = 3; // pixels below which a card is a dot
const BEHIND = 2.5; // pixels from card to card of those that tell how many channels there are
const WIDEST = 9; // pixels of a line along which all goes that a class needs
const SIGNS = /** @type {Record<string, string>} */ ({ add: "+", iadd: "+", cat: "⧺", mul: "×", imul: "×" });

/** @param {Camera} camera @param {Placed} part */
export const isOpen = (camera, part) =>
  part.parts.length > 0 && Math.min(part.box.width, part.box.height * 2) * camera.scale > OPEN;

/** Whether all channels of a layer are shown. @param {Camera} camera @param {Placed} part */
export const isNear = (camera, part) =>
  part.facts.layer !== undefined && !part.parts.length && part.box.height * camera.scale > NEAR;

/**
 * What paints scenes onto a canvas; its colours are those of the page.
 * @param {HTMLCanvasElement} canvas
 * @param {CanvasRenderingContext2D} pen
 */
export const mapPainter = (canvas, pen) => {
  const colours = {
    text: "#222",
    card: "#f2f4f7",
    line: "#98a2b3",
    accent: "#d6336c",
    font: "sans-serif",
  };
  const ends = mapEnds(pen);
  let least = 11;
  const dress = () => {
    const style = getComputedStyle(canvas);
    const of = (/** @type {string} */ name, /** @type {string} */ other) =>
      style.getPropertyValue(name).trim() || other;
    colours.text = of("--st-text-color", style.color || "#222");
    colours.card = of("--st-secondary-background-color", "#f2f4f7");
    colours.accent = of("--hv-accent", "#d6336c");
    colours.font = of("--st-font", "sans-serif");
    least = typeSize(canvas, 12);
  };

  /** @param {Scene} scene */
  return (scene) => {
    dress();
    const { camera, room } = scene;
    const density = canvas.width / room.width;
    pen.setTransform(density, 0, 0, density, 0, 0);
    pen.clearRect(0, 0, room.width, room.height);
    pen.imageSmoothingEnabled = false;
    const seen = (/** @type {Box} */ { left, top, width, height }) =>
      left < room.width && top < room.height && left + width > 0 && top + height > 0;

    const write = (
      /** @type {string} */ words,
      /** @type {number} */ x,
      /** @type {number} */ y,
      /** @type {number} */ most,
    ) => {
      let text = words;
      if (pen.measureText(text).width > most) {
        const share = most / pen.measureText(text).width;
        text = `${text.slice(0, Math.max(1, Math.floor(text.length * share) - 1))}…`;
        if (text.length < 4) return;
      }
      pen.fillText(text, x, y);
    };

    const lines = (/** @type {Placed} */ part) => {
      for (const line of part.lines) {
        const { from, to, points } = line;
        const at = points.map(([x, y]) => [(x - camera.x) * camera.scale, (y - camera.y) * camera.scale]);
        const [end, start] = [/** @type {number[]} */ (at.at(-1)), at[0]];
        if (end[0] < 0 || start[0] > room.width) continue;
        const steps = [part.parts[from], part.parts[to]].filter(Boolean);
        const isAhead = steps.some(({ first }) => first > scene.reached);
        pen.globalAlpha = isAhead ? 0.12 : part.lines.length > 100 ? 0.16 : 0.4;
        const share = scene.lit?.along(part, line) ?? 0;
        pen.strokeStyle = share ? colours.accent : colours.text;
        pen.lineWidth = Math.max(1, WIDEST * share);
        if (scene.lit && !isAhead) pen.globalAlpha = share ? 0.4 + 0.5 * share : 0.12;
        pen.beginPath();
        pen.moveTo(start[0], start[1]);
        for (let next = 1; next < at.length; next += 1) {
          const [[x0, y0], [x, y]] = [at[next - 1], at[next]];
          const middle = (x0 + x) / 2;
          if (Math.abs(y - y0) < 0.5) pen.lineTo(x, y);
          else pen.bezierCurveTo(middle, y0, middle, y, x, y);
        }
        pen.stroke();
      }
      pen.globalAlpha = 1;
      pen.lineWidth = 1;
    };

    const smallMap = (
      /** @type {{sprite: HTMLImageElement | null, geometry: any}} */ { sprite, geometry },
      /** @type {number} */ position,
      /** @type {Box} */ box,
    ) => {
      if (!sprite || !geometry) return;
      const [rows, columns] = geometry.tile;
      const [left, top] = inSprite(geometry, position);
      pen.drawImage(sprite, left, top, columns, rows, box.left, box.top, box.width, box.height);
    };

    // The strongest channels, or those that the class needs, one below the other, as many as there is room for.
    const stack = (/** @type {Placed} */ part, /** @type {Box} */ box) => {
      const needed = scene.lit?.layer(part);
      const facts = needed ?? part.facts;
      const [rows, columns] = /** @type {[number, number]} */ (scene.geometry?.tile ?? [1, 1]);
      const fits = Math.min(box.width, (box.height * columns) / rows);
      const high = (fits * rows) / columns;
      const count = Math.max(1, Math.min(facts.channels.length, Math.floor(box.height / high + 0.01)));
      const size = Math.min(box.height / count, high) * 0.94;
      const wide = (size * columns) / rows;
      for (let at = 0; at < count; at += 1) {
        const middle = box.top + (box.height * (at + 0.5)) / count;
        const tile = { left: box.left + (box.width - wide) / 2, top: middle - size / 2, width: wide, height: size };
        smallMap(needed && scene.lit ? scene.lit : scene, facts.tile + at, tile);
      }
    };

    // All channels of a layer, each where its square lies.
    const board = (/** @type {Placed} */ part, /** @type {Tiles} */ tiles) => {
      const { picture, geometry } = tiles;
      const [rows, columns] = geometry.tile;
      const lie = boardOf(part);
      const needed = scene.lit && new Map(scene.lit.layer(part)?.shares);
      const most = Math.max(...(needed?.values() ?? []));
      for (let at = 0; at < tiles.order.length; at += 1) {
        const box = onScreen(camera, lie.boxOf(at));
        if (!seen(box)) continue;
        const [left, top] = inSprite(geometry, at);
        pen.imageSmoothingEnabled = box.width < columns;
        const share = needed?.get(tiles.order[at]) ?? 0;
        const isPicked = scene.chosen === part && scene.channel === tiles.order[at];
        pen.globalAlpha = needed && !share && !isPicked ? 0.3 : 1;
        pen.drawImage(picture, left, top, columns, rows, box.left, box.top, box.width, box.height);
        pen.globalAlpha = 1;
        if (share) {
          pen.fillStyle = colours.accent; // its bar, beside that of the one that is needed most
          pen.fillRect(box.left, box.top + box.height - 3, (box.width * share) / most, 3);
        }
        if (isPicked) {
          pen.strokeStyle = colours.accent;
          pen.lineWidth = 3;
          pen.strokeRect(box.left - 1, box.top - 1, box.width + 2, box.height + 2);
          pen.lineWidth = 1;
        }
      }
      pen.imageSmoothingEnabled = false;
    };

    const join = (/** @type {Placed} */ part, /** @type {Box} */ { left, top, width, height }) => {
      const radius = Math.min(width, height) / 2;
      pen.beginPath();
      pen.arc(left + width / 2, top + height / 2, radius, 0, 2 * Math.PI);
      pen.fillStyle = colours.card;
      pen.fill();
      pen.strokeStyle = colours.text;
      pen.stroke();
      if (radius < 5) return;
      const name = part.facts.name.split("#")[0];
      pen.fillStyle = colours.text;
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      pen.font = `${Math.min(28, radius * 1.3)}px ${colours.font}`;
      pen.fillText(SIGNS[name] ?? name.slice(0, 3), left + width / 2, top + height / 2);
    };

    // Edges of cards behind a layer's: the more, the more channels it has.
    const behind = (/** @type {Placed} */ part, /** @type {Box} */ { left, top, width, height }) => {
      const apart = Math.min(BEHIND, width * 0.04);
      const count = channelSteps(part);
      pen.strokeStyle = colours.line;
      pen.beginPath();
      for (let at = 1; at <= count; at += 1) {
        const [across, up] = [left + at * apart, top - at * apart];
        pen.moveTo(across, up);
        pen.lineTo(across + width, up);
        pen.lineTo(across + width, up + height);
      }
      pen.stroke();
    };

    const card = (/** @type {Placed} */ part) => {
      const box = onScreen(camera, part.box);
      if (!seen(box)) return;
      const { facts } = part;
      const isPale = part.first > scene.reached || scene.lit?.into(part) === 0;
      pen.globalAlpha = isPale ? 0.25 : 1;
      if (box.width < LEAST) {
        pen.fillStyle = colours.line;
        pen.fillRect(box.left, box.top, Math.max(1, box.width), Math.max(1, box.height));
        pen.globalAlpha = 1;
        return;
      }
      const opened = isOpen(camera, part);
      if (part.parent && !facts.kind) {
        join(part, box);
      } else if (part.parent) {
        if (!opened) behind(part, box);
        pen.fillStyle = colours.card;
        pen.globalAlpha *= opened ? 0.5 : 1;
        pen.beginPath();
        pen.roundRect(box.left, box.top, box.width, box.height, Math.min(8, box.width * 0.05));
        pen.fill();
        pen.globalAlpha = isPale ? 0.25 : 1;
        const isRunning = scene.reached < Infinity && part.first <= scene.reached && scene.reached <= part.last;
        pen.strokeStyle = scene.chosen === part || isRunning ? colours.accent : colours.line;
        pen.lineWidth = scene.chosen === part ? 3 : 1;
        pen.stroke();
        pen.lineWidth = 1;
        const inner = {
          left: box.left + box.width * 0.04,
          top: box.top + box.width * 0.04,
          width: box.width * 0.92,
          height: box.height - box.width * 0.08,
        };
        const tiles = isNear(camera, part) ? scene.tilesOf(part) : null;
        if (tiles) board(part, tiles);
        else if (!opened && facts.tile !== undefined) stack(part, inner);
        else if (!opened && !part.parts.length) plain(part, box);
        if (box.width > 34) name(part, box);
      }
      pen.globalAlpha = 1;
      if (part.parent && !opened) return;
      lines(part);
      for (const each of part.parts) card(each);
    };

    // A layer that puts out no maps: a bar, with what it puts out where there is room.
    const plain = (/** @type {Placed} */ part, /** @type {Box} */ { left, top, width, height }) => {
      pen.fillStyle = colours.line;
      pen.fillRect(left + width * 0.4, top + height * 0.1, width * 0.2, height * 0.8);
      if (width < 60) return;
      pen.fillStyle = colours.text;
      pen.textAlign = "center";
      pen.textBaseline = "bottom";
      pen.font = `${least}px ${colours.font}`;
      write(part.facts.shape, left + width / 2, top + height - 4, width - 8);
    };

    const name = (/** @type {Placed} */ part, /** @type {Box} */ { left, top, width }) => {
      pen.font = `${least}px ${colours.font}`;
      pen.fillStyle = colours.text;
      pen.textAlign = "left";
      pen.textBaseline = "bottom";
      const around = part.parent?.facts.name;
      const whole = part.facts.name;
      let words = inWords(whole.startsWith(`${around}.`) ? whole.slice(around.length + 1) : whole);
      // Neighbours differ at the end of their names.
      while (words.includes(".") && pen.measureText(words).width > width + 6) {
        words = `…${words.replace(/^…?[^.]*\./, "")}`;
      }
      const deep = isOpen(camera, part) ? 0 : channelSteps(part) * Math.min(BEHIND, width * 0.04);
      write(words, left, top - deep - 3, width + 6);
    };

    card(scene.root);
    ends(scene, colours, seen, write);
  };
};
