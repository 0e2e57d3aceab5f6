// A kernel's walk over its input, as a lesson has it; its parts are the explorer's.

import { unpacked } from "../../explorer/client/shared.js";
import { walk } from "../../explorer/client/walk.js";

const RESTS = 250; // milliseconds after which the cell that was gone to is told
const waits = new WeakMap();
const walks = new WeakMap(); // one per place on the page, so that a new run ends the old walk
const told = new WeakMap(); // the cell that was told last, until it comes back

export default function ({ data, parentElement, setTriggerValue }) {
  const here = walks.get(parentElement) ?? walk(parentElement);
  walks.set(parentElement, here);
  const facts = unpacked(data);
  // What comes back as it was told ends nothing: the walk has gone on since.
  if (String(told.get(parentElement)) === String(facts.cell)) {
    told.delete(parentElement);
    facts.goesOn = true;
  }
  here.show(facts, (cell) => {
    clearTimeout(waits.get(parentElement));
    if (!cell) return;
    waits.set(
      parentElement,
      setTimeout(() => {
        told.set(parentElement, cell);
        setTriggerValue("reached", cell);
      }, RESTS),
    );
  });
  return here.end;
}
