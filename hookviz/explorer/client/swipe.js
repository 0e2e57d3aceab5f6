// A finger that goes sideways; up and down stays the page's own scrolling.

const FAR = 50; // pixels

/**
 * Listen for one finger's swipes over an element.
 * @param {HTMLElement} element
 * @param {{isFree: () => boolean, turn: (by: number) => void}} heard whether a swipe means anything; and
 * that there was one, to what comes before, −1, or after, 1
 */
export const swiped = (element, { isFree, turn }) => {
  /** @type {number[] | null} */
  let touched = null;
  element.ontouchstart = ({ touches: [finger, second] }) => {
    touched = second || !isFree() ? null : [finger.clientX, finger.clientY];
  };
  element.ontouchend = ({ changedTouches: [finger] }) => {
    if (!touched) return;
    const [across, down] = [finger.clientX - touched[0], finger.clientY - touched[1]];
    touched = null;
    if (Math.abs(across) > FAR && Math.abs(across) > 2 * Math.abs(down)) turn(Math.sign(-across));
  };
};
