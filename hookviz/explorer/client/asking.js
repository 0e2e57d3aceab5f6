// Of the questions of one name only the newest is open, and what was answered a while ago is kept.

const KEPT = 96; // answers; the largest has a map of 350 kB

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
 */
export const newest = (ask) => {
  /** @type {Map<string, {key: string, heard: Heard, ends: AbortController}>} */
  const open = new Map();
  /** @type {Map<string, Answered>} */
  const kept = new Map();
  const leave = (/** @type {string} */ name) => {
    open.get(name)?.ends.abort();
    open.delete(name);
  };
  const keyOf = (/** @type {Facts} */ question, /** @type {unknown} */ about) => JSON.stringify([question, about]);
  const keep = (/** @type {string} */ key, /** @type {Answered} */ answer) => {
    kept.delete(key);
    kept.set(key, answer);
    if (kept.size > KEPT) kept.delete(/** @type {string} */ (kept.keys().next().value));
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
    end: () => [...open.keys()].forEach(leave),
  };
};
