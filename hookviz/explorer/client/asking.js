// Of the questions of one name only the newest is open, and what was answered a while ago is kept.

const KEPT = 32e6; // bytes of answers; the tiles of a large layer take a few million

/**
 * @typedef {{facts: Facts, data: Uint8Array<ArrayBuffer>}} Answered
 * @typedef {object} Heard
 * @property {(answer: Answered) => void} answered gets the answer, at once where it is known
 * @property {(words: string) => void} [failed] gets why there is none
 * @property {(message: any) => void} [on] gets what is said on the way to it
 */

/**
 * Asks questions about something, such as a layer of a network on an image.
 * @param {(question: Facts, options: {signal: AbortSignal, on?: (message: any) => void}) => Promise<Answered>} ask
 * @param {number} [most] bytes of what is kept; the newest answer is, however large
 */
export const newest = (ask, most = KEPT) => {
  /** @type {Map<string, {key: string, heard: Heard, ends: AbortController}>} */
  const open = new Map();
  /** @type {Map<string, Answered>} */
  const kept = new Map();
  let weight = 0; // bytes of all that is kept
  /** @type {WeakMap<Answered, number>} */
  const weights = new WeakMap();
  const weightOf = (/** @type {Answered} */ answer) => {
    const known = weights.get(answer) ?? answer.data.length + JSON.stringify(answer.facts).length;
    weights.set(answer, known);
    return known;
  };
  const drop = (/** @type {string} */ key) => {
    const answer = kept.get(key);
    if (answer && kept.delete(key)) weight -= weightOf(answer);
  };
  const leave = (/** @type {string} */ name) => {
    open.get(name)?.ends.abort();
    open.delete(name);
  };
  const keyOf = (/** @type {Facts} */ question, /** @type {unknown} */ about) => JSON.stringify([question, about]);
  const keep = (/** @type {string} */ key, /** @type {Answered} */ answer) => {
    drop(key);
    kept.set(key, answer);
    weight += weightOf(answer);
    for (const oldest of kept.keys()) {
      if (weight <= most || oldest === key) break;
      drop(oldest);
    }
  };

  return {
    /**
     * @param {Facts} question its name and its facts
     * @param {unknown} about what else the answer depends on
     * @param {Heard} heard
     */
    ask(question, about, heard) {
      const { name } = question;
      const key = keyOf(question, about);
      const known = kept.get(key);
      if (known) {
        leave(name);
        keep(key, known);
        heard.answered(known);
        return;
      }
      const before = open.get(name);
      if (before?.key === key) {
        before.heard = heard; // it is on its way
        return;
      }
      leave(name);
      const mine = { key, heard, ends: new AbortController() };
      const isNewest = () => open.get(name) === mine;
      open.set(name, mine);
      const on = (/** @type {any} */ message) => isNewest() && mine.heard.on?.(message);
      ask(question, { signal: mine.ends.signal, on }).then(
        (answer) => {
          if (!isNewest()) return;
          open.delete(name);
          keep(key, answer);
          mine.heard.answered(answer);
        },
        (error) => {
          if (!isNewest()) return;
          open.delete(name);
          if (error.name !== "AbortError") mine.heard.failed?.(error.message);
        },
      );
    },
    /** The answer, if it is known. */
    known: (/** @type {Facts} */ question, /** @type {unknown} */ about) => kept.get(keyOf(question, about)) ?? null,
    leave,
    /** Keep nothing any more: all of it was about something else. */
    forget: () => {
      kept.clear();
      weight = 0;
    },
    end: () => [...open.keys()].forEach(leave),
  };
};
