// What was answered beforehand: languages and themes stand in one, and rows stand as columns, as
// `client_page.py` put them.

/**
 * Which of several variants is wanted, by what they differ in.
 * @typedef {{".language": number, ".theme": number}} Wanted
 */
const KINDS = /** @type {const} */ ([".language", ".theme"]);

/**
 * Facts as they are in one language and one theme.
 * @param {any} facts
 * @param {Wanted} wanted
 * @returns {any}
 */
export const chosen = (facts, wanted) => {
  if (facts === null || typeof facts !== "object") return facts;
  if (Array.isArray(facts)) return facts.map((each) => chosen(each, wanted));
  for (const kind of KINDS) {
    if (Object.hasOwn(facts, kind)) return chosen(facts[kind][wanted[kind]], wanted);
  }
  return Object.fromEntries(Object.entries(facts).map(([name, each]) => [name, chosen(each, wanted)]));
};

/**
 * One row of what stands as columns.
 * @param {any} node
 * @param {number} at
 * @returns {any}
 */
export const rowOf = (node, at) => {
  if ("rows" in node) return node.rows[at];
  if ("parts" in node) return node.parts.map((part) => rowOf(part, at));
  if (!("fields" in node)) return node.same;
  return Object.fromEntries(Object.entries(node.fields).map(([name, part]) => [name, rowOf(part, at)]));
};
