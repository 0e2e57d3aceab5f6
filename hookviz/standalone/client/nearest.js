// Which of the languages of a page suits a reader.

/**
 * The language that suits best: the first that one asks for, or of which there is another kind.
 * @param {string[]} asked
 * @param {string[]} known
 */
export const nearest = (asked, known) => {
  const base = (/** @type {string} */ language) => language.toLowerCase().split("-")[0];
  for (const each of asked) {
    const exact = known.findIndex((language) => language.toLowerCase() === each.toLowerCase());
    const at = exact >= 0 ? exact : known.findIndex((language) => base(language) === base(each));
    if (at >= 0) return at;
  }
  return 0;
};
