// A view is what a link says of the explorer: its parameters by their words, without those that are
// as they are by default. The page around it has parameters of its own, which are left alone.

const LONGEST = 1000; // letters of one value
// What is picked on the tiles: an answer about the layer is the same whatever these say.
const PICKED = ["channel", "cell", "origin", "made"];

/**
 * @typedef {{word: string, default: string | null, values: string[] | null, isPage?: boolean}} Field what
 *   can be chosen: its word in a link, what it is where a link says nothing, and all that it can be
 * @typedef {Record<string, string>} View
 */

/** @param {Field} field @param {string | null | undefined} text */
const isChoice = (field, text) =>
  typeof text === "string" &&
  text.length <= LONGEST &&
  text !== field.default &&
  (field.values === null || field.values.includes(text));

/**
 * Read the view from a link's query.
 * @param {string} query
 * @param {Field[]} fields
 * @returns {View}
 */
export const viewOf = (query, fields) => {
  const link = new URLSearchParams(query);
  const ours = fields.filter((field) => !field.isPage && isChoice(field, link.get(field.word)));
  return Object.fromEntries(ours.map(({ word }) => [word, /** @type {string} */ (link.get(word))]));
};

/**
 * The view with some choices changed; null takes one back to its default.
 * @param {View} view
 * @param {Record<string, string | number | null>} choices
 * @param {Field[]} fields
 * @returns {View}
 */
export const changed = (view, choices, fields) => {
  const next = { ...view };
  for (const [word, choice] of Object.entries(choices)) {
    const field = fields.find((each) => each.word === word);
    const text = choice === null ? null : String(choice);
    if (field && isChoice(field, text)) next[word] = /** @type {string} */ (text);
    else delete next[word];
  }
  return next;
};

/**
 * What a choice changes in a link; null is for a word that goes. The rest of the link stays, for it may
 * be that of another network already, to which Back led.
 * @param {View} view
 * @param {string[]} words that were chosen
 * @param {string} query
 * @returns {Record<string, string | null>}
 */
export const forLink = (view, words, query) => {
  const link = new URLSearchParams(query);
  const chosen = words.map((word) => /** @type {[string, string | null]} */ ([word, view[word] ?? null]));
  return Object.fromEntries(chosen.filter(([word, text]) => link.get(word) !== text));
};

/** @param {View} one @param {View} other */
export const isSame = (one, other) =>
  [...new Set([...Object.keys(one), ...Object.keys(other)])].every((word) => one[word] === other[word]);

/**
 * The view without what is picked on the tiles.
 * @param {View} view
 * @returns {View}
 */
export const ofLayer = (view) => Object.fromEntries(Object.entries(view).filter(([word]) => !PICKED.includes(word)));

/**
 * The channel that is picked, or null.
 * @param {View} view
 */
export const channelOf = (view) => (/^\d{1,6}$/.test(view.channel ?? "") ? Number(view.channel) : null);
