// The record of a channel that is lit up, its best moments, and where a level stands on the meter.
import assert from "node:assert/strict";
import { test } from "node:test";
import { note, onMeter, recordOf } from "../../hookviz/ui/components/live_records.js";

const fresh = () => recordOf(new Map(), "any");

test("the highest level is the record, and one that is no number is none", () => {
  const record = fresh();
  for (const [level, at] of [
    [1, 0],
    [3, 100],
    [null, 200],
    [Number.NaN, 300],
    [2, 400],
  ])
    note(record, level, at);
  assert.equal(record.best, 3);
  note(record, -4, 500);
  assert.deepEqual([record.best, record.lowest], [3, -4]);
});

test("of moments that follow each other closely the best is kept", () => {
  const record = fresh();
  assert.ok(note(record, 1, 0));
  assert.equal(note(record, 0.5, 500), null);
  assert.equal(note(record, 2, 1000), record.moments[0]);
  assert.deepEqual(record.moments, [{ level: 2, at: 1000 }]);
  assert.ok(note(record, 1.5, 3100), "more than two seconds later it is another one");
  assert.deepEqual(
    record.moments.map(({ level }) => level),
    [2, 1.5],
  );
});

test("six are kept, the strongest first, and nothing that lights nothing", () => {
  const record = fresh();
  [5, 1, 9, 3, 7, 0, -1, 8, 2, 6].forEach((level, at) => note(record, level, at * 5000));
  assert.deepEqual(
    record.moments.map(({ level }) => level),
    [9, 8, 7, 6, 5, 3],
  );
  assert.equal(note(record, 3, 99000), null);
});

test("the meter goes from the lowest level, or zero, to a little over the record", () => {
  const record = fresh();
  assert.equal(onMeter(record, null), 0);
  note(record, 2, 0);
  assert.ok(Math.abs(onMeter(record, 2) - 1 / 1.15) < 1e-9);
  assert.equal(onMeter(record, 0), 0);
  note(record, -2.3, 1);
  assert.ok(Math.abs(onMeter(record, 0) - 0.5) < 1e-9);
});

test("records of twelve channels are kept, the last ones that were looked at", () => {
  const records = new Map();
  const first = recordOf(records, "0");
  for (let at = 1; at < 12; at += 1) recordOf(records, String(at));
  assert.equal(recordOf(records, "0"), first);
  recordOf(records, "12");
  assert.deepEqual([records.size, records.has("0"), records.has("1")], [12, true, false]);
});
