// Where on the photograph a cell looks, and where the network's input lies on it: as shares of the
// photograph's sides, from its top left corner.

/**
 * Top, left, bottom and right.
 * @typedef {[number, number, number, number]} Box
 */

/**
 * What a cell sees of the photograph; null where that is not known.
 * @param {Facts | null} field the answer to the question of that name
 * @param {[number, number]} cell
 * @returns {Box | null}
 */
export const boxOf = (field, [row, column]) => {
  if (field?.boxes) return field.boxes[row]?.[column] ?? null;
  const [down, across] = [field?.rows?.[row], field?.columns?.[column]];
  return down && across ? [down[0], across[0], down[1], across[1]] : null;
};

/**
 * A rectangle that lies over the photograph, as style; it may reach past the photograph's edges.
 * @param {{top: number, left: number, bottom: number, right: number}} crop
 */
export const over = ({ top, left, bottom, right }) => ({
  top: `${100 * top}%`,
  left: `${100 * left}%`,
  width: `${100 * (right - left)}%`,
  height: `${100 * (bottom - top)}%`,
});

const EDGE = 4; // pixels of a frame's line, which stands around what it frames

/**
 * A frame around a rectangle, as style: it is never outside of the photograph.
 * @param {Box} box
 */
export const around = ([top, left, bottom, right]) => {
  const inside = (/** @type {number} */ share) => `max(0px, ${100 * Math.min(1, Math.max(0, share))}% - ${EDGE}px)`;
  return { top: inside(top), left: inside(left), bottom: inside(1 - bottom), right: inside(1 - right) };
};
