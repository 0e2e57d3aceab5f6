// Which part of the map is in the window: a point of the map in its upper left corner, and pixels a unit.

/**
 * @typedef {{left: number, top: number, width: number, height: number}} Box
 * @typedef {{x: number, y: number, scale: number}} Camera
 * @typedef {{width: number, height: number}} Room in pixels
 */

/**
 * The camera that has a box in the middle of the room, as large as can be.
 * @param {Box} box
 * @param {Room} room
 * @param {number} [margin] share of the room that is left free
 * @returns {Camera}
 */
export const fitted = (box, room, margin = 0.08) => {
  const free = 1 - margin;
  const scale = Math.min((room.width * free) / box.width, (room.height * free) / box.height);
  return {
    x: box.left + box.width / 2 - room.width / 2 / scale,
    y: box.top + box.height / 2 - room.height / 2 / scale,
    scale,
  };
};

/**
 * Where a box of the map lies in the room.
 * @param {Camera} camera
 * @param {Box} box
 * @returns {Box}
 */
export const onScreen = ({ x, y, scale }, { left, top, width, height }) => ({
  left: (left - x) * scale,
  top: (top - y) * scale,
  width: width * scale,
  height: height * scale,
});

/**
 * Nearer by a factor; what lies under the point stays there.
 * @param {Camera} camera
 * @param {number} factor
 * @param {{x: number, y: number}} point in the room
 * @returns {Camera}
 */
export const zoomed = ({ x, y, scale }, factor, point) => ({
  x: x + (point.x / scale) * (1 - 1 / factor),
  y: y + (point.y / scale) * (1 - 1 / factor),
  scale: scale * factor,
});

/**
 * Moved as a hand moves what it holds.
 * @param {Camera} camera
 * @param {number} across in pixels
 * @param {number} down
 * @returns {Camera}
 */
export const moved = ({ x, y, scale }, across, down) => ({ x: x - across / scale, y: y - down / scale, scale });

/**
 * The camera on the way from one to another: at a share of it the scale has grown by that share of the
 * whole factor, and one point of the map stays in its place.
 * @param {Camera} one
 * @param {Camera} other
 * @param {number} share
 * @returns {Camera}
 */
export const between = (one, other, share) => {
  if (share >= 1) return other;
  const factor = other.scale / one.scale;
  const scale = one.scale * factor ** share;
  // By how much of the way the corner has moved: as the width of what is in the room has shrunk.
  const along = Math.abs(factor - 1) < 1e-6 ? share : (1 - one.scale / scale) / (1 - 1 / factor);
  return { x: one.x + (other.x - one.x) * along, y: one.y + (other.y - one.y) * along, scale };
};

/**
 * Not so far away that the map gets lost, nor so near that a cell is larger than the room.
 * @param {Camera} camera
 * @param {Box} world
 * @param {Room} room
 * @param {number} most pixels a unit
 * @returns {Camera}
 */
export const limited = (camera, world, room, most) => {
  const least = fitted(world, room).scale;
  const scale = Math.min(most, Math.max(least, camera.scale));
  const middle = { x: room.width / 2, y: room.height / 2 };
  const { x, y } = scale === camera.scale ? camera : zoomed(camera, scale / camera.scale, middle);
  const held = (
    /** @type {number} */ at,
    /** @type {number} */ from,
    /** @type {number} */ long,
    /** @type {number} */ seen,
  ) => {
    const slack = Math.max(0, seen - long) / 2 + 0.25 * Math.min(seen, long);
    return Math.min(Math.max(at, from - slack), from + long - seen + slack);
  };
  return {
    x: held(x, world.left, world.width, room.width / scale),
    y: held(y, world.top, world.height, room.height / scale),
    scale,
  };
};

const FLIGHT = 450; // milliseconds from part to part

/**
 * Flights of a camera: the newest goes on alone, and none is made where motion is not wanted.
 * @param {(camera: Camera) => void} look
 */
export const flights = (look) => {
  let newest = 0;
  return {
    stop: () => {
      newest += 1;
    },
    /** @param {Camera} from @param {Camera} to */
    fly: (from, to) => {
      newest += 1;
      const mine = newest;
      if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) return look(to);
      const began = performance.now();
      const step = () => {
        if (mine !== newest) return;
        const share = Math.min(1, (performance.now() - began) / FLIGHT);
        look(between(from, to, share * share * (3 - 2 * share)));
        if (share < 1) requestAnimationFrame(step);
      };
      step();
    },
  };
};
