// @ts-check
"use strict";
// Cursor and zoom of the charts, and the ranking of a span.  The page is complete without it.
// Text reaches the page through textContent only.

/** @typedef {[number, string]} UnitStep size of a unit, and the text behind a number */

/**
 * @typedef {object} Series a metric over the whole page, in bins
 * @property {string} label
 * @property {string} subsystem
 * @property {string} baseline with its unit
 * @property {UnitStep[]} steps
 * @property {number} low value of byte 0
 * @property {number} high value of byte 255
 * @property {string} levels base64: a byte for each bin, the distance from its mean in eighths of
 *   a spread
 * @property {string} forecasts the same from a forecast
 * @property {string} values base64: a byte for each bin, from low to high
 */

/**
 * @typedef {object} BrushData
 * @property {number} startMs
 * @property {number} seconds
 * @property {number} perSecond units of x in a second
 * @property {number} binSeconds
 * @property {number} bins
 * @property {Series[]} series
 */

/**
 * @typedef {object} Chart
 * @property {SVGSVGElement} svg
 * @property {SVGLineElement} cursor
 * @property {HTMLElement} read
 * @property {number} low
 * @property {number} high
 * @property {UnitStep[]} steps
 * @property {() => Array<[number, number]>} points by x
 */

(() => {
  const HEIGHT = 400;
  const PER_SPREAD = 8;
  const RANKED = 12;
  const LEAST_SCORE = 1;
  const SVG = "http://www.w3.org/2000/svg";

  /** @type {BrushData} */
  const data = JSON.parse(document.getElementById("brush-json")?.textContent ?? "null");

  /** @param {number} value @param {number} low @param {number} high @returns {number} */
  function clamp(value, low, high) {
    return Math.min(high, Math.max(low, value));
  }

  /**
   * Write a value with its unit, to three digits.
   * @param {number} value @param {UnitStep[]} steps @returns {string}
   */
  function amount(value, steps) {
    const step = steps.find(([size]) => Math.abs(value) >= size) ?? steps[steps.length - 1];
    const number = value / step[0];
    return `${Number(number.toPrecision(3))}${step[1]}`;
  }

  /** @param {number} seconds since the start of the page @returns {string} UTC, with a later day */
  function clock(seconds) {
    const [first, now] = [0, seconds].map((s) => new Date(data.startMs + s * 1000).toISOString());
    return now.slice(first.slice(0, 10) === now.slice(0, 10) ? 11 : 5, 19).replace("T", " ");
  }

  /** @param {string} base64 @returns {Uint8Array} */
  function bytes(base64) {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  }

  /**
   * @param {Uint8Array} values @param {number} begin @param {number} end @returns {number} the
   *   position of the largest value from begin, before end
   */
  function largest(values, begin, end) {
    let best = begin;
    for (let bin = begin; bin < end; bin++) if (values[bin] > values[best]) best = bin;
    return best;
  }

  /**
   * Read the points of a path: "Mx yl" and relative steps.
   * @param {string} path @returns {Array<[number, number]>}
   */
  function pointsOf(path) {
    /** @type {Array<[number, number]>} */
    const points = [];
    for (const part of path.split("M").filter(Boolean)) {
      const [first, steps] = part.split("l");
      let [x, y] = first.split(" ").map(Number);
      points.push([x, y]);
      const numbers = steps.split(" ").map(Number);
      for (let index = 0; index + 1 < numbers.length; index += 2) {
        x += numbers[index];
        y += numbers[index + 1];
        points.push([x, y]);
      }
    }
    return points;
  }

  /** @param {Array<[number, number]>} points @param {number} x @returns {[number, number] | null} */
  function nearest(points, x) {
    if (!points.length) return null;
    let [first, last] = [0, points.length - 1];
    while (first < last) {
      const middle = (first + last) >> 1;
      if (points[middle][0] < x) first = middle + 1;
      else last = middle;
    }
    const before = points[Math.max(0, first - 1)];
    return x - before[0] < points[first][0] - x ? before : points[first];
  }

  /** @param {HTMLElement} figure @returns {Chart | null} */
  function chartOf(figure) {
    const svg = figure.querySelector("svg");
    const path = figure.querySelector("path");
    const read = /** @type {HTMLElement | null} */ (figure.querySelector(".read"));
    if (!svg || !path || !read) return null;
    const cursor = document.createElementNS(SVG, "line");
    cursor.setAttribute("class", "cursor");
    cursor.setAttribute("y1", "0");
    cursor.setAttribute("y2", String(HEIGHT));
    cursor.setAttribute("visibility", "hidden");
    svg.append(cursor);
    /** @type {Array<[number, number]> | null} */
    let points = null;
    return {
      svg,
      cursor,
      read,
      low: Number(figure.dataset.low),
      high: Number(figure.dataset.high),
      steps: JSON.parse(figure.dataset.steps ?? "[]"),
      points: () => (points ??= pointsOf(path.getAttribute("d") ?? "")),
    };
  }

  /** Charts of one finding: they share the cursor and the zoom. */
  class LinkedCharts {
    /** @param {HTMLElement} group */
    constructor(group) {
      this.width = Number(group.dataset.width);
      this.first = 0;
      this.last = this.width;
      this.x = this.width / 2;
      /** @type {number | null} */
      this.dragFrom = null;
      const figures = [...group.querySelectorAll("figure.chart")];
      this.start = Number(/** @type {HTMLElement} */ (figures[0]).dataset.first);
      this.charts = figures.map((figure) => chartOf(/** @type {HTMLElement} */ (figure)));
      this.ends = [...group.querySelectorAll(".axis > span")];
      group.addEventListener("keydown", (event) => this.key(event));
      group.addEventListener("dblclick", () => this.zoom(0, this.width));
      this.charts[0]?.read.setAttribute("aria-live", "polite");
      for (const chart of this.charts) if (chart) this.listen(chart);
    }

    /** @param {Chart} chart */
    listen(chart) {
      chart.svg.addEventListener("pointerdown", (event) => {
        this.dragFrom = this.xOf(chart, event);
        chart.svg.setPointerCapture(event.pointerId);
      });
      chart.svg.addEventListener("pointermove", (event) => this.show(this.xOf(chart, event)));
      chart.svg.addEventListener("pointerup", (event) => {
        const from = this.dragFrom ?? 0;
        const to = this.xOf(chart, event);
        this.dragFrom = null;
        if (Math.abs(to - from) > (this.last - this.first) / 50) {
          this.zoom(Math.min(from, to), Math.max(from, to));
        }
      });
    }

    /** @param {Chart} chart @param {PointerEvent} event @returns {number} */
    xOf(chart, event) {
      const box = chart.svg.getBoundingClientRect();
      const share = clamp((event.clientX - box.left) / box.width, 0, 1);
      return this.first + share * (this.last - this.first);
    }

    /** @param {number} x where the cursor goes */
    show(x) {
      this.x = clamp(x, this.first, this.last);
      for (const chart of this.charts) {
        const point = chart && nearest(chart.points(), this.x);
        if (!chart || !point) continue;
        chart.cursor.setAttribute("x1", String(point[0]));
        chart.cursor.setAttribute("x2", String(point[0]));
        chart.cursor.setAttribute("visibility", "visible");
        const value = chart.low + (1 - point[1] / HEIGHT) * (chart.high - chart.low);
        const seconds = this.start + point[0] / data.perSecond;
        const tenths = Math.floor((seconds % 1) * 10 + 1e-6);
        chart.read.textContent = `${amount(value, chart.steps)} at ${clock(seconds)}.${tenths}`;
      }
    }

    /** @param {number} first @param {number} last */
    zoom(first, last) {
      const least = Math.min(10, this.width);
      this.first = clamp(first, 0, this.width - least);
      this.last = clamp(last, this.first + least, this.width);
      for (const chart of this.charts) {
        const box = `${this.first} 0 ${this.last - this.first} ${HEIGHT}`;
        chart?.svg.setAttribute("viewBox", box);
      }
      const [left, , right] = this.ends;
      if (left) left.textContent = clock(this.start + this.first / data.perSecond);
      if (right) right.textContent = clock(this.start + this.last / data.perSecond);
      this.show(this.x);
    }

    /** @param {number} factor new width of the window, in old ones */
    zoomBy(factor) {
      const half = (factor * (this.last - this.first)) / 2;
      this.zoom(this.x - half, this.x + half);
    }

    /** @param {KeyboardEvent} event */
    key(event) {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      const step = event.shiftKey ? 50 : 1;
      /** @type {Record<string, () => void>} */
      const actions = {
        ArrowLeft: () => this.show(this.x - step),
        ArrowRight: () => this.show(this.x + step),
        Home: () => this.show(this.first),
        End: () => this.show(this.last),
        "+": () => this.zoomBy(0.5),
        "-": () => this.zoomBy(2),
        0: () => this.zoom(0, this.width),
      };
      if (event.key in actions) {
        actions[event.key]();
        event.preventDefault();
      }
    }
  }

  /** The span of the timeline, and the metrics that left their baseline most in it. */
  class Brush {
    /**
     * @param {HTMLElement} lanes
     * @param {HTMLInputElement} from
     * @param {HTMLInputElement} to
     */
    constructor(lanes, from, to) {
      this.lanes = lanes;
      this.from = from;
      this.to = to;
      this.series = data.series.map((series) => ({
        ...series,
        levelBytes: bytes(series.levels),
        forecastBytes: bytes(series.forecasts),
        valueBytes: bytes(series.values),
      }));
      this.box = document.createElement("div");
      this.box.className = "brush";
      this.box.hidden = true;
      lanes.append(this.box);
      /** @type {number | null} */
      this.dragFrom = null;
      for (const input of [from, to]) input.addEventListener("input", () => this.update());
      lanes.addEventListener("pointerdown", (event) => this.begin(event));
      lanes.addEventListener("pointermove", (event) => this.drag(event));
      window.addEventListener("resize", () => this.draw(...this.span()));
    }

    /** @returns {[number, number]} the span in seconds, the earlier end first */
    span() {
      const ends = [Number(this.from.value), Number(this.to.value)];
      return [Math.min(...ends), Math.max(...ends)];
    }

    /** @returns {DOMRect | undefined} where the lanes have their pictures */
    area() {
      return this.lanes.querySelector(".plot")?.getBoundingClientRect();
    }

    /** @param {PointerEvent} event @returns {number | null} seconds; null beside the pictures */
    secondsOf(event) {
      const area = this.area();
      if (!area || !area.width) return null;
      const share = (event.clientX - area.left) / area.width;
      return share < 0 || share > 1 ? null : share * data.seconds;
    }

    /** @param {PointerEvent} event */
    begin(event) {
      // a bar is a link: it is followed, not dragged
      const onLink = event.target instanceof Element && event.target.closest("a");
      this.dragFrom = onLink ? null : this.secondsOf(event);
    }

    /** @param {PointerEvent} event */
    drag(event) {
      const now = this.secondsOf(event);
      if (this.dragFrom === null || now === null || !event.buttons) return;
      this.from.value = String(Math.min(this.dragFrom, now));
      this.to.value = String(Math.max(this.dragFrom, now));
      this.update();
    }

    update() {
      const [first, last] = this.span();
      const output = document.getElementById("span-text");
      if (output) output.textContent = `${clock(first)} to ${clock(last)}`;
      for (const input of [this.from, this.to]) {
        input.setAttribute("aria-valuetext", clock(Number(input.value)));
      }
      this.draw(first, last);
      this.rank(first, last);
    }

    /** @param {number} first @param {number} last */
    draw(first, last) {
      const area = this.area();
      if (!area || !data.seconds) return;
      const left = area.left - this.lanes.getBoundingClientRect().left;
      this.box.hidden = false;
      this.box.style.left = `${left + (first / data.seconds) * area.width}px`;
      this.box.style.width = `${Math.max(2, ((last - first) / data.seconds) * area.width)}px`;
    }

    /** @param {number} first @param {number} last */
    rank(first, last) {
      const begin = clamp(Math.floor(first / data.binSeconds), 0, data.bins - 1);
      const end = clamp(Math.ceil(last / data.binSeconds), begin + 1, data.bins);
      const ranked = this.series
        .map((series) => {
          const level = largest(series.levelBytes, begin, end);
          const forecast = largest(series.forecastBytes, begin, end);
          const product = series.levelBytes[level] * series.forecastBytes[forecast];
          return { series, peak: level, score: Math.sqrt(product) / PER_SPREAD };
        })
        .filter(({ score }) => score >= LEAST_SCORE)
        .sort((a, b) => b.score - a.score)
        .slice(0, RANKED);
      const table = document.getElementById("ranking");
      const body = table?.querySelector("tbody");
      const caption = table?.querySelector("caption");
      if (!body || !caption) return;
      caption.textContent = ranked.length
        ? `Metrics that left their mean most from ${clock(first)} to ${clock(last)}`
        : `No metric stood out from ${clock(first)} to ${clock(last)}`;
      body.replaceChildren(...ranked.map((each) => this.row(each.series, each.peak, each.score)));
    }

    /**
     * @param {Series & {valueBytes: Uint8Array}} series
     * @param {number} peak bin in which it was farthest off
     * @param {number} score
     * @returns {HTMLTableRowElement}
     */
    row(series, peak, score) {
      const value = series.low + (series.valueBytes[peak] / 255) * (series.high - series.low);
      const row = document.createElement("tr");
      const head = document.createElement("th");
      head.scope = "row";
      const label = document.createElement("bdi");
      label.textContent = series.label;
      head.append(label);
      row.append(head);
      const cells = [series.subsystem, score.toFixed(1), amount(value, series.steps)];
      for (const content of [...cells, series.baseline]) {
        row.insertCell().textContent = content;
      }
      return row;
    }
  }

  function start() {
    for (const group of document.querySelectorAll(".linked")) {
      new LinkedCharts(/** @type {HTMLElement} */ (group));
    }
    const lanes = document.getElementById("lanes");
    const from = document.getElementById("span-from");
    const to = document.getElementById("span-to");
    if (!lanes || !(from instanceof HTMLInputElement) || !(to instanceof HTMLInputElement)) return;
    if (!data.series.length) return;
    for (const id of ["span-form", "ranking-part"]) {
      document.getElementById(id)?.removeAttribute("hidden");
    }
    const brush = new Brush(lanes, from, to);
    brush.draw(...brush.span());
  }

  start();
})();
