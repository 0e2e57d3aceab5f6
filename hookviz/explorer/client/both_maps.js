// The map of the picked channel, and beside it the one of A where a pair is looked at, and how far the
// two differ where the tiles show that.

import { channelMap } from "./channel_map.js";
import { changed, pairOfMaps, valuesOf } from "./pair.js";
import { decoded } from "./pictures.js";
import { say } from "./shared.js";

const blank = () => document.createElement("canvas");

/**
 * @param {(selector: string) => any} find in the inspector's frame
 * @param {{
 *   tileOf: (channel: number, of?: "a" | "b") => HTMLCanvasElement | null,
 *   valueAt: (channel: number, row: number, column: number) => number | null,
 *   picked: (cell: [number, number]) => void,
 *   came: () => void,
 * }} heard what the tiles know; what a person looks at; and that a picture is there to be drawn
 */
export function bothMaps(find, { tileOf, valueAt, picked, came }) {
  const map = channelMap(find(".map-b"), picked);
  /** @type {ReturnType<typeof pairOfMaps> | null} */
  let pair = null; // as long as there is one
  /** @type {Map<string, {of: string, picture: CanvasImageSource}>} */
  const painted = new Map();
  let now = ""; // what is shown
  /** @type {ReturnType<typeof channelMap> | null} */
  let difference = null;

  /**
   * A side's picture: at once from the tiles, or as soon as it is unpacked. Until the tiles' own is
   * there, null leaves what is painted; what takes a question longer is blank.
   * @param {"a" | "b"} side
   * @param {string | undefined} source
   * @param {number} channel
   * @param {boolean} hasTiles
   */
  const pictureOf = (side, source, channel, hasTiles) => {
    const tile = hasTiles ? tileOf(channel, side) : null;
    if (tile) return tile;
    const [known, of] = [painted.get(side), now];
    if (known?.of === of) return known.picture;
    if (source) {
      const keep = (/** @type {CanvasImageSource} */ picture) => {
        painted.set(side, { of, picture });
        if (of === now) came();
      };
      decoded(source).then(keep, () => keep(blank()));
    }
    return hasTiles ? null : blank();
  };

  return {
    /**
     * Show the maps; returns the picture of the one of B, a pixel for a cell, or null where it is on its way.
     * @param {{channel: number, rows: number, columns: number, cell: [number, number], isOfA: boolean}} at
     * @param {{key: string, answer: Facts | null, tiles: Facts, isPair: boolean}} of what its pictures
     * depend on; the answer to the question "channel" as soon as it is there; the one to "tiles"
     */
    show({ channel, rows, columns, cell, isOfA }, { key, answer, tiles, isPair }) {
      now = `${key} ${channel} ${isOfA}`;
      const hasTiles = !tiles.isPatches && !tiles.isDifference;
      const about = hasTiles ? (row, column) => valueAt(channel, row, column) : undefined;
      const { bar, ticks } = answer ?? tiles;
      const says =
        answer?.says ?? say("The map of channel {channel}: arrow keys move, Enter looks at a cell.", { channel });
      const shown = { rows, columns, cell, says, bar, ticks, about, values: valuesOf(answer), digits: answer?.digits };
      const picture = pictureOf("b", answer?.picture, channel, hasTiles);
      map.show({ ...shown, picture });
      if (!isPair) {
        pair?.end();
        pair = null;
        return picture;
      }
      pair ??= pairOfMaps(find(".map-a"), find(".in-common"), picked);
      const ofA = pictureOf("a", answer?.pair?.a?.picture, channel, hasTiles);
      pair.show({ ...shown, about: undefined, picture: ofA }, answer);
      if (tiles.isDifference) {
        difference ??= channelMap(find(".map-difference"), picked);
        difference.show({
          ...shown,
          ...{ bar: tiles.bar, ticks: tiles.ticks }, // of its own scale
          values: changed(valuesOf(answer?.pair?.a), valuesOf(answer)),
          about: (row, column) => valueAt(channel, row, column),
          picture: tileOf(channel),
        });
      }
      return picture;
    },
  };
}
