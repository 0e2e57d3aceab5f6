// What a person has moved further than the server knows: its older answers don't take that back.

const states = new WeakMap(); // by the element that stays over the runs

/**
 * The value that is shown, and how it is moved on. Each value that is told has a number, and an answer
 * says the number of the last one that the server had heard: `show` of files.py keeps it.
 * @template {(number | string)[]} Value
 * @param {Element} root stays over the runs
 * @param {string} subject what it is of: of another one nothing is kept
 * @param {{value: Value, taken: number}} given by the server
 * @param {(value: Value, number: number) => void} send tells the server
 */
export const ahead = (root, subject, given, send) => {
  let state = states.get(root);
  if (state?.subject !== subject) {
    clearTimeout(state?.timer);
    state = { subject, moved: null, number: 0, timer: 0, send };
    states.set(root, state);
  }
  state.send = send;
  if (given.taken >= state.number) state.moved = null;
  /** @param {Value} value */
  const keep = (value) => {
    state.moved = [...value];
    state.number = Math.max(Date.now(), given.taken + 1, state.number + 1); // above those of an earlier element
  };
  return {
    /** @type {Value} */
    value: /** @type {any} */ ([...(state.moved ?? given.value)]),
    /** Keep a value that is on its way, as while one drags. */
    keep,
    /** Tell the server of a value, after `wait` milliseconds without a newer one. @param {Value} value */
    tell: (value, wait = 0) => {
      keep(value);
      clearTimeout(state.timer);
      state.timer = setTimeout(() => state.send(state.moved, state.number), wait);
    },
    /** Let the server lead again, as where it alone knows what comes. */
    forget: () => {
      clearTimeout(state.timer);
      state.moved = null;
    },
  };
};
