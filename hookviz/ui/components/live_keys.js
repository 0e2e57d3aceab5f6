// Keys that work from anywhere on the page where nobody types or chooses.

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// A button or a box that was clicked keeps the focus, and knows no letter.
const isBusy = (target, key) =>
  Boolean(target.closest?.("input:not([type='checkbox']), textarea, select, a, [role='radio'], [contenteditable]")) ||
  (!/^[a-z]$/i.test(key) && Boolean(target.closest?.("button, input")));

// `acts` has what a key does by its name, and move(across, down) for the arrows; a key for which nothing
// was to do, of which it returns false, is the browser's.
export const pressed = (acts) => (event) => {
  const target = event.composedPath()[0];
  if (event.ctrlKey || event.metaKey || event.altKey || isBusy(target, event.key)) return;
  if (event.key in ARROWS) acts.move(...ARROWS[event.key]);
  else if (!(event.key in acts) || event.key === "move") return;
  else if (!event.repeat && acts[event.key]() === false) return;
  event.preventDefault();
};
