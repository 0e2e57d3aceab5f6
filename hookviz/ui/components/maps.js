// Maps of several images in the same colours, each beside its picture. One that leads somewhere is a
// button.

import { roomBelow, scrolledBy } from "../../explorer/client/place.js";
import { frame, say, unpacked } from "../../explorer/client/shared.js";
import { scrollUp } from "./page.js";

const FRAME = `<ul></ul>`;
const GAP = 11; // pixels between two
const WORDS = 48; // pixels down that the words under a pair take
const [NARROWEST, WIDEST] = [112, 280]; // pixels of a pair
const watched = new WeakMap();

// As many columns as let all be seen at once, if that can be.
const arrange = (list) => {
  const [width, room, count] = [list.clientWidth, roomBelow(list) - GAP, list.children.length];
  const least = Math.ceil((width + GAP) / (WIDEST + GAP));
  const most = Math.max(1, Math.floor((width + GAP) / (NARROWEST + GAP)));
  let columns = Math.min(least, most);
  const high = (across) => Math.ceil(count / across) * ((width / across - GAP) / 2 + WORDS + GAP);
  while (columns < most && high(columns) > room) columns += 1;
  list.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
};

export default function ({ data: bytes, parentElement, setTriggerValue }) {
  const data = unpacked(bytes);
  const find = frame(parentElement, FRAME);
  const list = find("ul");
  list.setAttribute("aria-label", data.label);
  const picture = (name, url, alt) => {
    const image = document.createElement("img");
    image.className = name;
    image.src = url;
    image.alt = alt;
    return image;
  };
  const words = (name, text) => {
    const line = document.createElement("span");
    line.className = name;
    line.textContent = text;
    return line;
  };
  list.replaceChildren(
    ...data.maps.map((each, position) => {
      const one = document.createElement(each.leads ? "button" : "div");
      one.className = "one";
      one.title = each.name;
      const pair = document.createElement("span");
      pair.className = "pair";
      pair.append(
        picture("picture", each.image, say("{name}, as the network saw it", { name: each.name })),
        picture("map", each.map, say("The map on {name}", { name: each.name })),
      );
      one.append(pair, words("name", each.name), words("says", each.says));
      if (each.leads) {
        one.setAttribute("type", "button");
        one.onclick = () => {
          scrollUp();
          setTriggerValue("picked", position);
        };
      }
      const item = document.createElement("li");
      item.append(one);
      return item;
    }),
  );
  watched.get(list)?.disconnect();
  const observer = new ResizeObserver(() => arrange(list));
  observer.observe(list);
  observer.observe(scrolledBy(list).inside);
  watched.set(list, observer);
  return () => observer.disconnect();
}
