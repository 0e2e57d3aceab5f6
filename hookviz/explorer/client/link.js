// A view is what a link says of the explorer: its parameters by their words, without those that are
// as they are by default. The page around it has parameters of its own, which are left alone.

const LONGEST = 1000; // letters of one value
// What is picked on the tiles, and how many of them stand in which order: an answer about the layer is the
// same whatever these say.
const PICKED = ["channel", "cell", "origin", "made", "sort", "top", "inside", "why"];
// How the tiles are drawn: what the layer is and sees is the same whatever these say.
const DRAWN = ["scale", "colours", "held", "compare", "patches", "answers"];
const FACES = /** @type {const} */ ({ A: "a", B: "b", Split: "split" }); // of a pair, by the link's words

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
 * Read the view from a link's words.
 * @param {string | URLSearchParams} query
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
 * @param {string | URLSearchParams} query
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

// Its words in one order, so that what is written from two of the same is the same.
const without = (/** @type {View} */ view, /** @type {string[]} */ words) => {
  const others = Object.entries(view).filter(([word]) => !words.includes(word));
  return Object.fromEntries(others.sort(([one], [other]) => (one < other ? -1 : 1)));
};

/**
 * The view without what is picked on the tiles, and which of them are shown.
 * @param {View} view
 * @returns {View}
 */
export const ofLayer = (view) => without(view, PICKED);

/**
 * The view without how its layer is drawn, either.
 * @param {View} view
 * @returns {View}
 */
export const ofStep = (view) => without(view, [...PICKED, ...DRAWN]);

/**
 * Which face of a pair's tiles a view shows; null where it is neither's, as of their difference.
 * @param {View} view
 */
export const faceOf = (view) => FACES[/** @type {keyof typeof FACES} */ (view.compare ?? "B")] ?? null;

/**
 * The channel that is picked, or null.
 * @param {View} view
 */
export const channelOf = (view) => (/^\d{1,6}$/.test(view.channel ?? "") ? Number(view.channel) : null);
