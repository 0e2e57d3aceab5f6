// The way back from an input upstream that was followed, channel by channel.

import { say } from "./shared.js";
import { sign } from "./signs.js";

const LONGEST = 20; // steps

/**
 * @param {HTMLButtonElement} button goes one step back; it is hidden where there is none
 * @param {(channel: number, layer: string) => void} go
 */
export const wayBack = (button, go) => {
  /** @type {[number, string][]} */
  const steps = [];
  button.onclick = () => {
    const step = steps.pop();
    if (step) go(...step);
  };
  return {
    /**
     * @param {number} channel that is left
     * @param {string} layer
     */
    add(channel, layer) {
      steps.push([channel, layer]);
      steps.splice(0, steps.length - LONGEST);
    },
    /** @param {boolean} isOffered */
    show(isOffered) {
      const last = steps.at(-1);
      button.hidden = !last || !isOffered;
      if (!last) return;
      button.innerHTML = sign("back");
      button.append(say("channel {channel} of {layer}", { channel: last[0], layer: last[1] }));
    },
  };
};
