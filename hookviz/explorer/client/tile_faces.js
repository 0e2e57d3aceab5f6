// Two activations in one sprite, B above A: which of them a tile shows, and how it is flipped while
// the key F or the button is held.

import { keysOf } from "./place.js";

const TYPED = "input:not([type='range']), textarea, select, [contenteditable]";

/**
 * The faces of a grid's tiles. Without a pair there is one, B.
 * @param {(selector: string) => any} find in the grid's frame
 * @param {() => void} repaint
 */
export const twoFaces = (find, repaint) => {
  const [split, slider, flip] = [".split", ".split input", ".flip"].map(find);
  const keys = keysOf(split);
  /** @type {any} */
  let pair = null;
  let high = 0; // pixels from a tile of B in the sprite to the same one of A
  let held = false;
  const hold = (now) => {
    if (!pair || held === now) return;
    held = now;
    flip.setAttribute("aria-pressed", String(held));
    repaint();
  };
  const face = () => (!pair ? "b" : !held ? pair.face : pair.face === "a" ? "b" : "a");
  slider.value = 50;
  slider.oninput = repaint;
  flip.onpointerdown = () => hold(true);
  flip.onpointerup = flip.onpointerleave = flip.onpointercancel = flip.onblur = () => hold(false);
  flip.onkeydown = flip.onkeyup = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== " " && event.key !== "Enter") return;
    event.preventDefault();
    hold(event.type === "keydown");
  };
  const key = (event) => {
    if (event.key.toLowerCase() !== "f" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.composedPath()[0].closest?.(TYPED)) return;
    hold(event.type === "keydown");
  };
  const letGo = () => hold(false);
  const end = () => {
    keys.removeEventListener("keydown", key);
    keys.removeEventListener("keyup", key);
    window.removeEventListener("blur", letGo);
  };
  return {
    show: (facts) => {
      pair = facts.pair ?? null;
      high = facts.geometry.height;
      // Where two stand cell against cell both keep their room, so that nothing beside them jumps.
      split.hidden = flip.hidden = !pair && !facts.compare?.alike;
      split.style.visibility = pair?.face === "split" ? "" : "hidden";
      flip.style.visibility = pair ? "" : "hidden";
      end();
      if (!pair) return void (held = false);
      keys.addEventListener("keydown", key);
      keys.addEventListener("keyup", key);
      window.addEventListener("blur", letGo);
    },
    // Pixels from a tile of B to the same one of A.
    below: () => (pair ? high : 0),
    is: () => `${face()} ${face() === "split" ? slider.value : ""}`,
    paint: (paintTile, pen, from, to, size, density) => {
      const ofA = [from[0], from[1] + high];
      paintTile(pen, face() === "a" ? ofA : from, to, size, density);
      if (face() !== "split") return;
      pen.save();
      pen.beginPath();
      pen.rect(...to, (size[0] * slider.value) / 100, size[1]);
      pen.clip();
      paintTile(pen, ofA, to, size, density);
      pen.restore();
    },
    end,
  };
};
