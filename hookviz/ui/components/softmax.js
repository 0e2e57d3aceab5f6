// The softmax of some scores beside all others, and probabilities as the lessons write them.

import { inSigns } from "../../explorer/client/shared.js";

const LEAST = 1e-6; // below which a probability is only said to be smaller

/**
 * The probabilities of the scores; `others` is the logarithm of the sum of e to each further score.
 * @param {number[]} scores
 * @param {number | null} others
 * @returns {{ chances: number[], others: number }}
 */
export const softmax = (scores, others) => {
  const every = others === null ? scores : [...scores, others];
  const highest = Math.max(...every);
  const powers = every.map((score) => Math.exp(score - highest));
  const sum = powers.reduce((one, other) => one + other, 0);
  const chances = powers.map((power) => power / sum);
  return { chances: chances.slice(0, scores.length), others: others === null ? 0 : chances[scores.length] };
};

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
