// The stream as a mirror: the camera fills the window, and the picked channel's map glows on it. How
// strongly the channel answers is a game: hold up something that lights it.
//
// The camera's picture is the browser's own video element, so it moves as fast as the camera does however
// long a frame takes; the light on it is that of the last answer.

import { number, say } from "../../explorer/client/shared.js";
import { glowPainter } from "./live_glow.js";
import { dimmed, likeliest, litPicture, saveMoments, showMoments, WIDE } from "./live_moments.js";
import { note, onMeter, recordOf } from "./live_records.js";

const AS_MOMENT = { wide: WIDE, cut: true };
const CALM = 120; // milliseconds between changes of text, which nobody reads faster
const QUIET = 3000; // between records that are read out
const DESK_OF_PRESENTER = 340;
const DESK = 240; // pixels of the desk beside the picture, at least
const NARROW = 640; // pixels of a window in which it stands below
const MIRROR = "mirror"; // the link's word

/**
 * How large a picture is drawn in a room, and the part of it that is seen there: [wide, high] of each. It
 * fills the room where all that counts, the shares of its sides around its middle, is still in it.
 * @param {number[]} room
 * @param {number[]} sides of the picture
 * @param {number[]} counts
 */
export const fitPicture = (room, sides, counts) => {
  const fills = room.map((length, at) => length / sides[at]);
  const scale = Math.min(Math.max(...fills), ...fills.map((each, at) => each / counts[at]));
  const picture = sides.map((side) => side * scale);
  return { picture, box: picture.map((side, at) => Math.min(side, room[at])) };
};

const isOn = () => window.hookvizLink().get(MIRROR) === "1";

/**
 * @param {(selector: string) => any} find
 * @param {HTMLElement} root
 * @param {any} kept what the tab keeps over the runs of the page
 * @param {{pick: (channel: number) => void, choose: (words: Record<string, string | null>) => void, freeze: () => void, turned: () => void}} on
 *   `turned` is called when the mirror comes or goes
 */
export const mirror = (find, root, kept, on) => {
  const [still, lights, glow, glass] = [".still", ".lights", ".glow", ".glass"].map(find);
  const paintGlow = glowPainter(glow);
  const stillPen = still.getContext("2d");
  kept.records ??= new Map();
  kept.look ??= { strength: 0.8, exact: false, measure: "max", flip: null };
  const { look } = kept;
  /** @type {any} what the server said last, where frames come from, the last answer with its frame */
  let data, source, last;
  /** @type {number | null} */
  let channel = null;
  let [on_, written, spoken, count, size] = [false, 0, 0, 0, ""];
  const spare = new OffscreenCanvas(1, 1);
  const sparePen = /** @type {OffscreenCanvasRenderingContext2D} */ (spare.getContext("2d", { alpha: false }));

  const flipped = () => look.flip ?? !source?.player;
  const record = () => recordOf(kept.records, `${data?.levels} ${channel} ${look.measure}`);

  // The part of the picture that the network sees, in shares of its sides.
  const part = ({ width, height } = source ?? { width: 0, height: 0 }) => {
    if (data?.seen == null || !width) return null;
    if (data.seen === 0) return [0, 0, 1, 1];
    const side = data.seen * Math.min(width, height);
    const [across, down] = [side / width, side / height];
    return [(1 - across) / 2, (1 - down) / 2, across, down];
  };

  // The picture as large as the window lets it be beside the desk, or above it. Its edges may lie outside,
  // as long as all that the network sees is inside.
  const layOut = () => {
    if (!on_) return;
    const [wide, high] = [root.clientWidth, root.clientHeight];
    const isBelow = wide <= NARROW;
    const isLarge = Number.parseFloat(getComputedStyle(find(".desk")).fontSize) > 16; // the presenter's type
    const room = isBelow ? [wide, 0.62 * high] : [wide - (isLarge ? DESK_OF_PRESENTER : DESK), high];
    const seen = part();
    const sides = [source?.width || 4, source?.height || 3];
    const { box, picture } = fitPicture(room, sides, seen ? [seen[2], seen[3]] : [1, 1]);
    const top = isBelow ? 0 : (high - box[1]) / 2;
    const left = isBelow ? (wide - box[0]) / 2 : 0;
    const places = {
      "mirror-x": left,
      "mirror-y": top,
      "mirror-wide": box[0],
      "mirror-high": box[1],
      "picture-x": left + (box[0] - picture[0]) / 2,
      "picture-y": top + (box[1] - picture[1]) / 2,
      "picture-wide": picture[0],
      "picture-high": picture[1],
    };
    for (const [name, value] of Object.entries(places)) root.style.setProperty(`--${name}`, `${Math.round(value)}px`);
    lights.hidden = !seen;
    for (const [at, side] of ["left", "top", "width", "height"].entries()) {
      glow.style[side] = `${100 * (seen?.[at] ?? 0)}%`;
    }
    size = `${source?.width} ${source?.height}`;
  };

  const showLook = () => {
    root.classList.toggle("flipped", flipped());
    root.classList.toggle("cells", look.exact);
    root.style.setProperty("--mirror-glow", String(look.strength));
    root.style.setProperty("--mirror-dim", String(dimmed(look.strength)));
    find(".strength input").value = look.strength;
    find(".flip input").checked = flipped();
    find(".exact input").checked = look.exact;
    find(".measure select").value = look.measure;
  };

  const challenge = () => {
    find(".dare").textContent =
      channel === null ? "" : say("Hold up something that lights channel {channel}", { channel });
    const field = find(".number input");
    if (!field.matches(":focus")) field.value = channel ?? "";
    glass.setAttribute("aria-valuenow", String(channel ?? 0));
    glass.setAttribute("aria-valuetext", channel === null ? "" : say("channel {channel}", { channel }));
  };

  const write = (level) => {
    const { best, lowest, brightest } = record();
    const meter = find(".meter");
    const [at, top] = [onMeter({ best, lowest }, level), onMeter({ best, lowest }, best)];
    find(".fill").style.transform = `scaleX(${at.toFixed(3)})`;
    find(".mark").style.left = `${(100 * top).toFixed(1)}%`;
    const now = performance.now();
    if (now - written < CALM) return;
    written = now;
    meter.setAttribute("aria-valuenow", String(level ?? 0));
    meter.setAttribute("aria-valuemax", String(best ?? 0));
    meter.setAttribute("aria-valuetext", number(level));
    find(".now").textContent = say("now {value}", { value: number(level) });
    find(".record").textContent = best === null ? "" : say("record {value}", { value: number(best) });
    const words = [
      look.measure === "mean"
        ? say("The level is the mean of the channel's map, in the layer's own values.")
        : say("The level is the highest value of the channel's map, in the layer's own values."),
      brightest <= 0
        ? say("Nothing of the map has been above zero yet, so nothing glows.")
        : look.exact
          ? say("Every cell is a square; cells above zero glow, white from {value} on.", { value: number(brightest) })
          : say("Drawn smoothly between the cells; what is above zero glows, white from {value} on.", {
              value: number(brightest),
            }),
    ];
    if (!part()) words.push(say("Where this network looks is not known, so nothing is laid on the picture."));
    find(".how").textContent = words.join("\n");
    const { rate = 0, delay = 0 } = root.dataset;
    find(".pace").textContent = say("{rate} maps a second, each of the picture {delay} ms before", {
      rate: Math.round(Number(rate)),
      delay,
    });
    find(".guess").textContent = data?.random ? "" : likeliest(last?.answer.scores ?? []);
  };

  // What is for ears alone stands elsewhere for eyes, where it is newer.
  const tell = (words, isHeard = false) => {
    const told = find(".told");
    told.classList.toggle("heard", isHeard);
    told.textContent = words;
  };

  const celebrate = (level) => {
    glass.classList.remove("won");
    void glass.offsetWidth; // so that it begins anew
    glass.classList.add("won");
    const now = performance.now();
    if (now - spoken < QUIET) return;
    spoken = now;
    tell(say("A new record: {value}", { value: number(level) }), true);
  };

  // Holds the last answer against the record, and shows how it stands.
  const judge = () => {
    if (!last) return;
    const { answer, levels, shot } = last;
    const held = record();
    const [level, before] = [look.measure === "mean" ? answer.picked.mean : answer.picked.max, held.best];
    if (Number.isFinite(answer.values.high)) held.brightest = Math.max(held.brightest, answer.values.high);
    paintGlow(levels, answer.values, held.brightest, look.exact);
    const moment = note(held, level, performance.now());
    if (moment) {
      const frame = shot.large ?? shot.bitmap;
      moment.picture = litPicture(frame, glow, part(frame), { ...look, flip: flipped() }, AS_MOMENT);
      moment.time = Date.now();
      showMoments(find, held.moments);
      if (before !== null && level === held.best && level > Math.max(0, 1.05 * before)) celebrate(level);
    }
    write(level);
  };
  const judgeAnew = () => {
    written = 0; // and what is said of it is said at once
    showMoments(find, record().moments);
    judge();
  };

  // An answer with numbers, and the frame that it is of.
  const show = (answer, levels, shot) => {
    last?.shot.close();
    last = { answer, levels, shot };
    if (answer.maxima.length !== count) {
      count = answer.maxima.length;
      find(".number input").max = count - 1;
      glass.setAttribute("aria-valuemax", String(count - 1));
    }
    if (size !== `${source?.width} ${source?.height}`) layOut();
    judge();
    root.dataset.mirrored = String(answer.frame);
  };

  const pick = (to) => {
    if (channel === to) return;
    channel = to;
    tell("");
    challenge();
    showMoments(find, record().moments);
    glass.classList.remove("won");
    written = 0;
  };

  const turn = (to) => {
    if (!count) return;
    on.pick(((to % count) + count) % count);
  };

  // As the link says; a channel there is from the start, the one that answers most strongly now.
  const follow = (maxima, isFirst) => {
    const now = isOn();
    if (now === on_) return;
    on_ = now;
    root.classList.toggle("mirrors", on_);
    document.documentElement.classList.toggle("hv-mirror", on_);
    source?.sharpen?.(on_);
    if (on_) {
      layOut();
      showLook();
      challenge();
      showMoments(find, record().moments);
      if (channel === null) on.pick(strongest(maxima));
      if (!isFirst) glass.focus({ preventScroll: true });
    } else {
      last?.shot.close();
      last = null;
      find(".stage").focus({ preventScroll: true }); // where keys are the stream's again
    }
    on.turned();
  };

  // From a button or a field of it too, where keys are else the element's own.
  root.addEventListener("keydown", (event) => {
    if (!on_ || event.key !== "Escape") return;
    event.stopPropagation();
    toggle(false);
  });
  find(".leave").onclick = () => toggle(false);
  find(".looking-glass").onclick = () => toggle(true);
  find(".keep").onclick = on.freeze;
  find(".before").onclick = () => turn((channel ?? 0) - 1);
  find(".after").onclick = () => turn((channel ?? 0) + 1);
  find(".surprise").onclick = () => turn((channel ?? 0) + 1 + Math.floor(Math.random() * Math.max(1, count - 1)));
  find(".number input").onchange = ({ target }) => {
    const asked = Math.round(Number(target.value));
    if (target.value !== "" && asked >= 0 && asked < count) on.pick(asked);
    else {
      tell(say("This layer has the channels 0 to {last}.", { last: count - 1 }));
      target.value = channel;
    }
  };
  find(".layer select").onchange = ({ target }) => on.choose({ layer: target.value });
  find(".measure select").onchange = ({ target }) => {
    look.measure = target.value;
    judgeAnew();
  };
  find(".strength input").oninput = ({ target }) => {
    look.strength = Number(target.value);
    showLook();
  };
  find(".flip input").onchange = ({ target }) => {
    look.flip = target.checked;
    showLook();
  };
  find(".exact input").onchange = ({ target }) => {
    look.exact = target.checked;
    showLook();
    judgeAnew();
  };
  find(".save").onclick = () => {
    saveMoments(record().moments, {
      title: say("Channel {channel} of {layer}: best moments", { channel, layer: data.layer }),
      unit: find(".how").textContent,
      name: `channel-${channel}-${data.layer}`,
    });
  };
  find(".clear").onclick = () => {
    kept.records.delete(`${data?.levels} ${channel} ${look.measure}`);
    judgeAnew();
    glass.focus({ preventScroll: true });
  };

  const toggle = (to = !on_) => on.choose({ [MIRROR]: to ? "1" : null });

  return {
    follow,
    toggle,
    show,
    pick,
    turn: (by) => turn((channel ?? 0) + by),
    layOut,
    get isOn() {
      return on_;
    },
    // The last answer and its frame, as the explorer is given it.
    get shown() {
      return last && { answer: last.answer, frame: last.shot };
    },
    // A larger copy of the frame that is sent, for a moment's picture.
    copy: (picture, wide, high) => {
      const [across, down] = [320, Math.max(1, Math.round((320 * high) / wide))];
      if (spare.width !== across || spare.height !== down) [spare.width, spare.height] = [across, down];
      sparePen.drawImage(picture, 0, 0, across, down);
      return spare.transferToImageBitmap();
    },
    // What a class sees of it.
    picture: (wide) =>
      last && source?.picture()
        ? litPicture(
            sized(source),
            glow,
            part(),
            { ...look, flip: flipped() },
            { wide: Math.min(wide, source.width), cut: false },
          )
        : null,
    update: (newest) => {
      const before = data;
      data = newest;
      if (before?.layers !== data.layers) {
        const options = data.layers.map((name, at) => new Option(`${at + 1} · ${name}`, name));
        find(".layer select").replaceChildren(...options);
      }
      find(".layer select").value = data.at;
      if (before && before.levels !== data.levels) {
        showMoments(find, record().moments);
        written = 0;
      }
      layOut();
    },
    // Where frames come from now; of a file that is no video each picture is painted.
    from: (found) => {
      source = found;
      still.hidden = source?.player?.unit !== "frames";
      if (on_) source?.sharpen?.(true);
      showLook();
      layOut();
    },
    pictured: () => {
      if (!on_ || still.hidden) return;
      const { width, height } = source;
      if (still.width !== width || still.height !== height) [still.width, still.height] = [width, height];
      stillPen.drawImage(source.picture(), 0, 0, width, height);
    },
    stop: () => {
      document.documentElement.classList.remove("hv-mirror");
      last?.shot.close();
      last = null;
    },
  };
};

const strongest = (maxima) => {
  const best = Math.max(...(maxima ?? []).filter(Number.isFinite));
  return Math.max(0, (maxima ?? []).indexOf(best));
};

// What can be drawn of a source, with its size.
const sized = (source) => {
  const { width, height } = source;
  const canvas = new OffscreenCanvas(width, height);
  /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext("2d")).drawImage(source.picture(), 0, 0);
  return canvas;
};
