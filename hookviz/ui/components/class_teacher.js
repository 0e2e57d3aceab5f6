// The teacher's part of a class: the page's link is shared as it changes, those who follow are
// counted, and the answers to a question too. A page that was loaded again takes its class up.

import { frame, make, unpacked } from "../../explorer/client/shared.js";
import { keepOfClass, keptOfClass, openClass, polls } from "./class_wire.js";

const teachers = new WeakMap(); // bars and what runs on them
const SHARE_PAUSE = 40; // milliseconds in which several changes of the link are one

const TEACHER = `
  <section class="class">
    <div class="bar">
      <span class="sign" aria-hidden="true"></span>
      <span class="code"></span>
      <span class="says" role="status"></span>
    </div>
    <section class="card" hidden><details open>
      <summary></summary>
      <ol class="tally"></ol>
      <div class="end"><p class="votes" role="status"></p><button type="button" class="close"></button></div>
    </details></section>
  </section>`;

const teach = (root, find) => {
  /** @type {any} what the server said last, what calls it, the line to the class, and its news */
  let data, trigger, wire, question;
  /** @type {number | undefined} */
  let timer;
  let [followers, lost] = [0, false];

  const counted = (name, count) => {
    const kind = new Intl.PluralRules(data.language).select(count) === "one" ? "one" : "many";
    return data.words[name][kind].replace("{count}", count.toLocaleString(data.language));
  };

  const show = () => {
    root.dataset.followers = followers;
    find(".says").textContent = lost ? data.words.lost : counted("follow", followers);
    find(".card").hidden = !question;
    polls(Boolean(question));
    if (!question) return;
    const votes = question.tally.reduce((sum, each) => sum + each, 0);
    const most = Math.max(1, ...question.tally);
    find("summary").textContent = question.words;
    find(".votes").textContent = counted("answered", votes);
    find(".tally").replaceChildren(
      ...question.answers.map((answer, index) => {
        const count = question.tally[index];
        const bar = make("span", { className: "part", style: `width: ${(100 * count) / most}%` });
        const track = make("span", { className: "track" }, bar);
        return make("li", {}, make("span", {}, answer), track, make("b", {}, String(count)));
      }),
    );
  };

  const share = () => wire?.say({ state: location.search });
  const shareSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(share, SHARE_PAUSE);
  };

  const connect = () => {
    wire = openClass(data, {
      news: (view) => {
        if ("followers" in view) followers = view.followers;
        if ("question" in view) question = view.question;
        show();
      },
      state: (now, why) => {
        lost = now === "lost";
        if (now === "over" && why !== "elsewhere") {
          keepOfClass(null);
          trigger("over", why);
        } else if (now === "over") find(".says").textContent = data.words.elsewhere;
        else {
          if (now === "open") share();
          show();
        }
      },
    });
  };

  find(".close").onclick = () => question && wire?.say({ close: question.number });

  const stop = () => {
    wire?.close();
    polls(false);
    clearTimeout(timer);
    removeEventListener("hookviz:link", shareSoon);
    teachers.delete(root);
  };

  // A page that was loaded again has its secret in the browser, and its session knows of none.
  const takeUp = () => {
    const { token } = keptOfClass(data.code);
    if (token) trigger("taken", token);
    else trigger("over", "unknown");
  };

  const update = (newest, setTriggerValue) => {
    const before = data;
    [data, trigger] = [newest, setTriggerValue];
    root.hidden = !data.token;
    if (!data.token) return before || takeUp();
    find(".code").textContent = data.shown;
    find(".close").textContent = data.words.close;
    find(".card").setAttribute("aria-label", data.words.question);
    keepOfClass({ code: data.code, token: data.token });
    if (before?.token !== data.token) {
      wire?.close();
      removeEventListener("hookviz:link", shareSoon);
      addEventListener("hookviz:link", shareSoon);
      connect();
    }
    show();
  };
  return { update, stop };
};

export default function ({ data: bytes, parentElement, setTriggerValue }) {
  const find = frame(parentElement, TEACHER);
  const root = find(".class");
  let teacher = teachers.get(root);
  if (!teacher) teachers.set(root, (teacher = teach(root, find)));
  teacher.update(unpacked(bytes), setTriggerValue);
  return teacher.stop;
}
