// What a person has moved further than the server knows: its older answers don't take that back.

const states = new WeakMap(); // by the element that stays over the runs
const PATIENCE = 4000; // milliseconds after which the server's word counts again

/**
 * The value that is shown, and how it is moved on.
 * @template {(number | string)[]} Value
 * @param {Element} root stays over the runs
 * @param {string} subject what it is of: of another one nothing is kept
 * @param {Value} given by the server
 * @param {(value: Value) => void} send tells the server
 */
export const ahead = (root, subject, given, send) => {
  let state = states.get(root);
  if (state?.subject !== subject) {
    clearTimeout(state?.timer);
    state = { subject, moved: null, sentAt: 0, timer: 0, send };
    states.set(root, state);
  }
  state.send = send;
  const late = state.sentAt && performance.now() - state.sentAt > PATIENCE;
  if (state.moved && (late || JSON.stringify(state.moved) === JSON.stringify(given))) state.moved = null;
  return {
    /** @type {Value} */
    value: /** @type {any} */ ([...(state.moved ?? given)]),
    /** Keep a value that is on its way, as while one drags. @param {Value} value */
    keep: (value) => Object.assign(state, { moved: [...value], sentAt: 0 }),
    /** Tell the server of a value, after `wait` milliseconds without a newer one. @param {Value} value */
    tell: (value, wait = 0) => {
      Object.assign(state, { moved: [...value], sentAt: 0 });
      clearTimeout(state.timer);
      state.timer = setTimeout(() => {
        state.sentAt = performance.now();
        state.send(state.moved);
      }, wait);
    },
    /** Let the server lead again, as where it alone knows what comes. */
    forget: () => {
      clearTimeout(state.timer);
      state.moved = null;
    },
  };
};
