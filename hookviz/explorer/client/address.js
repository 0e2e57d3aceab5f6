// The address of an activation, as Python writes it: `layer`, `layer#1`, `layer[0]`, `layer#1[mask]`.

import { say } from "./shared.js";

const WRITTEN = /^((?:[^\\#[\]]|\\.)*)(?:#[0-9]{1,9})?(?:\[(?:[^\\#[\]]|\\.)*\])*$/s;

/**
 * The layer of an address; any other text stands for the layer of that name.
 * @param {string} text
 */
export const layerOf = (text) => {
  const found = WRITTEN.exec(text);
  return found ? found[1].replace(/\\(.)/gs, "$1") : text;
};

/**
 * An address as people read it: its calls are counted from 1, where Python counts from 0.
 * @param {string} text
 */
export const inWords = (text) =>
  text.replace(/^((?:[^\\#]|\\.)*)#([0-9]{1,9})/s, (_, layer, call) =>
    say("{layer}, call {number}", { layer, number: Number(call) + 1 }),
  );
