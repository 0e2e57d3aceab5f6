// How strongly a channel has answered so far: the record, and the best moments. Numbers alone; the
// pictures of moments are put to them by whoever paints.

const MOMENTS = 6; // that are kept of a channel
const APART = 2000; // milliseconds within which only the better of two moments is kept
const KEPT = 12; // channels whose records are kept, the last ones that were looked at
const HEADROOM = 1.15; // of the meter over the record, so that a new one is seen to pass it

const newRecord = () => ({
  /** @type {number | null} */
  best: null,
  lowest: 0,
  brightest: 0, // the highest value of the map, at which it glows as brightly as it can
  /** @type {{level: number, at: number, [more: string]: any}[]} */
  moments: [], // the strongest first
});

/**
 * The record under a key, of those that are kept; the one looked at longest ago goes.
 * @param {Map<string, ReturnType<typeof newRecord>>} records
 * @param {string} key
 */
export const recordOf = (records, key) => {
  const record = records.get(key) ?? newRecord();
  records.delete(key);
  records.set(key, record);
  while (records.size > KEPT) records.delete(/** @type {string} */ (records.keys().next().value));
  return record;
};

/**
 * Note a level; returns the moment that wants a picture of now, or null where this is none of the best.
 * @param {ReturnType<typeof newRecord>} record
 * @param {number | null} level
 * @param {number} at
 */
export const note = (record, level, at) => {
  if (level === null || !Number.isFinite(level)) return null;
  record.best = Math.max(record.best ?? level, level);
  record.lowest = Math.min(record.lowest, level);
  if (level <= 0) return null; // nothing lights up
  const { moments } = record;
  let moment = moments.find((each) => at - each.at < APART);
  if (moment ? level <= moment.level : moments.length >= MOMENTS && level <= moments[MOMENTS - 1].level) return null;
  if (!moment) moments.push((moment = { level, at }));
  Object.assign(moment, { level, at });
  moments.sort((one, other) => other.level - one.level);
  moments.splice(MOMENTS);
  return moment;
};

/**
 * Where a level stands on the meter, from 0 at its beginning to 1 at its end.
 * @param {{best: number | null, lowest: number}} record
 * @param {number | null} level
 */
export const onMeter = ({ best, lowest }, level) => {
  const high = HEADROOM * Math.max(best ?? 0, 0) || 1;
  return level === null ? 0 : Math.max(0, Math.min(1, (level - lowest) / (high - lowest)));
};
