// The view in the page's address: its query, or what follows a # where a browser lets no file write its query.

/**
 * All that an address says; what follows the # counts before the query.
 * @param {{search: string, hash: string}} address
 */
export const saidIn = ({ search, hash }) => {
  const said = new URLSearchParams(search);
  for (const [word, text] of new URLSearchParams(hash.slice(1))) said.set(word, text);
  return said;
};

/**
 * The address that says something else.
 * @param {{search: string, hash: string}} address
 * @param {Record<string, string | null>} words null is for one that goes
 * @param {boolean} isWritable whether the query can be written
 */
export const saying = (address, words, isWritable) => {
  const said = isWritable ? saidIn(address) : new URLSearchParams(address.hash.slice(1));
  const asked = new URLSearchParams(address.search);
  for (const [word, text] of Object.entries(words)) {
    if (text !== null) said.set(word, text);
    else if (!isWritable && asked.has(word))
      said.set(word, ""); // of the query, which stays
    else said.delete(word);
  }
  return isWritable ? `?${said}` : `#${said}`;
};
