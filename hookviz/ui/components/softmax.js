// Probabilities as the lessons write them.

import { inSigns } from "../../explorer/client/shared.js";

const LEAST = 1e-6; // below which a probability is only said to be smaller

/** @param {number} share */
const written = (share) => {
  const percent = 100 * share;
  if (percent >= 1) return percent.toFixed(1);
  const power = Number(percent.toExponential(1).split("e")[1]);
  return percent.toFixed(1 - power);
};

/**
 * A probability with two digits at least, as `hookviz.lessons.scores.chance` writes it.
 * @param {number} share
 * @param {{ share: string, less: string, more: string }} words
 */
export const chanceText = (share, words) => {
  if (share < LEAST) return words.less.replace("{share}", inSigns((100 * LEAST).toFixed(4)));
  if (share < 1 && Number(written(share)) >= 100) return words.more.replace("{share}", inSigns("99.9"));
  return words.share.replace("{share}", inSigns(written(share)));
};
