// The pass from left to right, layer after layer: played, paused, or held by hand.

import { say } from "./shared.js";

const PASS = 10000; // milliseconds that it is played in

/**
 * @param {HTMLElement} button plays and pauses; a sign and a word
 * @param {HTMLInputElement} depth how far the pass is, in steps
 * @param {(step: number) => void} reach shows the pass as far as that
 */
export const passPlayer = (button, depth, reach) => {
  const [sign, word] = /** @type {HTMLElement[]} */ ([...button.children]);
  let steps = 0;
  let isPlaying = false;
  const show = (/** @type {boolean} */ is) => {
    isPlaying = is;
    sign.textContent = is ? "❚❚" : "▶";
    word.textContent = is ? say("Pause") : say("Play");
  };
  const to = (/** @type {number} */ step) => {
    depth.value = String(step);
    reach(step);
  };
  const pause = () => show(false);
  button.onclick = () => {
    if (isPlaying || !steps) return pause();
    const begun = Number(depth.value) >= steps ? 0 : Number(depth.value);
    const began = performance.now() - (PASS * begun) / steps;
    show(true);
    const step = () => {
      if (!isPlaying) return;
      const at = Math.min(steps, Math.floor(((performance.now() - began) / PASS) * steps));
      to(at);
      if (at >= steps) return pause();
      requestAnimationFrame(step);
    };
    step();
  };
  depth.oninput = () => {
    pause();
    reach(Number(depth.value));
  };
  return {
    /** All of the pass has run. @param {number} count of its steps */
    of: (count) => {
      steps = count;
      depth.max = String(count); // first, for it bounds the value
      depth.value = depth.max;
    },
    pause,
  };
};
