// The whole network as a map that one goes into: from blocks to layers, channels and cells, and back out.

import { newest } from "./asking.js";
import { classPaths, classUnder } from "./class_paths.js";
import { isKept, strongestAlone } from "./kept_parts.js";
import { fitted, flights, limited, moved, onScreen, zoomed } from "./map_camera.js";
import { mapFiles } from "./map_files.js";
import { handsOn } from "./map_hands.js";
import { keysOn } from "./map_keys.js";
import { mapList } from "./map_list.js";
import { isNear, isOpen, mapPainter } from "./map_painter.js";
import { boardOf, described, leafAt, partAround, partUnder, placed } from "./map_parts.js";
import { worldOf } from "./map_world.js";
import { nearTiles } from "./near_tiles.js";
import { passPlayer } from "./pass_player.js";
import { decoded, urls } from "./pictures.js";
import { roomBelow } from "./place.js";
import { seenField } from "./seen_field.js";
import { frame, penOf } from "./shared.js";

/**
 * @typedef {import("./map_parts.js").Placed} Placed
 * @typedef {import("./map_camera.js").Camera} Camera
 */

const FRAME = `
  <div class="whole">
    <div class="whole-row">
      <button type="button" class="step play"><i aria-hidden="true">▶</i><b>Play</b></button>
      <input class="depth" type="range" min="0" step="1" aria-label="How far the pass is">
      <span class="map-zoom">
        <button type="button" class="out" aria-label="Smaller">−</button>
        <button type="button" class="in" aria-label="Larger">+</button>
        <button type="button" class="all" aria-label="Whole network" title="Whole network">⤢</button>
      </span>
    </div>
    <div class="map-beside">
      <div class="map-below">
        <div class="map-stage" tabindex="0" role="application" aria-label="Map of the network: arrow keys go from part to part, Enter goes in, Escape out">
          <canvas></canvas>
        </div>
        <div class="class-row" role="group" aria-label="Why this class?"></div>
        <p class="caption part" role="status"></p>
    <div class="unseen all-parts"></div>
      </div>
      <div class="class-place"></div>
    </div>
    <p class="error" role="alert" hidden></p>
  </div>`;

const REST = 400; // milliseconds
const CELL = 9; // pixels of a cell from which a click picks it
const MOST = 10240; // pixels a unit of the map, at most: a cell of 256 takes 40 of them
const LEAST_HIGH = 260;

/**
 * The map in an element.
 * @param {ParentNode & Node} parent
 * @param {{
 *   ask: (question: Facts, options: any) => Promise<import("./asking.js").Answered>,
 *   change: (choices: Record<string, string | number | null>, how?: "push" | "replace") => void,
 *   view: () => Record<string, string>,
 *   saysWhy: boolean,
 * }} explorer
 */
export const networkMap = (parent, { ask, change, view, saysWhy }) => {
  const find = frame(parent, FRAME);
  const [whole, stage, canvas, depth, play] = [".whole", ".map-stage", "canvas", ".depth", ".play"].map(find);
  const pen = penOf(canvas);
  const paint = mapPainter(canvas, pen);
  const asked = newest(ask);
  const photograph = urls("image/jpeg");
  const small = urls("image/png");

  /** @type {ReturnType<typeof placed> | null} */
  let map = null;
  let about = ""; // the subject that it is of
  /** @type {any} */
  let scene = null;
  /** @type {import("./asking.js").Answered | null} */
  let answer = null; // that it is drawn from
  let isTall = false; // whether it is drawn for a window that is higher than wide
  /** @type {Placed | null} */
  let inside = null; // the part that was gone into last
  const world = { left: 0, top: 0, width: 1, height: 1 };

  let isDue = false;
  const draw = () => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      if (scene && scene.room.width > 0) paint(scene);
    });
  };

  const linkOf = (/** @type {Placed} */ part) => ({
    layer: part.facts.layer,
    layers: "maps",
    ...(part.facts.output === "call 1" ? {} : { output: part.facts.output }),
  });

  const tiles = nearTiles((part) => ask({ name: "tiles" }, { view: linkOf(part) }), draw);

  const field = seenField(ask, linkOf, (sees) => {
    if (!scene) return;
    scene.sees = sees;
    draw();
  });

  const tell = (/** @type {string} */ words) => {
    const line = find(".part");
    if (line.textContent !== words) line.textContent = words;
  };
  const choose = (/** @type {Placed | null} */ part) => {
    if (!scene || scene.chosen === part) return;
    scene.chosen = part;
    if (part) {
      tell(described(part));
      field.of(part.facts.layer ? part : leafAt(part, part.last), about);
    }
    draw();
  };

  // The camera, and its flights.
  const look = (/** @type {Camera} */ camera) => {
    if (!scene) return;
    scene.camera = limited(camera, world, scene.room, MOST);
    draw();
  };
  const flight = flights(look);
  const flyTo = (/** @type {import("./map_camera.js").Box} */ box, margin = 0.1) => {
    if (scene) flight.fly(scene.camera, limited(fitted(box, scene.room, margin), world, scene.room, MOST));
  };
  const boxOf = (/** @type {Placed} */ part) => (part.parent ? part.box : world);

  /** Go into a part: a step that the link and Back know. @param {Placed} part */
  const enter = (part) => {
    inside = part;
    choose(part.parent ? part : null);
    flyTo(boxOf(part));
    change({ inside: part.facts.name || "/" });
  };
  const pick = (/** @type {Placed} */ part, /** @type {number} */ channel, /** @type {string | null} */ cell) => {
    choose(part);
    if (!isKept(part)) return tell(strongestAlone(part));
    scene.channel = channel;
    inside = part;
    change({ ...linkOf(part), output: linkOf(part).output ?? null, channel, cell, inside: part.facts.name });
    draw();
  };

  const why = classPaths(find(".class-row"), find(".class-place"), {
    ask,
    choose: (number) => change({ why: number }),
    go: (name, channel) => {
      const part = map?.byName.get(name);
      if (!part) return;
      flyTo(boxOf(part));
      if (part.facts.layer) pick(part, channel, null);
      else enter(part);
    },
    lights: (lit) => {
      if (!scene) return;
      scene.lit = lit;
      const { width } = scene.room;
      layOut(); // the panel takes of its width
      if (width && width !== scene.room.width) flyTo(boxOf(inside ?? scene.root));
    },
  });

  const onMap = (/** @type {{x: number, y: number}} */ point) => ({
    x: point.x / scene.camera.scale + scene.camera.x,
    y: point.y / scene.camera.scale + scene.camera.y,
  });
  const under = (/** @type {{x: number, y: number}} */ point) =>
    map && partUnder(map.root, onMap(point), (part) => isOpen(scene.camera, part));

  const classAt = (/** @type {{x: number, y: number}} */ point) => {
    const at = classUnder(onScreen(scene.camera, scene.classesBox), scene.classes.length, point);
    return at === null ? null : scene.classes[at].number;
  };

  const click = (/** @type {{x: number, y: number}} */ point) => {
    const number = saysWhy ? classAt(point) : null;
    if (number !== null) return change({ why: number === why.chosen() ? null : number });
    const part = under(point);
    if (!part) return;
    if (!isNear(scene.camera, part)) return enter(part.facts.kind ? part : (part.parent ?? part));
    if (!isKept(part)) return pick(part, 0, null);
    const at = onMap(point);
    const board = boardOf(part);
    const position = board.under(at);
    const known = tiles.known(part.facts.name);
    if (position === null || !known) return;
    const box = board.boxOf(position);
    const [, rows, columns] = part.facts.maps;
    const isCell = (box.width / columns) * scene.camera.scale >= CELL;
    const row = Math.min(rows - 1, Math.max(0, Math.floor(((at.y - box.top) / box.height) * rows)));
    const column = Math.min(columns - 1, Math.max(0, Math.floor(((at.x - box.left) / box.width) * columns)));
    pick(part, known.order[position], isCell ? [row, column, rows, columns].join(",") : null);
    if (!isCell) flyTo(box, 0.3);
  };

  // Where hands have led and rest is a step of Back, as what is clicked is.
  let rest = 0;
  const settle = () => {
    clearTimeout(rest);
    rest = window.setTimeout(() => {
      const part = map && partAround(map.root, scene.camera, scene.room);
      if (!part || part === inside) return;
      inside = part;
      change({ inside: part.facts.name || "/" });
    }, REST);
  };
  handsOn(stage, {
    begin: flight.stop,
    move: (across, down) => {
      if (scene) look(moved(scene.camera, across, down));
      settle();
    },
    hover: (point) => {
      const part = scene && under(point);
      choose(part?.parent ? part : null);
      stage.classList.toggle("on-class", saysWhy && Boolean(scene) && classAt(point) !== null);
    },
    zoom: (factor, point) => {
      const before = scene?.camera;
      if (before) look(zoomed(before, factor, point));
      settle();
      return before?.scale !== scene?.camera.scale; // at the end of it a wheel scrolls the page
    },
    click: (point) => scene && click(point),
  });
  mapFiles(find(".whole-row"), { ask, tell });
  const zoomBy = (/** @type {number} */ factor) =>
    scene && look(zoomed(scene.camera, factor, { x: scene.room.width / 2, y: scene.room.height / 2 }));
  find(".in").onclick = () => zoomBy(1.5);
  find(".out").onclick = () => zoomBy(1 / 1.5);
  find(".all").onclick = () => map && enter(map.root);

  keysOn(stage, {
    now: () => map && scene && { ...scene, chosen: scene.chosen ?? (inside?.parent ? inside : map.root) },
    choose,
    enter,
    pick: (part) => pick(part, scene.channel ?? part.facts.channels[0], null),
    show: (part) => flyTo(boxOf(part)),
    zoom: zoomBy,
    leave: () => {
      const from = inside;
      if (view().channel !== undefined) change({ channel: null, cell: null });
      else if (why.chosen() !== null) change({ why: null });
      else if (from?.parent) {
        enter(from.parent);
        choose(from);
      } else return false;
      return true;
    },
  });

  const player = passPlayer(play, depth, (step) => {
    if (!map || !scene) return;
    scene.reached = step >= map.steps ? Infinity : step;
    const leaf = step > 0 ? leafAt(map.root, Math.min(step, map.steps)) : null;
    if (leaf?.parent) {
      tell(described(leaf));
      field.of(leaf, about);
    }
    draw();
  });

  const roomFor = () => Math.max(LEAST_HIGH, roomBelow(stage) - 84);
  const layOut = () => {
    if (whole.hidden) return;
    const high = roomFor();
    const width = stage.clientWidth;
    if (!width) return;
    if (answer && isTall !== width < high) return built(answer, about); // the window was turned
    const density = window.devicePixelRatio || 1;
    stage.style.height = `${high}px`;
    whole.style.setProperty("--map-high", `${high}px`);
    [canvas.width, canvas.height] = [Math.round(width * density), Math.round(high * density)];
    if (!scene) return;
    const isFirst = scene.room.width === 0;
    scene.room = { width, height: high };
    if (isFirst) scene.camera = fitted(boxOf(inside ?? scene.root), scene.room, 0.1);
    look(scene.camera);
    draw();
  };
  const observer = new ResizeObserver(layOut);
  observer.observe(parent instanceof Element ? parent : stage);
  window.addEventListener("resize", layOut);

  const fails = (/** @type {string} */ words) => {
    // In place of a map, which would push them below the window.
    for (const part of [find(".whole-row"), stage]) part.hidden = Boolean(words);
    find(".error").hidden = !words;
    find(".error").textContent = words;
  };

  const built = async (/** @type {import("./asking.js").Answered} */ answered, /** @type {string} */ of) => {
    const { facts, data } = answered;
    [answer, isTall] = [answered, stage.clientWidth < roomFor()];
    const sprite = data.length ? await decoded(small.of(data)) : null;
    if (of !== about) return;
    fails("");
    const lies = worldOf(facts.network, isTall);
    map = placed(lies.drawn, lies.ends);
    Object.assign(world, lies.all);
    inside = null;
    scene = {
      camera: { x: 0, y: 0, scale: 1 },
      room: { width: 0, height: 0 },
      root: map.root,
      sprite,
      geometry: facts.sprite,
      tilesOf: tiles.of,
      chosen: null,
      reached: Infinity,
      channel: null,
      photograph: null,
      photographBox: lies.photograph(1, 1),
      sees: null,
      lit: scene?.lit ?? null, // of the window before it was turned
      classes: facts.classes,
      classesBox: lies.classes,
    };
    find(".all-parts").replaceChildren(mapList(map.root));
    player.of(map.steps);
    why.of(saysWhy ? facts.classes : []);
    asked.ask({ name: "photograph" }, about, {
      answered: async ({ facts: seen, data: jpeg }) => {
        if (!jpeg.length) return;
        const picture = await decoded(photograph.of(jpeg));
        if (!scene || of !== about) return;
        Object.assign(scene, { photograph: picture, photographBox: lies.photograph(seen.width, seen.height) });
        draw();
      },
      failed: () => {},
    });
    layOut();
    follow();
  };

  // Where the link says that one is.
  const follow = () => {
    if (!map || !scene) return;
    const now = view();
    scene.channel = now.channel === undefined ? null : Number(now.channel);
    why.show(now.why === undefined ? null : Number(now.why), about);
    const name = now.inside ?? "/";
    const part = map.byName.get(name) ?? map.root;
    if (part !== inside) {
      inside = part;
      if (part.parent) choose(part);
      flyTo(boxOf(part));
    }
    draw();
  };

  return {
    /**
     * Show the network of a subject, or hide the map.
     * @param {boolean} is
     * @param {string} subject
     */
    show: (is, subject) => {
      whole.hidden = !is;
      if (!is) return player.pause();
      if (subject === about && map) return follow();
      if (subject !== about) {
        about = subject;
        [map, scene, answer] = [null, null, null];
        fails("");
        tiles.forget();
        asked.forget();
        field.forget();
      }
      asked.ask({ name: "whole" }, subject, { answered: (answered) => built(answered, subject), failed: fails });
    },
    focus: () => stage.focus({ preventScroll: true }),
    end: () => {
      player.pause();
      clearTimeout(rest);
      observer.disconnect();
      window.removeEventListener("resize", layOut);
      asked.end();
      field.end();
      why.end();
      photograph.end();
      small.end();
    },
  };
};
