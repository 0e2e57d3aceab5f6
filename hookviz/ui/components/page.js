// What a component does with the page around it.

/**
 * A component that draws as soon as the head of the page is there, and ends when its element is gone.
 *
 * Streamlit calls what a draw returned where the component leaves the page, and also where newer data came
 * before the draw was through: then the element is there, and the next draw goes on with what it holds.
 * @param {Draw} draw
 * @returns {Draw}
 */
export const afterHead = (draw) => (component) => {
  let ended = false;
  /** @type {void | (() => void)} */
  let end;
  const begin = () => {
    if (!ended) end = draw(component);
  };
  if (window.hookvizWords) begin();
  else window.addEventListener("hookviz:head", begin, { once: true });
  return () => {
    if (component.parentElement.isConnected) return;
    ended = true;
    end?.();
  };
};

// To the top of the page, where what a click in a lens leads to is shown.
export const scrollUp = () => document.querySelector("[data-testid='stMain']")?.scrollTo(0, 0);

/** @type {WeakMap<object, {number: number, value: unknown}[]>} */
const untaken = new WeakMap(); // what the server has not heard yet, by the element of the component

/**
 * The one trigger of a component, which sends all that the server has not heard yet: of two requests that wait
 * for the same run Streamlit keeps the newer one's value. `each_once` of files.py hears each once.
 * @param {Component} component
 * @param {number} taken number of the last value that was heard
 * @returns {Component["setTriggerValue"]}
 */
export const counted = ({ parentElement, setTriggerValue }, taken) => {
  const waiting = (untaken.get(parentElement) ?? []).filter(({ number }) => number > taken);
  untaken.set(parentElement, waiting);
  return (name, value) => {
    // Above those of an earlier element in this place.
    const number = Math.max(Date.now(), taken + 1, (waiting.at(-1)?.number ?? 0) + 1);
    waiting.push({ number, value });
    setTriggerValue(name, waiting);
  };
};

/** @type {WeakMap<object, any>} */
const parts = new WeakMap(); // of components, by the element that they are in

/**
 * A part of the explorer in a component, made at its first run and kept over the later ones.
 *
 * What `make` returns gets `tell(name, value)`, the trigger of the newest run; `follow(act)`, which
 * calls it whenever the link changes, and no other; and `leave`, which ends it.
 * @param {Component} component
 * @param {(held: {tell: (name: string, value: unknown) => void}) => any} make
 */
export const kept = ({ parentElement, setTriggerValue }, make) => {
  let held = parts.get(parentElement);
  if (held?.language !== document.documentElement.lang || !held.built.isConnected) {
    held?.leave();
    /** @type {any} */
    const made = {};
    Object.assign(made, make({ tell: (name, value) => made.tell(name, value) }));
    held = made;
    held.language = document.documentElement.lang;
    held.built = parentElement.querySelector("[data-built]");
    held.follow = (act) => {
      held.unfollow?.();
      window.addEventListener("hookviz:link", act);
      held.unfollow = () => window.removeEventListener("hookviz:link", act);
    };
    held.leave = () => {
      held.unfollow?.();
      held.end();
      parts.delete(parentElement);
    };
    parts.set(parentElement, held);
  }
  held.tell = setTriggerValue;
  return held;
};
