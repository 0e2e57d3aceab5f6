// The page that runs a network itself: on its own photographs, on those that a person opens, drops or pastes,
// and on what the camera sees.

import { make, penOf, say } from "../../explorer/client/shared.js";
import { blocksOf, bytesOf, textIn } from "./blocks.js";
import { saidIn } from "./in_address.js";
import { liveAnswers } from "./live_answers.js";
import { startNetwork } from "./live_network.js";
import { around, failed } from "./page_around.js";
import { chosen } from "./recorded.js";

const PHOTOGRAPH = 480; // pixels of its longer side, as the app shows it
const SEEN = 152; // of the network's input
const MOST = 60e6; // pixels of an image
const CAMERA = 640; // pixels across

/** Begin to show what the document keeps, or say that it can't be shown. */
export const begin = () => show().catch(failed);

/** A canvas of a picture. @param {CanvasImageSource | ImageData} picture @param {number} width @param {number} height */
const canvasOf = (picture, width, height) => {
  const canvas = make("canvas", { width, height });
  const pen = penOf(canvas, { willReadFrequently: true });
  if (picture instanceof ImageData) pen.putImageData(picture, 0, 0);
  else pen.drawImage(picture, 0, 0, width, height);
  return { canvas, pen };
};

/** A picture as a small file. @param {HTMLCanvasElement} canvas @param {number} most @param {string} type */
const smallFile = async (canvas, most, type) => {
  const shrink = Math.min(1, most / Math.max(canvas.width, canvas.height));
  const [width, height] = [canvas.width, canvas.height].map((side) => Math.max(1, Math.round(side * shrink)));
  const small = canvasOf(canvas, width, height).canvas;
  const blob = await new Promise((done) => small.toBlob(done, type, 0.9));
  return new Uint8Array(await blob.arrayBuffer());
};

/** RGBA of the network's input. @param {Uint8Array} rgb @param {number} width */
const inputPicture = (rgb, width) => {
  const data = new Uint8ClampedArray((rgb.length / 3) * 4).fill(255);
  for (let at = 0; at < rgb.length / 3; at += 1) data.set(rgb.subarray(3 * at, 3 * at + 3), 4 * at);
  return new ImageData(data, width);
};

const show = async () => {
  const blocks = blocksOf(textIn(document));
  const page = await blocks.facts("page");
  const network = await startNetwork(blocks, page);
  /** @type {Map<string, import("./live_answers.js").Picture>} */
  const pictures = new Map();
  let image = "";
  let count = 0;

  /** Show a picture. @param {HTMLCanvasElement} canvas @param {{title: string, alt: string}} words */
  const use = async (canvas, { title, alt }) => {
    const { width, height } = canvas;
    count += 1;
    const id = String(count);
    const pixels = penOf(canvas, { willReadFrequently: true }).getImageData(0, 0, width, height);
    const photograph = await smallFile(canvas, PHOTOGRAPH, "image/jpeg");
    const { picture, crop } = await network.picture(id, pixels);
    const seen = inputPicture(picture, page.preprocess.crop);
    const input = await smallFile(canvasOf(seen, seen.width, seen.height).canvas, SEEN, "image/png");
    if (Number(id) < Number(image)) return; // another one was chosen meanwhile
    pictures.set(id, { id, title, alt, width, height, crop, photograph, input });
    for (const oldest of [...pictures.keys()].slice(0, -2)) pictures.delete(oldest);
    network.keepOnly([...pictures.keys()]); // a camera's frames would fill the memory
    image = id;
  };
  const decode = async (/** @type {Blob} */ file) => {
    const picture = await createImageBitmap(file, { premultiplyAlpha: "none" });
    if (picture.width * picture.height > MOST) throw new Error("too large");
    const { canvas } = canvasOf(picture, picture.width, picture.height);
    picture.close();
    return canvas;
  };

  const row = make("div", { className: "pictures", role: "group" });
  document.getElementById("explorer")?.before(row);
  const answered = liveAnswers(page, blocks, network, {
    bytesOf,
    pictureOf: (id) => /** @type {any} */ (pictures.get(id)),
  });
  /** @type {Set<object>} */
  const open = new Set(); // questions without an answer
  /** @type {typeof answered} */
  const ask = async (question, about) => {
    open.add(question);
    try {
      return await answered(question, about);
    } finally {
      open.delete(question);
    }
  };
  const status = make("p", { role: "status" });
  const files = make("input", { type: "file", accept: "image/*", hidden: true });
  const opens = make("button", { type: "button", onclick: () => files.click() });
  const camera = make("button", { type: "button", onclick: () => (video ? stop() : film()) });
  const thumbs = page.samples.map((_, at) =>
    make("button", { type: "button", className: "thumb", onclick: () => sample(at) }, make("img", { alt: "" })),
  );
  const wantedWords = () => ({ ".language": spokenNow(), ".theme": 0 });
  const spokenNow = () => page.languages.findIndex(({ language }) => language === document.documentElement.lang);
  const samplesNow = () => chosen(page.samples, wantedWords());
  let at = -1; // which sample it is
  const mark = () => {
    thumbs.forEach((thumb, index) => thumb.setAttribute("aria-pressed", String(index === at)));
  };

  const sample = async (/** @type {number} */ index, how = "push") => {
    stop();
    at = index;
    mark();
    const file = new Blob([await sampleBytes(index)], { type: page.samples[index].mime });
    await use(await decode(file), samplesNow()[index]);
    status.textContent = "";
    if (how) shown.write({ sample: index ? String(index) : null }, how);
    shown?.show();
  };
  const sampleBytes = async (/** @type {number} */ index) => /** @type {any} */ (await blocks.bytes(`sample-${index}`));
  const openFile = async (/** @type {File[]} */ [file, ...others]) => {
    if (!file) return;
    stop();
    try {
      const canvas = await decode(file);
      at = -1;
      mark();
      await use(canvas, { title: file.name, alt: file.name });
      status.textContent = others.length
        ? say("Of several images the first is shown: {name}.", { name: file.name })
        : "";
    } catch {
      status.textContent = say("{name} can't be shown: choose a JPEG, PNG or WebP of up to 60 megapixels.", {
        name: file.name,
      });
      return;
    }
    shown?.show(); // there is none yet while the page begins
  };
  files.onchange = () => {
    openFile([...files.files]);
    files.value = "";
  };
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    openFile([...(event.dataTransfer?.files ?? [])]);
  });
  document.addEventListener("paste", ({ clipboardData }) => openFile([...(clipboardData?.files ?? [])]));

  /** @type {HTMLVideoElement | null} */
  let video = null;
  const stop = () => {
    for (const track of /** @type {any} */ (video?.srcObject)?.getTracks() ?? []) track.stop();
    video = null;
    camera.textContent = say("Camera");
  };
  const film = async () => {
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ video: { width: CAMERA } });
      video = make("video", { muted: true, playsInline: true, srcObject: stream });
      await video?.play();
    } catch {
      stop();
      status.textContent = say("The camera can't be had: there is none, or the browser does not allow it here.");
      return;
    }
    camera.textContent = say("Stop the camera");
    at = -1;
    mark();
    while (video) {
      const { videoWidth, videoHeight } = /** @type {HTMLVideoElement} */ (video);
      await use(canvasOf(/** @type {any} */ (video), videoWidth, videoHeight).canvas, {
        title: say("Camera"),
        alt: say("Camera"),
      });
      shown.show();
      do await new Promise(requestAnimationFrame);
      while (open.size);
    }
  };

  const speak = () => {
    row.setAttribute("aria-label", say("Image"));
    opens.textContent = say("Open an image…");
    opens.title = say("An image can be dropped and pasted anywhere in this page, too.");
    camera.textContent = video ? say("Stop the camera") : say("Camera");
    samplesNow().forEach(({ title }, index) => {
      thumbs[index].title = title;
      thumbs[index].firstChild.alt = title;
    });
  };
  for (const [index, thumb] of thumbs.entries()) {
    sampleBytes(index).then((bytes) => {
      thumb.firstChild.src = URL.createObjectURL(new Blob([bytes], { type: page.samples[index].mime }));
    });
  }
  row.append(...thumbs, opens, camera, files, status);

  const sampleIn = (/** @type {URLSearchParams} */ said) => Number(said.get("sample") ?? 0);
  const asked = sampleIn(saidIn(location));
  /** @type {any} */
  let shown = null;
  await sample(page.samples[asked] ? asked : 0, "");
  shown = around(page, {
    ask,
    image: () => image,
    spoken: speak,
    went: (said) => {
      const next = sampleIn(said);
      if (page.samples[next] && next !== at) sample(next, "");
    },
  });
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
};
