// What is said of questions that take long: that they wait in the queue, how far they are, that the line
// was cut. It goes when their answer comes.

const KINDS = ["waits", "progress", "trouble"];

/**
 * A line that says what the newest of the open questions waits for.
 * @param {HTMLElement} line
 */
export const waits = (line) => {
  /** @type {Map<symbol, string>} */
  const open = new Map();
  const show = () => {
    const words = [...open.values()].at(-1) ?? "";
    line.hidden = !words;
    if (line.textContent !== words) line.textContent = words;
  };
  return {
    /**
     * Ask, and say what is heard on the way.
     * @template Answer
     * @param {string} name of the question
     * @param {(heard: (message: any) => void) => Promise<Answer>} ask
     * @returns {Promise<Answer>}
     */
    during: async (name, ask) => {
      const one = Symbol(name);
      try {
        return await ask(({ facts }) => {
          if (!KINDS.includes(facts.kind)) return;
          open.set(one, facts.says ?? "");
          show();
        });
      } finally {
        if (open.delete(one)) show();
      }
    },
  };
};
