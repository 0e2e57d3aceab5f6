// What the screen of a stream is made of.

import { MIRROR } from "./live_mirror_frame.js";

export const FRAME = `
  <section class="live" aria-label="Live">
    <video muted playsinline tabindex="-1" aria-hidden="true"></video>${MIRROR}
    <div class="strip">
      <canvas class="photo" role="img" aria-label="The frame that is drawn; the square is what the network sees"></canvas>
      <div class="says">
        <div class="scores" role="list" aria-label="The likeliest classes"></div>
        <div class="random" hidden>random weights: these classes mean nothing</div>
      </div>
      <div class="controls">
        <div class="row">
          <button type="button" class="looking-glass" title="The camera as large as the window, the picked channel glowing on it (M)">Mirror <kbd>M</kbd></button>
          <button type="button" class="freeze" disabled title="Look at this very frame in the explorer (space bar)">Freeze <kbd>space</kbd></button>
          <label class="hold"><input type="checkbox"> Hold colours</label>
        </div>
        <div class="row">
          <label class="cameras" hidden><span>Camera</span> <select></select></label>
          <button type="button" class="camera" hidden>Camera</button>
          <button type="button" class="open" title="Played by this browser; the file itself is not sent anywhere">Video file…</button>
          <input type="file" class="file" accept="video/*,.mp4,.webm,.mov,.gif,image/gif" hidden aria-label="A video file">
          <span class="speed"></span>
        </div>
        <label class="share" hidden><input type="checkbox"> Show my camera to the class</label>
        <span class="shared" hidden></span>
      </div>
    </div>
    <div class="player" role="group" aria-label="Video" hidden>
      <button type="button" class="play">Pause</button>
      <button type="button" class="back" aria-label="One frame back" title="One frame back">‹</button>
      <button type="button" class="ahead" aria-label="One frame ahead" title="One frame ahead">›</button>
      <input type="range" class="scrub" min="0" step="any" value="0" aria-label="Position in the video">
      <span class="at"></span>
    </div>
    <div class="trouble" role="alert" hidden>
      <h4></h4>
      <p></p>
      <button type="button" class="again">Try again</button>
    </div>
    <div class="tiles">
      <div class="head">
        <div class="scale"><img alt=""><div class="ticks"></div></div>
        <div class="note" role="status"></div>
      </div>
      <div class="stage" tabindex="0" role="slider" aria-label="Channel" aria-valuemin="0" aria-valuemax="0" aria-valuenow="0">
        <canvas class="board"></canvas><canvas class="marks"></canvas>
      </div>
    </div>
    <div class="side">
      <div class="hint">
        <b>Click a tile</b> to follow that channel: its map, its place on the frame, and how strongly it answers from moment to moment.
        Arrow keys go to its neighbours, Escape puts it down.
      </div>
      <div class="picked" hidden>
        <div class="title"><h3></h3><button type="button" class="close" aria-label="Put this channel down" title="Back to all channels (Escape)">✕</button></div>
        <div class="pair">
          <figure><canvas class="map" role="img"></canvas><figcaption>framed: the strongest cell</figcaption></figure>
          <figure class="laid"><canvas class="over" role="img"></canvas><figcaption>framed: what that cell sees</figcaption></figure>
        </div>
        <div class="numbers"></div>
        <canvas class="history" role="img"></canvas>
      </div>
    </div>
    <div class="state" role="status"></div>
  </section>`;
