// What is moved further than the server knows stays, however late its older answers come.

import assert from "node:assert/strict";
import test from "node:test";
import { ahead } from "../../hookviz/ui/components/ahead.js";

test("an older answer takes nothing back, be it ever so late, and the newest one counts", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  const [root, heard] = [{}, []];
  const answer = (value, taken) => ahead(root, "image", { value, taken }, (...sent) => heard.push(sent));
  answer([63], 0).tell([64]);
  context.mock.timers.tick(1);
  answer([63], 0).tell([65], 120);
  const [[, first]] = heard;
  context.mock.timers.tick(60_000);
  assert.deepEqual(
    heard.map(([value]) => value),
    [[64], [65]],
  );
  assert.deepEqual(answer([64], first).value, [65]);
  const [, [, second]] = heard;
  assert.ok(second > first);
  assert.deepEqual(answer([60], second).value, [60], "what the server makes of it");
});

test("what is not told yet is kept, back on a value that the server still answers", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  const root = {};
  const answer = (value, taken) => ahead(root, "image", { value, taken }, () => {});
  answer([1], 0).tell([2]);
  answer([1], 0).tell([1]);
  assert.deepEqual(answer([1], 0).value, [1]);
  assert.deepEqual(answer([2], Date.now()).value, [1]);
  answer([2], 0).keep([3]); // as while one drags
  assert.deepEqual(answer([2], 0).value, [3]);
  answer([2], 0).forget();
  assert.deepEqual(answer([5], 0).value, [5], "which the server alone knows");
  answer([5], 0).keep([6]);
  assert.deepEqual(ahead(root, "another", { value: [7], taken: 0 }, () => {}).value, [7]);
});
