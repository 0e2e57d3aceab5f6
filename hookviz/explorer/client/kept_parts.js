// What a saved page has of a part of the map: of each layer the strongest channels, of some all of them.

import { say } from "./shared.js";

/** @typedef {import("./map_parts.js").Placed} Placed */

/** Whether all channels of a part can be asked for. @param {Placed} part */
export const isKept = (part) => part.facts.isKept !== false;

/** What a cell in the middle of a part sees that is not kept, as shares. @param {Placed} part */
export const seenFrom = ({ facts: { sees } }) => {
  if (!sees) return null;
  const [top, left, bottom, right] = sees;
  return { top, left, bottom, right };
};

/** Why there is no channel to pick up. @param {Placed} part */
export const strongestAlone = ({ facts: { name, output } }) => {
  if (output !== "call 1") return say("This page has only the strongest channels of {name}.", { name });
  return say("This page has only the strongest channels of {name}: saved with --layers maps it has all.", { name });
};
