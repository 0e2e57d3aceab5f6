import assert from "node:assert/strict";
import { test } from "node:test";
import { linkAbout, namedBefore } from "../../hookviz/explorer/client/channel_questions.js";

test("a question's link names the layer and the channel that are picked up", () => {
  const link = { lens: "ablate", layer: "{layer}", "ablate-channels": "{channel}" };
  assert.deepEqual(linkAbout(link, { layer: "stem.$1", channel: 3 }), {
    lens: "ablate",
    layer: "stem.$1",
    "ablate-channels": "3",
  });
});

test("channels that were named in a lens go where another one is picked up, and nothing else does", () => {
  const questions = [
    { link: { lens: "ablate", channel: "{channel}", "ablate-channels": "" } },
    { link: { lens: "maximize", "maximize-channels": "" } },
  ];
  assert.deepEqual(namedBefore(questions, "?layer=stem&ablate-channels=0-3&ablate-mode=scale"), {
    "ablate-channels": null,
  });
  assert.deepEqual(namedBefore(questions, "?layer=stem&channel=3"), {});
  assert.deepEqual(namedBefore([], "?ablate-channels=0-3"), {});
});
