// Adds to the page what needs a script: numbers on hover and focus, the opacity of the heat, and
// the slider of a walk.
"use strict";
(() => {
  for (const root of document.querySelectorAll(".pellucid:not([data-ready])")) {
    root.dataset.ready = "true";
    const tip = createTip(root);
    for (const text of root.querySelectorAll(".text")) listenToWords(text, tip);
    for (const frame of root.querySelectorAll(".frame")) listenToFrame(frame, tip);
    for (const slider of root.querySelectorAll(".opacity")) listenToSlider(slider);
    for (const walk of root.querySelectorAll(".walk:has(.steps)")) listenToWalk(walk, tip);
    if (parent !== window && root === document.body) tellHeight(root);
  }

  // A frame cannot see how high its content is; whoever put the page into one is told.
  function tellHeight(root) {
    new ResizeObserver(() => {
      const height = root.offsetHeight; // none while the frame is hidden
      if (height > 0) parent.postMessage({ pellucidHeight: height }, "*");
    }).observe(root);
  }

  // ---- the tooltip --------------------------------------------------------------------------

  function createTip(root) {
    const box = document.createElement("div");
    box.className = "tip";
    box.id = `${root.id}-tip`;
    box.hidden = true;
    box.setAttribute("role", "tooltip");
    root.append(box);
    const hide = () => { box.hidden = true; };
    root.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
    return { box, hide, show: (text, place) => showTip(root, box, text, place) };
  }

  // Above the place, or below it at the top of the window; it scrolls with the content.
  function showTip(root, box, text, place) {
    box.textContent = text;
    box.hidden = false;
    const outer = root.getBoundingClientRect();
    const { width, height } = box.getBoundingClientRect();
    const left = Math.max(4, Math.min(place.left - outer.left, outer.width - width - 4));
    const above = place.top - height - 6;
    box.style.left = `${left}px`;
    box.style.top = `${(above > 4 ? above : place.bottom + 6) - outer.top}px`;
  }

  // ---- words --------------------------------------------------------------------------------

  // One stop of the tab key for the whole text; the arrows go from word to word.
  function listenToWords(text, tip) {
    const words = [...text.querySelectorAll(".heat")];
    words.forEach((word, index) => {
      word.dataset.tip = word.title; // a native tooltip would cover ours
      word.removeAttribute("title");
      word.tabIndex = index === 0 ? 0 : -1;
      word.setAttribute("aria-describedby", tip.box.id);
    });
    const show = (event) => {
      const word = event.target.closest(".heat");
      if (word) tip.show(word.dataset.tip, word.getClientRects()[0]);
    };
    text.addEventListener("pointerover", show);
    text.addEventListener("focusin", show);
    text.addEventListener("pointerout", tip.hide);
    text.addEventListener("focusout", tip.hide);
    text.addEventListener("keydown", (event) => {
      const index = words.indexOf(event.target);
      const next = index < 0 ? undefined : words[index + step(event)];
      if (!next || next === event.target) return;
      event.preventDefault();
      event.target.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    });
  }

  function step(event) {
    const rightToLeft = getComputedStyle(event.target).direction === "rtl";
    const right = rightToLeft ? -1 : 1;
    return { ArrowRight: right, ArrowLeft: -right, ArrowDown: 1, ArrowUp: -1 }[event.key] || 0;
  }

  // ---- images -------------------------------------------------------------------------------

  function listenToFrame(frame, tip) {
    const rows = Number(frame.dataset.rows);
    const columns = Number(frame.dataset.columns);
    const bytes = Uint8Array.from(atob(frame.dataset.scores), (letter) => letter.charCodeAt(0));
    const scores = new Float32Array(bytes.buffer);
    const layer = frame.querySelector(".layer");
    const cursor = document.createElement("div");
    cursor.className = "cursor";
    cursor.hidden = true;
    frame.append(cursor);
    frame.tabIndex = 0;
    frame.setAttribute("aria-describedby", tip.box.id);
    let row = 0;
    let column = 0;

    function show() {
      const area = layer.getBoundingClientRect();
      const outer = frame.getBoundingClientRect();
      const width = area.width / columns;
      const height = area.height / rows;
      const left = area.left + column * width;
      const top = area.top + row * height;
      Object.assign(cursor.style, {
        left: `${left - outer.left}px`, top: `${top - outer.top}px`,
        width: `${width}px`, height: `${height}px`,
      });
      cursor.hidden = false;
      const text = `${cellName(frame, row, column)}\n${readable(scores[row * columns + column], frame)}`;
      tip.show(text, { left, top, bottom: top + height });
    }

    function hide() {
      cursor.hidden = true;
      tip.hide();
    }

    frame.addEventListener("pointermove", (event) => {
      const area = layer.getBoundingClientRect();
      const across = (event.clientX - area.left) / area.width;
      const down = (event.clientY - area.top) / area.height;
      if (across < 0 || across >= 1 || down < 0 || down >= 1) return hide(); // not in any patch
      row = Math.floor(down * rows);
      column = Math.floor(across * columns);
      show();
    });
    frame.addEventListener("pointerleave", hide);
    frame.addEventListener("focus", () => { if (frame.matches(":focus-visible")) show(); });
    frame.addEventListener("blur", hide);
    frame.addEventListener("keydown", (event) => {
      const move = {
        ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0],
      }[event.key];
      if (!move) return;
      event.preventDefault();
      row = Math.min(rows - 1, Math.max(0, row + move[0]));
      column = Math.min(columns - 1, Math.max(0, column + move[1]));
      show();
    });
  }

  // Patches are counted from one, as their names are in Python; pixels as arrays count.
  function cellName(frame, row, column) {
    if (frame.dataset.unit === "pixel") return `pixel row ${row + 1}, column ${column + 1}`;
    return `row ${row + 1}, column ${column + 1}`;
  }

  function readable(score, frame) {
    const digits = String(Number(score.toPrecision(4)));
    return "signed" in frame.dataset && score > 0 ? `+${digits}` : digits;
  }

  function listenToSlider(slider) {
    const input = slider.closest(".input");
    slider.addEventListener("input", () => {
      input.style.setProperty("--opacity", slider.value / 100);
    });
  }

  // ---- walks --------------------------------------------------------------------------------

  // Everything of class "point" belongs to one stop of the slider; the charts' marks follow --at.
  function listenToWalk(walk, tip) {
    const slider = walk.querySelector(".steps");
    const play = walk.querySelector(".play");
    const readout = walk.querySelector(".iteration");
    const points = walk.querySelectorAll(".point");
    const iterations = slider.dataset.iterations.split(" ").map(Number);
    const steps = Number(slider.dataset.steps);
    const still = matchMedia("(prefers-reduced-motion: reduce)");
    const wait = Math.max(60, Math.min(400, 8000 / iterations.length)); // milliseconds
    let timer = 0;

    function show() {
      for (const point of points) point.hidden = point.dataset.at !== slider.value;
      const iteration = iterations[slider.valueAsNumber];
      walk.style.setProperty("--at", iteration / Math.max(steps, 1));
      readout.textContent = `iteration ${iteration} of ${steps}`;
      slider.setAttribute("aria-valuetext", readout.textContent);
      tip.hide();
    }

    function stop() {
      clearInterval(timer);
      timer = 0;
      name();
    }

    function name() {
      play.textContent = still.matches ? "Next" : timer ? "Pause" : "Play";
    }

    function next() {
      slider.valueAsNumber += 1;
      show();
      if (slider.value === slider.max) stop();
    }

    slider.addEventListener("input", () => { stop(); show(); });
    still.addEventListener("change", stop);
    play.addEventListener("click", () => {
      if (timer) return stop();
      if (slider.value === slider.max) { slider.value = 0; show(); } else if (still.matches) next();
      if (still.matches) return;
      timer = setInterval(next, wait);
      name();
    });
    for (const chart of walk.querySelectorAll(".chart svg")) {
      listenToChart(chart, slider, iterations, steps);
    }
    stop();
    show();
  }

  // A press on a chart moves the slider to the nearest point.
  function listenToChart(chart, slider, iterations, steps) {
    const area = chart.querySelector(".area");
    chart.addEventListener("pointerdown", (event) => {
      const box = area.getBoundingClientRect();
      const wanted = steps * (event.clientX - box.left) / box.width;
      const gaps = iterations.map((iteration) => Math.abs(iteration - wanted));
      slider.valueAsNumber = gaps.indexOf(Math.min(...gaps));
      slider.dispatchEvent(new Event("input"));
    });
  }
})();
