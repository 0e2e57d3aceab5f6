// Where the camera is: what lies under a finger stays there, and boxes are in the middle of the room.
import assert from "node:assert/strict";
import { test } from "node:test";
import { between, fitted, limited, moved, onScreen, zoomed } from "../../hookviz/explorer/client/map_camera.js";

const near = (one, other) => assert.ok(Math.abs(one - other) < 1e-9, `${one} is not ${other}`);
const room = { width: 800, height: 400 };
const world = { left: 0, top: 0, width: 20, height: 5 };

test("a box that is fitted lies in the middle, within the margin", () => {
  const box = { left: 3, top: 1, width: 2, height: 2 };
  const shown = onScreen(fitted(box, room, 0.2), box);
  near(shown.left + shown.width / 2, 400);
  near(shown.top + shown.height / 2, 200);
  near(shown.height, 320);
});

test("what lies under the point stays there while one zooms", () => {
  const camera = { x: 2, y: 1, scale: 30 };
  const point = { x: 123, y: 45 };
  const at = (of) => [of.x + point.x / of.scale, of.y + point.y / of.scale];
  const [before, after] = [at(camera), at(zoomed(camera, 1.7, point))];
  near(before[0], after[0]);
  near(before[1], after[1]);
});

test("what a hand holds goes with the hand", () => {
  const camera = { x: 2, y: 1, scale: 30 };
  const box = { left: 4, top: 2, width: 1, height: 1 };
  const [before, after] = [onScreen(camera, box), onScreen(moved(camera, 15, -6), box)];
  near(after.left - before.left, 15);
  near(after.top - before.top, -6);
});

test("a flight begins and ends where it should, and grows evenly", () => {
  const [one, other] = [fitted(world, room), fitted({ left: 3, top: 1, width: 1, height: 1 }, room)];
  assert.deepEqual(between(one, other, 1), other);
  near(between(one, other, 0).x, one.x);
  near(between(one, other, 0.5).scale, Math.sqrt(one.scale * other.scale));
  const middle = (camera) => camera.x + room.width / 2 / camera.scale;
  const ways = [0, 0.25, 0.5, 0.75, 1].map((share) => middle(between(one, other, share)));
  assert.deepEqual(
    ways,
    [...ways].sort((a, b) => b - a),
  );
});

test("nobody gets lost: not farther than the whole map, nor beside it", () => {
  const far = limited({ x: 900, y: -50, scale: 1 }, world, room, 500);
  near(far.scale, fitted(world, room).scale);
  const shown = onScreen(far, world);
  assert.ok(shown.left < room.width && shown.left + shown.width > 0);
  near(limited({ x: 0, y: 0, scale: 9000 }, world, room, 500).scale, 500);
});
