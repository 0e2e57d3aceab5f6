// A list to choose from, the browser's own: it works with keys, on a phone and for who can't see it.

/**
 * Leave a list once something in it was picked by the pointer, so that the page's keys work; who chooses by
 * keys goes on with them.
 * @param {HTMLElement} row with the lists
 */
export const leaveWhenPicked = (row) => {
  let isPointed = false;
  row.addEventListener("pointerdown", () => {
    isPointed = true;
  });
  row.addEventListener("keydown", () => {
    isPointed = false;
  });
  row.addEventListener("change", ({ target }) => {
    if (isPointed && target instanceof HTMLSelectElement) target.blur();
  });
};

/**
 * Fill a list with options, if it has others; returns whether the chosen one is among them.
 * @param {HTMLSelectElement} select
 * @param {{value: string, says: string}[]} options
 * @param {string} chosen
 */
export const fill = (select, options, chosen) => {
  const now = JSON.stringify(options);
  if (select.dataset.options !== now) {
    select.dataset.options = now;
    select.replaceChildren(...options.map(({ value, says }) => new Option(says, value)));
  }
  select.value = chosen;
  return select.selectedIndex >= 0;
};
