// The keys of the grid: arrows, Home and End move the cursor, Enter picks, "/" jumps, +, − and 0 zoom.

import { say } from "./shared.js";

const TYPED = "input:not([type='checkbox'], [type='radio'], [type='range']), textarea, [contenteditable]";
const BUSY = "input, textarea, select, button, a, [role='slider'], [role='radio'], [contenteditable]";

/**
 * Keys of a grid, on its stage and in the field that jumps to a channel.
 * @param {(selector: string) => any} find in the grid's frame
 * @param {{
 *   columns: () => number,
 *   count: () => number,
 *   at: () => number,
 *   goTo: (position: number) => void,
 *   select: () => void,
 *   zoomBy: (factor: number) => void,
 *   positionOf: (channel: number) => number,
 * }} grid
 */
export const gridKeys = (find, grid) => {
  const [stage, label, jump, output] = [".stage", ".jump", ".jump input", "output"].map(find);

  const act = (key) => {
    const columns = grid.columns();
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
    if (key in steps) {
      const next = grid.at() + steps[key];
      if (next >= 0 && next < grid.count()) grid.goTo(next);
    } else if (key === "Home") grid.goTo(0);
    else if (key === "End") grid.goTo(grid.count() - 1);
    else if (key === "Enter" || key === " ") grid.select();
    else if (key === "+" || key === "=") grid.zoomBy(2);
    else if (key === "-") grid.zoomBy(0.5);
    else if (key === "0") grid.zoomBy(1 / 16);
    else if (key === "/") {
      label.hidden = false;
      jump.value = "";
      jump.focus();
    } else return false;
    return true;
  };

  const take = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !grid.count() || !act(event.key)) return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  };
  // Without what `take` returns: a handler's false cancels the browser's own keys, Tab among them.
  stage.onkeydown = (event) => {
    take(event);
  };

  jump.onkeydown = (event) => {
    event.stopPropagation();
    if (event.key !== "Enter" && event.key !== "Escape") return;
    const wanted = grid.positionOf(Number(jump.value));
    if (event.key === "Enter" && jump.value.trim() !== "" && wanted < 0) {
      output.textContent = say("There is no channel {channel} among those shown.", { channel: jump.value });
      return;
    }
    label.hidden = true;
    stage.focus();
    if (event.key === "Enter" && wanted >= 0) {
      grid.goTo(wanted);
      grid.select();
    }
  };

  return {
    // "/" and the arrows work from anywhere on the page where nobody types.
    anywhere: (event) => {
      if (event.defaultPrevented) return; // it is kept for later
      const target = event.composedPath()[0];
      const isArrow = event.key.startsWith("Arrow"); // which other parts have, too
      if (!isArrow && (event.key !== "/" || target.closest?.(TYPED))) return;
      if (isArrow && target !== document.body && (target.closest?.(BUSY) || target.getRootNode() !== document)) return;
      if (take(event) && event.key !== "/") stage.focus();
    },
    // A key that was pressed before the grid was there: "/", a number and Enter, or arrows.
    press: (key) => {
      if (!label.hidden && /[0-9]/.test(key)) jump.value += key;
      else (label.hidden ? stage : jump).dispatchEvent(new KeyboardEvent("keydown", { key }));
      if (key.startsWith("Arrow")) stage.focus();
    },
  };
};
