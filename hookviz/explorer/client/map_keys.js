// Keys on the map: arrows lead from part to part, Enter goes in, Escape out, + and − zoom.

import { onScreen } from "./map_camera.js";
import { isNear } from "./map_painter.js";

/**
 * @typedef {import("./map_parts.js").Placed} Placed
 */

/**
 * Listen for keys on an element.
 * @param {HTMLElement} element
 * @param {{
 *   now: () => {root: Placed, chosen: Placed, camera: import("./map_camera.js").Camera,
 *     room: import("./map_camera.js").Room} | null,
 *   choose: (part: Placed) => void, enter: (part: Placed) => void, pick: (part: Placed) => void,
 *   show: (part: Placed) => void, zoom: (factor: number) => void, leave: () => boolean,
 * }} heard `show` brings a part into view whole, and `leave` returns whether there was something to leave
 */
export const keysOn = (element, { now, choose, enter, pick, show, zoom, leave }) => {
  element.onkeydown = (event) => {
    const scene = now();
    if (!scene || event.ctrlKey || event.metaKey || event.altKey) return;
    const { root, chosen, camera, room } = scene;
    const level = chosen.parent ?? root;
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (by) {
      const at = level.parts.indexOf(chosen) + by;
      const next = level.parts[Math.min(level.parts.length - 1, Math.max(0, at))];
      choose(next);
      const { left, top, width, height } = onScreen(camera, next.box);
      const isSeen = left >= 0 && top >= 0 && left + width <= room.width && top + height <= room.height;
      if (!isSeen) show(level);
    } else if (event.key === "Enter" || event.key === " ") {
      if (chosen.parts.length && chosen.parent) {
        enter(chosen);
        choose(chosen.parts[0]);
      } else if (chosen.facts.layer && !chosen.parts.length) {
        if (isNear(camera, chosen)) pick(chosen);
        else enter(chosen);
      } else if (!chosen.parent) choose(chosen.parts[0]);
    } else if (event.key === "Escape") {
      if (!leave()) return;
    } else if (event.key === "+" || event.key === "=") zoom(1.3);
    else if (event.key === "-") zoom(1 / 1.3);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
};
