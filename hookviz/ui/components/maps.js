// Maps of several images in the same colours, each beside its picture. One that leads somewhere is a
// button.

import { roomBelow, scrolledBy } from "../../explorer/client/place.js";
import { frame, make, say, unpacked } from "../../explorer/client/shared.js";
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
  const picture = (className, src, alt) => make("img", { className, src, alt });
  list.replaceChildren(
    ...data.maps.map((each, position) => {
      const pair = make(
        "span",
        { className: "pair" },
        picture("picture", each.image, say("{name}, as the network saw it", { name: each.name })),
        picture("map", each.map, say("The map on {name}", { name: each.name })),
      );
      const words = ["name", "says"].map((className) => make("span", { className }, each[className]));
      const one = make(each.leads ? "button" : "div", { className: "one", title: each.name }, pair, ...words);
      if (each.leads) {
        one.type = "button";
        one.onclick = () => {
          scrollUp();
          setTriggerValue("picked", position);
        };
      }
      return make("li", {}, one);
    }),
  );
  watched.get(list)?.disconnect();
  const observer = new ResizeObserver(() => arrange(list));
  observer.observe(list);
  observer.observe(scrolledBy(list).inside);
  watched.set(list, observer);
  return () => observer.disconnect();
}
