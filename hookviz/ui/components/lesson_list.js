// The lessons there are, each with what was done of it in this browser.

import { frame, unpacked } from "../../explorer/client/shared.js";
import { progressOf } from "./progress.js";

const FRAME = `<ol class="lessons"></ol>`;

export default function ({ data: bytes, parentElement, setTriggerValue }) {
  const data = unpacked(bytes);
  const find = frame(parentElement, FRAME);
  find(".lessons").replaceChildren(
    ...data.lessons.map((lesson) => {
      const { seen, answered } = progressOf(lesson.slug);
      const done = seen.size >= lesson.steps && lesson.questions.every((line) => answered.has(line));
      const item = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.slug = lesson.slug;
      const [sign, title, summary, facts] = ["b", "strong", "span", "small"].map((tag) =>
        button.appendChild(document.createElement(tag)),
      );
      sign.setAttribute("aria-hidden", "true");
      sign.textContent = done ? "✓" : lesson.number;
      sign.classList.toggle("done", done);
      [title.textContent, summary.textContent] = [lesson.title, lesson.summary];
      const share = seen.size && !done ? lesson.begun[Math.min(seen.size, lesson.begun.length - 1)] : "";
      facts.textContent = [lesson.facts, done ? data.done : share].filter(Boolean).join(" · ");
      button.onclick = () => setTriggerValue("picked", lesson.slug);
      item.append(button);
      return item;
    }),
  );
}
