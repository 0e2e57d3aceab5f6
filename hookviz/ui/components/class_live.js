// A teacher's live camera in a class: the teacher's page tells of it, and pupils see the newest picture
// of it, or read that there is one which is not shared.

import { say } from "../../explorer/client/shared.js";
import { inPercent } from "./live_moments.js";
import { readAnswer } from "./live_wire.js";

const MOST_WAITING = 60000; // bytes that wait to be sent, above which a picture is left out

// What the teacher's page tells: live_share.js says in `window.hookvizCamera` what there is.
export const tellsCamera = (line) => {
  /** @type {string | null | undefined} */
  let told;
  const tell = () => {
    const { kind = null, bytes = null } = window.hookvizCamera ?? {};
    if (kind !== (told ?? null) && line()?.say({ live: kind })) told = kind;
    if (bytes && told === "shared") line()?.send(bytes, MOST_WAITING);
  };
  addEventListener("hookviz:camera", tell);
  return {
    // The line is open, or open again: the server knows of no camera.
    opened: () => {
      told = null;
      tell();
    },
    stop: () => removeEventListener("hookviz:camera", tell),
  };
};

export const CAMERA = `
  <section class="camera" aria-label="The teacher's camera" hidden>
    <p class="notice" role="status"></p>
    <div class="seen" hidden><img class="photo" alt=""><img class="tiles" alt=""></div>
    <p class="what" hidden></p>
  </section>`;

// What pupils see of it.
export const seesCamera = (find) => {
  /** @type {string | null} */
  let kind = null;
  let [apart, has] = [false, false];
  const show = () => {
    find(".camera").hidden = kind === null || apart;
    find(".camera").dataset.kind = kind ?? "";
    // On a phone it stays in sight, which the page's own sheet does.
    const bar = find(".camera").getRootNode().host?.closest(".st-key-hv-class");
    bar?.toggleAttribute("data-camera", kind === "shared" && has && !apart);
    find(".seen").hidden = find(".what").hidden = kind !== "shared" || !has;
    const words =
      kind === "private"
        ? say("The teacher is looking at a live camera; it is not shared.")
        : kind === "shared"
          ? say("The teacher's live camera, about once a second")
          : "";
    if (find(".notice").textContent !== words) find(".notice").textContent = words;
  };
  const put = (image, bytes, alt) => {
    const before = image.src;
    image.hidden = !bytes;
    if (bytes) image.src = URL.createObjectURL(new Blob([bytes], { type: "image/jpeg" }));
    else image.removeAttribute("src");
    image.alt = alt;
    if (before) URL.revokeObjectURL(before);
  };
  const clear = () => {
    has = false;
    for (const name of [".seen .photo", ".seen .tiles"]) put(find(name), null, "");
  };
  return {
    kind: (now) => {
      kind = now;
      if (kind !== "shared") clear();
      show();
    },
    frame: (buffer) => {
      const { blobs, layer, channel, score, count = 0 } = readAnswer(buffer);
      has = true;
      put(find(".seen .photo"), blobs[0], say("What the teacher's camera sees"));
      put(find(".seen .tiles"), blobs[1], say("The channels of layer {layer}", { layer }));
      find(".seen").classList.toggle("alone", !blobs[1]);
      const words = [say("layer {layer}", { layer })];
      if (Number.isInteger(channel)) words.push(say("channel {channel}", { channel }));
      if (score) words.push(`${score[0]} ${inPercent(score[1])}`);
      find(".what").textContent = words.join(" · ");
      find(".camera").dataset.count = String(count);
      show();
    },
    apart: (is) => {
      apart = is;
      show();
    },
    stop: clear,
  };
};
