// The teacher's part of a class: the page's link is shared as it changes, those who follow are
// counted, and the answers to a question too. A page that was loaded again takes its class up.

import { frame, make, unpacked } from "../../explorer/client/shared.js";
import { CARD, drawQuestion } from "./class_card.js";
import { tellsCamera } from "./class_live.js";
import { makeRoom } from "./class_room.js";
import { keepOfClass, keptOfClass, openClass, tellOfLine } from "./class_wire.js";

const teachers = new WeakMap(); // bars and what runs on them
const SHARE_PAUSE = 40; // milliseconds in which several changes of the link are one

const TEACHER = `
  <section class="class">
    <div class="bar">
      <span class="sign" aria-hidden="true"></span>
      <span class="code"></span>
      <span class="says" role="status"></span>
    </div>
    ${CARD}
  </section>`;

const teach = (root, find) => {
  /** @type {any} what the server said last, what calls it, the line to the class, and its news */
  let data, trigger, wire, question;
  /** @type {any} what of a question comes apart from it */
  let [pictures, share] = [null, null];
  /** @type {number | undefined} */
  let timer;
  let [followers, alone, covered, replaced] = [0, 0, false, false];
  let lost = ""; // or the word for why

  const counted = (name, count) => {
    const kind = new Intl.PluralRules(data.language).select(count) === "one" ? "one" : "many";
    return data.words[name][kind].replace("{count}", count.toLocaleString(data.language));
  };

  // Who follows and who looks alone; nobody who is away.
  const here = () => {
    const both = [counted("follow", followers)];
    if (alone) both.push(counted("alone", alone));
    return both.join(data.words.and);
  };

  const shows = () => !covered || question.phase !== "open";

  // The buttons by what can be done with a question now; the same ones stay while that is the same.
  const lead = () => {
    const { phase, number, game, answers } = question;
    const tell = (kind) => () => wire?.say({ [kind]: number });
    const steps = {
      open: [["close", tell("close")], ...(answers.length ? [[covered ? "uncover" : "cover", cover]] : [])],
      closed: [["reveal", tell("reveal")]],
      revealed: [
        ...(game
          ? [
              ["next", () => trigger("next", number)],
              ["open", openChannel],
            ]
          : []),
      ],
    }[phase];
    if (phase !== "open") steps.push([game ? "finish" : "away", tell("away")]);
    const names = steps.map(([name]) => name).join();
    const end = find(".end");
    if (end.dataset.names === `${number} ${names}`) return;
    end.dataset.names = `${number} ${names}`;
    const wasThere = end.contains(end.getRootNode().activeElement);
    end.replaceChildren(
      ...steps.map(([name, onclick]) => make("button", { type: "button", className: name, onclick }, data.words[name])),
    );
    if (wasThere) end.firstElementChild?.focus();
  };

  // Whether the votes that come in are shown is the teacher's to change at any time.
  const cover = () => {
    covered = !covered;
    show();
  };

  const openChannel = () => {
    const next = window.hookvizLink();
    const { layer, channel } = question.where;
    for (const name of ["lens", "lesson", "step", "cell", "after", "moved"]) next.delete(name);
    next.set("layer", layer);
    next.set("channel", channel);
    window.hookvizGo(next.toString(), "push");
    find("details").open = false;
  };

  const show = () => {
    root.dataset.followers = followers;
    root.dataset.state = lost || replaced ? "lost" : "follows";
    tellOfLine(lost !== "");
    find(".says").textContent = replaced ? data.words.elsewhere : lost ? data.words[lost] : here();
    find(".card").hidden = !question;
    if (question) {
      const onMark = (text) => wire?.say({ mark: text, question: question.number });
      drawQuestion(find, question, { data, pictures, points: null, share, shows: shows(), onMark });
      const listed = question.phase === "closed" && !question.answers.length;
      find(".voted").textContent = [
        counted("answered", question.answered),
        ...(question.answered && listed ? [data.words.pick] : []),
      ].join(data.words.and);
      lead();
    }
    makeRoom(question ? find(".card") : null);
  };

  const shareNow = () => {
    const state = `?${window.hookvizLink()}`;
    wire?.say({ state });
  };
  const camera = tellsCamera(() => wire);
  const shareSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(shareNow, SHARE_PAUSE);
  };

  const connect = () => {
    wire = openClass(data, {
      here: () => "follows",
      news: (view) => {
        if ("followers" in view) followers = view.followers;
        if ("alone" in view) alone = view.alone;
        if ("class" in view) share = view.class;
        if ("pictures" in view) pictures = view.pictures;
        if ("question" in view) {
          if (view.question && view.question.number !== question?.number) {
            covered = view.question.hidden;
            find("details").open = true;
          }
          question = view.question;
        }
        show();
      },
      state: (now, why) => {
        lost = { lost: "lost", full: "full", over: "gone" }[now] ?? "";
        replaced = now === "over" && why === "elsewhere";
        if (now === "over" && !replaced) {
          keepOfClass(null);
          trigger("over", why);
        }
        if (now === "open") {
          shareNow();
          camera.opened();
        }
        show();
      },
    });
  };

  const stop = () => {
    wire?.close();
    camera.stop();
    makeRoom(null);
    tellOfLine(false);
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
    // A session of a server that was started again knows of none either.
    if (!data.token) return before && !before.token ? undefined : takeUp();
    find(".code").textContent = data.shown;
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
