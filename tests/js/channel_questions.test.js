import assert from "node:assert/strict";
import { test } from "node:test";
import { linkAbout } from "../../hookviz/explorer/client/channel_questions.js";

test("a question's link names the layer and the channel that are picked up", () => {
  const link = { lens: "ablate", layer: "{layer}", "ablate-channels": "{channel}" };
  assert.deepEqual(linkAbout(link, { layer: "stem.$1", channel: 3 }), {
    lens: "ablate",
    layer: "stem.$1",
    "ablate-channels": "3",
  });
});
