// Hands on the map: one moves it, two pinch it, a wheel zooms, and one that hardly moved has clicked.

const STILL = 5; // pixels that a hand may travel and still click

/**
 * @typedef {{x: number, y: number}} Point from the element's upper left corner, in pixels
 */

/**
 * Listen for hands on an element.
 * @param {HTMLElement} element
 * @param {{
 *   begin: () => void, move: (across: number, down: number) => void, hover: (point: Point) => void,
 *   zoom: (factor: number, point: Point) => boolean, click: (point: Point) => void,
 * }} heard `zoom` returns whether it did, else a wheel is the page's
 */
export const handsOn = (element, { begin, move, hover, zoom, click }) => {
  /** @type {Map<number, Point>} */
  const hands = new Map();
  let travelled = 0;
  const pointOf = (/** @type {MouseEvent} */ event) => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left - element.clientLeft, y: event.clientY - box.top - element.clientTop };
  };
  element.onpointerdown = (event) => {
    if (event.button !== 0) return;
    begin();
    if (hands.size === 0) travelled = 0;
    hands.set(event.pointerId, pointOf(event));
    element.setPointerCapture(event.pointerId);
  };
  element.onpointermove = (event) => {
    const now = pointOf(event);
    const before = hands.get(event.pointerId);
    if (!before) return hover(now);
    const other = [...hands].find(([id]) => id !== event.pointerId)?.[1];
    const [across, down] = [now.x - before.x, now.y - before.y];
    travelled += Math.hypot(across, down);
    hands.set(event.pointerId, now);
    if (!other) return move(across, down);
    const [was, is] = [before, now].map((hand) => Math.hypot(hand.x - other.x, hand.y - other.y));
    if (was > 0) zoom(is / was, { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 });
  };
  element.onpointerup = (event) => {
    if (hands.delete(event.pointerId) && travelled < STILL) click(pointOf(event));
  };
  element.onpointercancel = (event) => {
    hands.delete(event.pointerId);
  };
  const wheel = (/** @type {WheelEvent} */ event) => {
    begin();
    if (zoom(1.0018 ** -event.deltaY, pointOf(event))) event.preventDefault();
  };
  element.addEventListener("wheel", wheel, { passive: false });
};
