// What a teacher who is live shows to the class: nothing but that there is a camera, or once a second a
// small picture of it. `class_live.js` sends that to the class, and the server's own bounds are in
// hookviz/classroom/school_class.py.

import { make, say } from "../../explorer/client/shared.js";

const PAUSE = 1000; // milliseconds between two pictures
const [PHOTO, TILES, ALONE] = [16000, 40000, 56000]; // most bytes of each, and of a picture without tiles
const [SMALL, LARGE] = [320, 960]; // pixels across
const SMALLER = [
  [1, 0.8],
  [1, 0.5],
  [0.7, 0.5],
  [0.45, 0.4],
]; // scale and quality, until it fits

// A picture on a canvas of at most so many pixels across.
const fitted = (picture, wide, ground = "#000") => {
  const scale = Math.min(1, wide / picture.width);
  const size = {
    width: Math.max(1, Math.round(picture.width * scale)),
    height: Math.round(picture.height * scale) || 1,
  };
  const canvas = make("canvas", size);
  const pen = canvas.getContext("2d");
  pen.fillStyle = ground;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
  return canvas;
};

/** @returns {Promise<Uint8Array | null>} */
const asJpeg = async (canvas, most) => {
  for (const [scale, quality] of SMALLER) {
    const drawn = scale < 1 ? fitted(canvas, canvas.width * scale) : canvas;
    const blob = await new Promise((done) => drawn.toBlob(done, "image/jpeg", quality));
    if (blob && blob.size <= most) return new Uint8Array(await blob.arrayBuffer());
  }
  return null;
};

/**
 * A text and pictures in one message, as the server's answers are.
 * @param {Record<string, unknown>} facts
 * @param {Uint8Array[]} pictures
 */
export const packFrame = (facts, pictures) => {
  const text = new TextEncoder().encode(JSON.stringify({ ...facts, blobs: pictures.map((each) => each.length) }));
  const message = new Uint8Array(4 + text.length + pictures.reduce((sum, each) => sum + each.length, 0));
  new DataView(message.buffer).setUint32(0, text.length, true);
  let at = 4;
  for (const part of [text, ...pictures]) {
    message.set(part, at);
    at += part.length;
  }
  return message;
};

/**
 * @param {HTMLElement} root
 * @param {any} kept what the tab keeps, whether it is shared among it
 * @param {() => {facts: Record<string, unknown>, photo: any, tiles: any[]} | null} seen what there is now
 */
export const sharing = (root, kept, seen) => {
  let [teaches, runs, busy, told] = [false, false, false, ""];
  const boxes = () => /** @type {NodeListOf<HTMLInputElement>} */ (root.querySelectorAll(".share input"));

  const tell = (/** @type {Uint8Array | null} */ bytes = null) => {
    const kind = teaches && runs ? (kept.share ? "shared" : "private") : null;
    if (!bytes && kind === told) return;
    told = kind ?? "";
    window.hookvizCamera = { kind, bytes: kind === "shared" ? bytes : null };
    dispatchEvent(new Event("hookviz:camera"));
  };
  const show = () => {
    for (const label of root.querySelectorAll(".share")) /** @type {HTMLElement} */ (label).hidden = !teaches;
    for (const box of boxes()) box.checked = Boolean(kept.share);
    for (const words of root.querySelectorAll(".shared")) {
      /** @type {HTMLElement} */ (words).hidden = !teaches;
      words.textContent = kept.share
        ? say("Everybody in the class sees a small picture a second. Nothing of it is stored.")
        : say("The class reads that you look at a live camera, and sees nothing of it.");
    }
    root.classList.toggle("shares", teaches && Boolean(kept.share));
  };
  for (const box of boxes()) {
    box.onchange = () => {
      kept.share = box.checked;
      show();
      tell();
    };
  }

  const send = async () => {
    const now = kept.share && teaches && runs && !busy ? seen() : null;
    if (!now) return;
    busy = true;
    try {
      const photo = await asJpeg(fitted(now.photo, now.tiles.length ? SMALL : LARGE), now.tiles.length ? PHOTO : ALONE);
      const ground = getComputedStyle(root).getPropertyValue("--st-background-color") || "#000";
      const board = now.tiles.length ? fitted(now.tiles[0], LARGE, ground) : null;
      for (const each of now.tiles.slice(1)) board.getContext("2d").drawImage(each, 0, 0, board.width, board.height);
      const tiles = board && (await asJpeg(board, TILES));
      if (photo) tell(packFrame(now.facts, tiles ? [photo, tiles] : [photo]));
    } finally {
      busy = false;
    }
  };
  const timer = setInterval(send, PAUSE);

  return {
    // Whether this page teaches a class.
    update: (isTeacher) => {
      teaches = isTeacher;
      show();
      tell();
    },
    // Whether there is something to see.
    run: (does) => {
      if (does === runs) return;
      runs = does;
      tell();
    },
    stop: () => {
      clearInterval(timer);
      runs = false;
      tell();
    },
  };
};
