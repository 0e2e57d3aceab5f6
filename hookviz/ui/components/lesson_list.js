// The lessons there are, each with what was done of it in this browser.

import { frame, make, unpacked } from "../../explorer/client/shared.js";
import { progressOf } from "./progress.js";

const FRAME = `<ol class="lessons"></ol>`;

export default function ({ data: bytes, parentElement, setTriggerValue }) {
  const data = unpacked(bytes);
  const find = frame(parentElement, FRAME);
  const isNew = data.lessons.every((lesson) => !progressOf(lesson.slug).seen.size);
  find(".lessons").replaceChildren(
    ...data.lessons.map((lesson, index) => {
      const { seen, answered } = progressOf(lesson.slug);
      const first = isNew && index === 0 ? make("em", {}, data.first) : "";
      const done = seen.size >= lesson.steps && lesson.questions.every((line) => answered.has(line));
      const share = seen.size && !done ? lesson.begun[Math.min(seen.size, lesson.begun.length - 1)] : "";
      const button = make(
        "button",
        { type: "button", "data-slug": lesson.slug, onclick: () => setTriggerValue("picked", lesson.slug) },
        lesson.picture ? make("img", { src: lesson.picture, alt: "" }) : "",
        make("b", { "aria-hidden": true, className: done ? "done" : "" }, done ? "✓" : String(lesson.number)),
        make("strong", {}, lesson.title, first),
        lesson.question ? make("q", {}, lesson.question) : "",
        make("span", {}, lesson.summary),
        make("small", {}, [lesson.facts, done ? data.done : share].filter(Boolean).join(" · ")),
      );
      return make("li", {}, button);
    }),
  );
}
