// A kernel's walk over its input, as a lesson has it; its parts are the explorer's.

import { unpacked } from "../../explorer/client/shared.js";
import { walk } from "../../explorer/client/walk.js";

const RESTS = 250; // milliseconds after which the cell that was gone to is told
const waits = new WeakMap();
const walks = new WeakMap(); // one per place on the page, so that a new run ends the old walk

export default function ({ data, parentElement, setTriggerValue }) {
  const here = walks.get(parentElement) ?? walk(parentElement);
  walks.set(parentElement, here);
  here.show(unpacked(data), (cell) => {
    clearTimeout(waits.get(parentElement));
    if (!cell) return;
    waits.set(
      parentElement,
      setTimeout(() => setTriggerValue("reached", cell), RESTS),
    );
  });
  return here.end;
}
