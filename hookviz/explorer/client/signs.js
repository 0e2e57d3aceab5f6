// The signs on buttons, drawn: no font of the page around is needed for them.

const LINES = {
  across: "M5 5h5v5H5zM14 5h5v5h-5zM5 14h5v5H5zM14 14h5v5h-5z",
  close: "M6 6l12 12M18 6 6 18",
  back: "M19 12H5m6-6-6 6 6 6",
  looks: "M12 4l1.8 5.2L19 11l-5.2 1.8L12 18l-1.8-5.2L5 11l5.2-1.8zM19 16v4m-2-2h4",
  more: "M12 5v14M5 12h14",
  another: "M5 5h14v14H5zM9 9h.01M15 9h.01M12 12h.01M9 15h.01M15 15h.01",
  beside: "M12 3v18M9 6H4v12h5M15 6h5v12h-5",
  stop: "M7 7h10v10H7z",
  dead: "M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18M6 6l12 12",
  leads: "M5 12h14m-6-6 6 6-6 6",
};

/**
 * A sign as HTML, hidden from who can't see it: the button says what it does.
 * @param {keyof typeof LINES} name
 */
export const sign = (name) =>
  `<svg class="sign" viewBox="0 0 24 24" aria-hidden="true"><path d="${LINES[name]}"/></svg>`;
