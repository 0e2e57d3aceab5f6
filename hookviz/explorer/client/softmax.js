// The softmax of some scores beside all others.

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
