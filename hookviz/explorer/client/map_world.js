// Where the photograph, the network and its classes lie on the map: side by side, or in a window that is
// higher than wide one below the other.

/** @typedef {import("./map_camera.js").Box} Box */

const [GAP, EDGE] = [0.3, 0.2];

/**
 * The drawing of a network as it lies, and what is around it.
 * @param {any} network of the server's answer
 * @param {boolean} isTall
 */
export const worldOf = (network, isTall) => {
  const tall = isTall && network.parts ? network.tall : null;
  const drawn = tall
    ? {
        ...network,
        size: tall.size,
        lines: tall.lines,
        parts: network.parts.map((/** @type {any} */ part, /** @type {number} */ at) => {
          const [x, y] = tall.places[at];
          return { ...part, x, y };
        }),
      }
    : network;
  const [width, height] = drawn.size ?? [1, 1];
  const side = Math.min(3, Math.max(1.5, isTall ? width / 2 : height));
  const middle = height / 2;
  /** @type {Box} */
  const all = isTall
    ? { left: -EDGE, top: -side - GAP - EDGE, width: Math.max(width, side) + 2 * EDGE, height: 0 }
    : { left: -side - GAP - EDGE, top: Math.min(0, middle - side / 2), width: 0, height: Math.max(height, side) };
  if (isTall) all.height = height + 2 * (side + GAP + EDGE);
  else all.width = width + 2 * (side + GAP + EDGE);
  return {
    drawn,
    all,
    /** Through which points a line leads from the photograph, and one to the classes. */
    ends: /** @type {{enters: [number, number][], leaves: [number, number][]}} */ ({
      enters: isTall
        ? [[0, -GAP]]
        : [
            [-GAP, middle],
            [0, middle],
          ],
      leaves: isTall
        ? [[width, height + GAP]]
        : [
            [width, middle],
            [width + GAP, middle],
          ],
    }),
    /** @type {Box} */
    classes: isTall
      ? { left: 0, top: height + GAP, width: Math.max(width, side), height: side }
      : { left: width + GAP, top: middle - side / 2, width: side, height: side },
    /**
     * The box of a photograph of this size.
     * @param {number} wide
     * @param {number} high
     * @returns {Box}
     */
    photograph: (wide, high) => {
      const scale = side / Math.max(wide, high);
      const [across, down] = [wide * scale, high * scale];
      if (isTall) return { left: 0, top: -GAP - down, width: across, height: down };
      return { left: -GAP - across, top: middle - down / 2, width: across, height: down };
    },
  };
};
