import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test from "node:test";
import { softmax } from "../../hookviz/explorer/client/softmax.js";
import { chanceText } from "../../hookviz/ui/components/softmax.js";

globalThis.window ??= /** @type {any} */ ({});
const WORDS = { share: "{share} %", less: "< {share} %", more: "> {share} %" };

test("the softmax is that of NumPy, also beside many others", () => {
  const scores = [3.2, -1, 700, 699.5];
  const all = softmax(scores, null);
  const sum = all.chances.reduce((one, other) => one + other);
  assert.ok(Math.abs(sum - 1) < 1e-12);
  assert.ok(Math.abs(all.chances[2] / all.chances[3] - Math.exp(0.5)) < 1e-9);
  const rest = [0.3, 0.1, -2];
  const others = Math.log(rest.reduce((so_far, score) => so_far + Math.exp(score), 0));
  const whole = softmax([2, 1, ...rest], null);
  const beside = softmax([2, 1], others);
  assert.ok(Math.abs(beside.chances[0] - whole.chances[0]) < 1e-12);
  assert.ok(Math.abs(beside.others - whole.chances.slice(2).reduce((one, other) => one + other)) < 1e-12);
});

test("the same number added to all changes nothing", () => {
  const one = softmax([1, 2, 3], 0.5);
  const other = softmax([101, 102, 103], 100.5);
  one.chances.forEach((chance, at) => assert.ok(Math.abs(chance - other.chances[at]) < 1e-12));
});

test("a probability is written as the server writes it", () => {
  const shares = [1, 0.99999, 0.98667, 0.25, 0.0344, 0.00999, 0.00144, 0.0000206, 1.23e-6, 1e-9, 0];
  const program = `
import json, sys
from hookviz.lessons.scores import chance
print(json.dumps([chance(share) for share in json.loads(sys.argv[1])]))`;
  const told = JSON.parse(execFileSync("python", ["-c", program, JSON.stringify(shares)], { encoding: "utf8" }));
  assert.deepEqual(
    shares.map((share) => chanceText(share, WORDS)),
    told,
  );
});
