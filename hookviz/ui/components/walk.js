// A kernel's walk over its input, as a lesson has it; its parts are the explorer's.

import { unpacked } from "../../explorer/client/shared.js";
import { walk } from "../../explorer/client/walk.js";

const walks = new WeakMap(); // one per place on the page, so that a new run ends the old walk

export default function ({ data, parentElement }) {
  const here = walks.get(parentElement) ?? walk(parentElement);
  walks.set(parentElement, here);
  here.show(unpacked(data));
  return here.end;
}
