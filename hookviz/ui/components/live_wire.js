// The way to the server and back: frames there, what is drawn of them here.

import { TROUBLES } from "./live_words.js";

export const LONGEST_WAIT = 10000; // milliseconds after which a frame without an answer is given up

// An answer: a text in JSON that says how long each of the blobs after it is.
export const readAnswer = (buffer) => {
  const end = 4 + new DataView(buffer).getUint32(0, true);
  const answer = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, end - 4)));
  let from = end;
  answer.blobs = answer.blobs.map((length) => new Uint8Array(buffer, (from += length) - length, length));
  return answer;
};

// `on` has open(), answer(answer), refused(words) and end(kind, words).
export const openWire = ({ path, token, language }, on) => {
  const url = new URL(path, location.origin);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  url.searchParams.set("token", token);
  url.searchParams.set("lang", language);
  const socket = new WebSocket(url);
  socket.binaryType = "arraybuffer";
  let words = "";
  socket.onopen = () => on.open();
  socket.onmessage = ({ data }) => {
    if (typeof data !== "string") return on.answer(readAnswer(data));
    const said = JSON.parse(data);
    if (said.over) words = said.over;
    else if (said.refused) on.refused(said.refused);
  };
  socket.onclose = ({ code }) => on.end(code in TROUBLES ? code : "gone", words);
  const isOpen = () => socket.readyState === WebSocket.OPEN;
  return {
    isOpen,
    say: (message) => isOpen() && socket.send(JSON.stringify(message)),
    send: (number, bytes) => {
      const message = new Uint8Array(4 + bytes.byteLength);
      new DataView(message.buffer).setUint32(0, number, true);
      message.set(bytes, 4);
      socket.send(message);
    },
    close: () => {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    },
  };
};
