// The map of the whole network, as the page keeps it: its facts, and the small maps in the theme's colours.

import { indexedPng } from "./png.js";
import { chosen } from "./recorded.js";

/**
 * The answer to the question "whole"; null where the page keeps no map.
 * @param {ReturnType<typeof import("./blocks.js").blocksOf>} blocks
 * @param {import("./recorded.js").Wanted} wanted
 * @param {Uint8Array} colours of the theme, four bytes a level
 */
export const wholeOf = async (blocks, wanted, colours) => {
  const [kept, levels] = await Promise.all([blocks.facts("whole"), blocks.unpacked("small-maps")]);
  if (!kept) return null;
  const facts = chosen(kept, wanted);
  return { facts, data: levels ? indexedPng(levels, facts.sprite.width, colours) : new Uint8Array(0) };
};
