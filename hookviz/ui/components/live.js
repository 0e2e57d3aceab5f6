// The stream: takes frames from a source, sends one after the other, shows what is drawn of each.
// One is on its way at a time, and the next one leaves before the answer is painted.
// A run of the page changes what is drawn and nothing else; the stream goes on over it.
// Over 250 lines: all of it is about one state, the frame that is on its way.

import { frame, say, unpacked } from "../../explorer/client/shared.js";
import { FRAME } from "./live_frame.js";
import { pressed } from "./live_keys.js";
import { channelInLink } from "./live_link.js";
import { mirror } from "./live_mirror.js";
import { offerCameras, playerBar } from "./live_player.js";
import { watch } from "./live_screen.js";
import { sharing } from "./live_share.js";
import { shooter } from "./live_shots.js";
import { openCamera, openFile } from "./live_source.js";
import { LONGEST_WAIT, openWire } from "./live_wire.js";
import { showTrouble, TROUBLES } from "./live_words.js";

const lives = new WeakMap(); // screens and what runs on them
const LINK_PAUSE = 500; // milliseconds in which the arrows may go on before the link follows
const SIGN_OF_LIFE = 20000; // milliseconds without a frame, of a video that stands still

// What the next stream of this tab goes on with, when a frame was looked at in between.
const kept = (window.hookvizLive ??= { file: null, at: 0, device: null, hold: false });

const run = (root, find) => {
  const [video, stage, freeze, hold, state] = ["video", ".stage", ".freeze", ".hold input", ".state"].map(find);
  const screen = watch(find, root);
  const shoot = shooter();
  let data, trigger, source, wire, trouble, frozen, stopped;
  let [next, sent, changed, opened, spoke] = [1, -1, true, 0, 0];
  const onItsWay = new Map(); // frames by number
  const paints = []; // when the last ones were painted
  const delays = [];
  hold.checked = kept.hold;

  const showPlayer = playerBar(find, () => source);
  const report = (words) => {
    if (state.textContent !== words) state.textContent = words;
  };

  const told = () => ({ channel: screen.picked, hold: hold.checked, cell: null, values: glass.isOn });
  const speak = () => {
    wire?.say(told());
    spoke = performance.now();
  };
  const tell = () => {
    changed = true; // and so a video that stands still is drawn again
    speak();
    pump();
  };

  // Sends a frame where there is a new one, or where the last would be drawn otherwise now.
  const pump = () => {
    for (const [number, { at }] of onItsWay) {
      if (performance.now() - at > LONGEST_WAIT) settle(number)?.close();
    }
    if (frozen || trouble || onItsWay.size || !wire?.isOpen() || !source?.picture()) return;
    if (source.count === sent && !changed) return;
    [sent, changed] = [source.count, false];
    const shot = shoot(source, data.side);
    if (glass.isOn) shot.large = glass.copy(source.picture(), source.width, source.height);
    const number = next++;
    onItsWay.set(number, shot);
    wire.send(number, shot.bytes);
    spoke = performance.now();
  };

  const settle = (number) => {
    const shot = onItsWay.get(number);
    for (const [other, late] of onItsWay) {
      if (other > number) continue;
      if (other < number) late.close();
      onItsWay.delete(other);
    }
    return shot;
  };

  const answered = async (answer) => {
    const shot = settle(answer.frame);
    const line = wire;
    pump();
    if (!shot) return;
    if (screen.picked >= answer.maxima.length && glass.isOn) link.pick(answer.maxima.length - 1); // of another layer
    if (answer.values) {
      if (wire === line && !frozen && glass.isOn) {
        glass.show(answer, answer.blobs[0], shot);
        painted(shot);
      } else shot.close();
      return;
    }
    const pictures = answer.blobs.map((bytes) => createImageBitmap(new Blob([bytes], { type: "image/png" })));
    const [sprite, map = null] = await Promise.all(pictures);
    // The tab may have been hidden, or the stream have ended, while the pictures were unpacked.
    if (wire !== line || frozen || (screen.shown && screen.shown.answer.frame > answer.frame)) {
      for (const each of [sprite, map, shot]) each?.close();
      return;
    }
    screen.show({ answer, sprite, map, frame: shot }, data.seen);
    painted(shot);
  };

  const painted = (shot) => {
    freeze.disabled = false;
    root.classList.add("runs");
    report(say("Live"));
    const now = performance.now();
    paints.push(now);
    delays.push(now - shot.at);
    while (paints[0] < now - 2000 && paints.length > 2) [paints.shift(), delays.shift()];
    root.dataset.delay = Math.round(delays.reduce((sum, each) => sum + each, 0) / delays.length);
    root.dataset.rate = paints.length > 1 ? ((1000 * (paints.length - 1)) / (now - paints[0])).toFixed(1) : 0;
    complain("");
    share.run(true);
  };

  const fail = (kind, words = "") => {
    trouble = kind;
    if (stage.contains(root.getRootNode().activeElement)) find(".again").focus();
    showTrouble(find, kind, words);
    freeze.disabled = true;
    report("");
    share.run(false);
    disconnect();
  };

  const disconnect = () => {
    wire?.close();
    wire = null;
    for (const shot of onItsWay.values()) shot.close();
    onItsWay.clear();
  };
  const connect = () => {
    disconnect();
    const token = data.token;
    const line = openWire(data, {
      open: () => {
        line.say(told());
        changed = true;
        pump();
      },
      answer: (answer) => answered(answer).catch((error) => fail("broken", error.message)),
      refused: (words) => {
        for (const number of [...onItsWay.keys()].slice(0, 1)) settle(number)?.close();
        complain(words);
        setTimeout(pump, 200);
      },
      end: (kind, words) => fail(kind, words),
    });
    line.token = token;
    wire = line;
  };

  const release = () => {
    opened += 1; // whoever still opens one lets go of it
    if (source?.player) kept.at = source.player.at;
    source?.stop();
    source = null;
    glass.from(null);
    find(".player").hidden = true;
  };

  // The camera, or the file that is kept, and then the wire.
  const begin = async () => {
    release();
    trouble = null;
    showTrouble(find, null);
    const own = ++opened;
    const { file } = kept;
    report(file ? say("Opening the file…") : say("Asking for the camera…"));
    try {
      const found = await (file ? openFile(video, file, kept.at) : openCamera(video, kept.device, data.cameraWidth));
      if (own !== opened || stopped || document.hidden) return found.stop();
      source = found;
    } catch (error) {
      const trouble = /** @type {import("./live_words.js").Trouble} */ (error);
      if (own === opened) fail(trouble.kind ?? "broken", trouble.kind ? "" : trouble.message);
      return;
    }
    glass.from(source);
    source.onpicture = () => {
      glass.pictured();
      pump();
      showPlayer();
    };
    source.onend = () => fail(file ? "video" : "ended");
    sent = -1;
    find(".camera").hidden = !file;
    showPlayer();
    report(say("Connecting…"));
    connect();
    find(".cameras").hidden = true;
    if (!file) await offerCameras(find, source.device);
  };

  const link = channelInLink(
    (channel) => {
      screen.pick(channel, data.seen);
      glass.pick(channel);
      tell();
    },
    (channel) => window.hookvizWrite({ channel: channel === null ? null : String(channel) }, "push"),
  );

  const glass = mirror(find, root, kept, {
    pick: (channel) => link.pick(channel, LINK_PAUSE),
    choose: (words) => {
      link.settle();
      window.hookvizWrite(words, "push");
    },
    freeze: () => takeOut(),
    turned: tell,
  });
  const linked = (/** @type {unknown} */ event) => {
    link.follow();
    glass.follow(screen.shown?.answer.maxima, !event);
  };
  const complain = (words) => {
    find(".note").textContent = words;
    if (words && glass.isOn) find(".told").textContent = words;
  };
  const share = sharing(root, kept, () => {
    const shown = glass.isOn ? glass.shown : screen.shown;
    const photo = glass.isOn ? glass.picture(960) : shown?.frame.bitmap;
    if (!shown || !photo) return null;
    const facts = {
      layer: data.layer,
      channel: screen.picked,
      score: data.random ? null : (shown.answer.scores[0] ?? null),
    };
    return {
      facts: { ...facts, count: shown.answer.frame },
      photo,
      tiles: glass.isOn ? [] : [find(".board"), find(".marks")],
    };
  });

  const takeOut = () => {
    const shown = glass.isOn ? glass.shown : screen.shown;
    if (!shown || frozen || freeze.disabled) return;
    const { answer, frame } = shown;
    if (frame.bytes.byteLength > data.mostBytes) {
      return complain(say("This frame is too large to be kept. Choose a smaller input size."));
    }
    frozen = true;
    link.stop();
    report(say("Opening this frame…"));
    const of = answer.picked?.channel === screen.picked ? answer.picked : null;
    const tile = answer.grid?.geometry.tile ?? [answer.values.rows, answer.values.columns];
    trigger("frozen", {
      file: frame.file,
      at: new Date().toTimeString().slice(0, 8),
      channel: screen.picked,
      cell: of?.cell ? [...of.cell, ...tile] : null,
    });
    setTimeout(() => {
      frozen = false; // nobody took it
      changed = true;
      pump();
    }, 10000);
  };

  const again = () => {
    if (trouble in TROUBLES && (/^\d/.test(trouble) || trouble === "gone")) trigger("again", Date.now());
    begin();
  };

  freeze.onclick = takeOut;
  find(".again").onclick = again;
  find(".close").onclick = () => {
    link.pick(null);
    stage.focus();
  };
  hold.onchange = () => {
    kept.hold = hold.checked;
    tell();
  };
  find(".open").onclick = () => find(".file").click();
  find(".file").onchange = ({ target }) => {
    if (!target.files.length) return;
    release(); // which keeps where the one before has come to
    [kept.file, kept.at] = [target.files[0], 0];
    target.value = ""; // the same one again is a choice too
    begin();
  };
  find(".camera").onclick = () => {
    kept.file = null;
    begin();
  };
  find(".cameras select").onchange = ({ target }) => {
    kept.device = target.value;
    begin();
  };
  stage.onclick = (event) => {
    const channel = screen.under(event);
    if (channel !== null) link.pick(channel);
  };
  const press = pressed({
    " ": takeOut,
    m: () => glass.toggle(),
    M: () => glass.toggle(),
    Escape: () => (glass.isOn ? glass.toggle(false) : screen.picked === null ? false : link.pick(null)),
    move: (across, down) => {
      if (glass.isOn) return glass.turn(across - down);
      const to = screen.neighbour(across, down);
      if (to !== null) link.pick(to, LINK_PAUSE);
    },
  });

  const shown = () => {
    if (document.hidden) {
      release();
      disconnect();
      share.run(false);
      if (!trouble) report(say("Stopped while this tab is hidden."));
    } else if (!trouble) begin();
  };

  const tick = setInterval(() => {
    if (window.hookviz) window.hookviz.ready = true; // no key has to be kept for the grid
    find(".speed").textContent =
      root.dataset.rate && wire
        ? say("{rate} frames/s · {delay} ms", {
            rate: Math.round(root.dataset.rate),
            delay: root.dataset.delay,
          })
        : "";
    if (performance.now() - spoke > SIGN_OF_LIFE) speak();
    pump();
  }, 500);
  const resized = () => (glass.isOn ? glass.layOut() : screen.again(data.seen));
  const observer = new ResizeObserver(resized);

  const stop = () => {
    if (stopped) return;
    stopped = true;
    release();
    disconnect();
    clearInterval(tick);
    link.stop();
    glass.stop();
    share.stop();
    observer.disconnect();
    window.removeEventListener("resize", resized);
    window.removeEventListener("hookviz:link", linked);
    document.removeEventListener("keydown", press);
    document.removeEventListener("visibilitychange", shown);
    lives.delete(root);
  };

  const update = (newest, setTriggerValue) => {
    const first = !data;
    const other = !first && newest.token !== data.token;
    const redrawn = !first && newest.subject !== data.subject;
    if (redrawn && newest.layer !== data.layer) screen.moments = [];
    [data, trigger] = [newest, setTriggerValue];
    find(".random").hidden = !data.random;
    glass.update(data);
    share.update(data.teaches);
    if (first) {
      linked(null);
      window.addEventListener("resize", resized);
      window.addEventListener("hookviz:link", linked);
      document.addEventListener("keydown", press);
      document.addEventListener("visibilitychange", shown);
      for (const each of [find(".tiles"), root]) observer.observe(each);
      if (!document.hidden) begin();
    } else if (other && (source || /^\d|gone/.test(trouble ?? ""))) {
      if (trouble) begin();
      else connect();
    } else if (redrawn) tell();
  };
  return { update, stop };
};

export default function ({ data: bytes, parentElement, setTriggerValue }) {
  const find = frame(parentElement, FRAME);
  const root = find(".live");
  let live = lives.get(root);
  if (!live) lives.set(root, (live = run(root, find)));
  live.update(unpacked(bytes), setTriggerValue);
  return live.stop;
}
