// Where the tiles of the grid lie: columns, their size, and on a phone how many make a page.

export const GAP = 3; // pixels between tiles
const LARGEST = 128; // pixels a tile is wide at most, and how small it may get before one scrolls
const SMALLEST = 30;
const ALONE = 400; // pixels that the shorter side of a tile has at most where it is the only one
const PHONE = 640;
const PHONE_COLUMNS = 6;
const FEWEST_ROWS = 3; // of a phone's page
const NEARLY = 0.85; // of the largest tile that fits: worth it where the grid is then as wide as its place

const largest = (count, aspect) => (count === 1 ? Math.floor(ALONE / Math.min(1, aspect)) : LARGEST);

export const onPhone = () => window.innerWidth < PHONE;

// The pages turn on a phone; elsewhere all tiles are on one.
const fitPhone = (count, aspect, width, height, fewest) => {
  const columns = Math.min(count, PHONE_COLUMNS);
  const tile = Math.min(largest(count, aspect), Math.floor((width - (columns - 1) * GAP) / columns));
  const rows = Math.max(fewest, Math.floor((height + GAP) / (tile * aspect + GAP)));
  return { columns, tile, page: columns * rows };
};

// Columns and tile size, so that all tiles fit the window if they can, none below `smallest`; a phone's page has `fewest` rows.
export const fit = (count, aspect, width, height, { smallest = SMALLEST, fewest = FEWEST_ROWS } = {}) => {
  if (onPhone()) return fitPhone(count, aspect, width, height, fewest);
  const most = largest(count, aspect);
  const plans = [];
  for (let columns = 1; columns <= count; columns += 1) {
    const wide = Math.min(most, Math.floor((width - (columns - 1) * GAP) / columns));
    const high = Math.floor((height / Math.ceil(count / columns) - GAP) / aspect);
    plans.push({ columns, tile: Math.min(wide, high), full: wide <= high && wide < most });
    if (wide < smallest) break;
  }
  const best = plans.reduce((most, plan) => (plan.tile > most.tile ? plan : most));
  const full = plans.find((plan) => plan.full && plan.tile >= NEARLY * best.tile);
  const { columns, tile } = full ?? best; // no empty strip at the right, if it can be
  if (tile >= smallest) return { columns, tile, page: count };
  const many = Math.max(1, Math.min(count, Math.floor((width + GAP) / (smallest + GAP))));
  return { columns: many, tile: Math.floor((width - (many - 1) * GAP) / many), page: count };
};
