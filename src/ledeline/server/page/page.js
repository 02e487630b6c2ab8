// The page of `ledeline serve`: sends ledes to v1/headlines and shows what comes back.
// Texts go into the page as text only, never as HTML. All addresses are relative, so that the page
// also works under the prefix of a proxy.

const OPEN_AT_FIRST = 5; // results; of more, only the first is open
const MOST_ROWS = 80; // lede words in a heat map
const LEAST_SHARE = 0.01; // that is marked, or named
const NUMBERED_SHARE = 0.05; // that has its number above the word
const MOST_NAMED = 5; // lede words named for a headline word
const TOKEN_KEY = "ledeline-token";
const BIDI_CONTROLS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;

const WARNINGS = {
  empty: "No text",
  invalid: "No text",
  unseen: "Unknown word",
  cut: "Lede cut short",
  truncated: "Not finished",
  repetition: "Said twice",
};

const byId = (id) => document.getElementById(id);
const numbers = new Intl.NumberFormat("en");

let limits = null; // of the server, once it has told them
let examples = []; // ledes to fill in
let running = null; // AbortController of the request under way
let lastWritten = false; // whether the list has the answer to a request, not the example
let waitingForToken = false; // whether a token is all that a request lacks
let results = []; // Marks of what is in the list

// --- elements -----------------------------------------------------------------------------------

/** An element. Functions among the attributes listen to events; strings among children are text. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

/** Text of somebody else's among ours: its direction must not spread. */
const quoted = (text) => make("bdi", {}, text);

/** Tell everybody, also those who listen instead of looking. */
function say(...parts) {
  byId("status").replaceChildren(...parts);
}

function plural(count, one, many = `${one}s`) {
  return `${numbers.format(count)} ${count === 1 ? one : many}`;
}

function percent(share, digits = 0) {
  return `${(100 * share).toFixed(digits)} %`;
}

/** The space before a word, and the word. */
function parted(spaced) {
  const word = spaced.trimStart();
  return [spaced.slice(0, spaced.length - word.length), word];
}

/** A span for a word. One with invisible marks of direction is kept from turning the others. */
function wordSpan(word, attributes) {
  const span = make("span", attributes, word);
  span.classList.toggle("isolated", BIDI_CONTROLS.test(word));
  return span;
}

// --- the server ---------------------------------------------------------------------------------

class Refusal extends Error {
  /** A status of HTTP, or 0 where no answer came and -1 where it cannot be read. */
  constructor(status, detail = "", seconds = 0) {
    super(detail);
    this.status = status;
    this.seconds = seconds; // to wait before the next try
  }
}

/** What the server answers, as an object; a Refusal or an AbortError where it does not. */
async function ask(path, body = null, signal = null) {
  const headers = { Accept: "application/json" };
  if (token.value) headers.Authorization = `Bearer ${token.value}`;
  if (body) headers["Content-Type"] = "application/json";
  try {
    const response = await fetch(path, {
      method: body ? "POST" : "GET",
      headers,
      body: body && JSON.stringify(body),
      signal,
    });
    if (response.ok) return await response.json();
    throw await refusal(response);
  } catch (error) {
    if (error instanceof Refusal || error.name === "AbortError") throw error;
    throw new Refusal(error instanceof SyntaxError ? -1 : 0);
  }
}

async function refusal(response) {
  let detail = "";
  try {
    detail = (await response.json()).detail;
  } catch {
    // Something between here and the server answered, in its own words.
  }
  const seconds = Number(response.headers.get("Retry-After")) || 1;
  return new Refusal(response.status, typeof detail === "string" ? detail : "", seconds);
}

/** Kept for this tab only; and only in memory where the browser allows no more. */
const token = {
  value: "",
  read() {
    try {
      this.value = sessionStorage.getItem(TOKEN_KEY) ?? "";
    } catch {
      this.value = "";
    }
  },
  keep(value) {
    this.value = value;
    try {
      sessionStorage.setItem(TOKEN_KEY, value);
    } catch {
      // Then it lasts until the page is left.
    }
  },
};

// --- errors -------------------------------------------------------------------------------------

/** A detail as a sentence. */
function sentence(detail) {
  const text = detail.trim();
  if (!text) return "";
  return text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}

/** What went wrong, and what can be done. */
function explained({ status, message }) {
  const detail = sentence(message);
  switch (status) {
    case 0:
      return (
        "The server cannot be reached. Your text is still here. See that ledeline serve is " +
        "running and that you are connected, then try again."
      );
    case -1:
      return "The answer cannot be read: something other than ledeline seems to have sent it.";
    case 413:
    case 422:
      return detail || "The server does not accept this request.";
    case 503:
      return `The server is busy. ${detail}`;
    case 504:
      return `The headlines took too long. ${detail} Fewer ledes at a time or a smaller beam are quicker.`;
    default:
      return `The server answered with an error (${status}). ${detail}`;
  }
}

/** Show an error; with `again`, a button that waits so many seconds. */
function fail(text, again = null, seconds = 0) {
  const box = byId("error");
  box.replaceChildren(make("p", {}, text));
  if (again) box.append(waitingButton(again, seconds));
  box.hidden = false;
  say();
}

function waitingButton(again, seconds) {
  const button = make("button", { type: "button" });
  let left = Math.ceil(seconds);
  const tick = () => {
    button.textContent = left > 0 ? `Try again in ${left} s` : "Try again";
    button.setAttribute("aria-disabled", left > 0);
    if (left-- > 0 && document.contains(byId("error"))) setTimeout(tick, 1000);
  };
  tick();
  button.addEventListener("click", () => {
    if (button.getAttribute("aria-disabled") === "false") again();
  });
  return button;
}

function clearError() {
  byId("error").hidden = true;
  byId("error").replaceChildren();
  byId("text").removeAttribute("aria-invalid");
}

function failed(error) {
  if (error.name === "AbortError") say("Cancelled. Your text is still here.");
  else if (error.status === 401) askForToken();
  else if (!(error instanceof Refusal)) fail(explained({ status: -1, message: "" }));
  else if ([0, 503, 504].includes(error.status)) fail(explained(error), write, waitOf(error));
  else fail(explained(error));
}

const waitOf = (error) => (error.status === 503 ? error.seconds : 0);

// --- the token ----------------------------------------------------------------------------------

function showTokenForm() {
  const note = token.value
    ? "The server did not accept the token. Please check it."
    : "Whoever runs it can give you one. It is kept until this tab is closed.";
  byId("token-note").textContent = note;
  byId("token-form").hidden = false;
}

function askForToken() {
  waitingForToken = true;
  showTokenForm();
  byId("token").focus();
  say("This server asks for a token. Your text is still here.");
}

function useToken(event) {
  event.preventDefault();
  const value = byId("token").value.trim();
  if (!/^[\x21-\x7e]+$/.test(value)) {
    byId("token-note").textContent = "A token has letters, digits and ASCII signs only.";
    return;
  }
  token.keep(value);
  byId("token").value = "";
  byId("token-form").hidden = true;
  byId("text").focus();
  say("The token is kept until this tab is closed.");
  describeModel();
  if (waitingForToken) write();
}

// --- copying ------------------------------------------------------------------------------------

/** Browsers have a clipboard on secure addresses only; elsewhere there is the old way. */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedTheOldWay(text);
  }
}

function copiedTheOldWay(text) {
  const before = document.activeElement;
  const box = make("textarea", { class: "unseen", "aria-hidden": "true" });
  box.value = text;
  document.body.append(box);
  box.select();
  const done = document.execCommand("copy");
  box.remove();
  before?.focus();
  return done;
}

/** Copy, and say so on the button (in `label`) and in words. */
async function copy(text, label) {
  const done = await copied(text);
  if (!done) return say("It could not be copied. Select the headline and press Ctrl+C.");
  say("Copied: ", quoted(text));
  label.textContent = "copied";
  setTimeout(() => (label.textContent = "copy"), 1500);
}

// --- marks --------------------------------------------------------------------------------------

function chosenView() {
  return document.querySelector("input[name=view]:checked").value;
}

/** The words of a headline and of its lede, and what ties them. */
class Marks {
  constructor(alignment, id) {
    this.map = alignment.heat_map;
    this.dropped = new Set(alignment.dropped.map((one) => one.place));
    this.readout = make("p", { id, class: "readout note" });
    this.source = this.map.source.map((spaced) => wordSpan(parted(spaced)[1], { class: "source" }));
    this.words = this.map.headline.map((spaced, j) => this.#word(parted(spaced)[1], j));
    this.pointed = this.focused = this.pinned = null; // places of headline words
    this.marked = []; // spans of the lede
    this.heat = new HeatMap(this);
    this.update();
  }

  /** A row for each headline word, with a share for each lede word. */
  get rows() {
    return (chosenView() === "spm" && this.map.spm) || this.map.attention;
  }

  get viewName() {
    return this.rows === this.map.spm ? "SPM" : "attention";
  }

  // One word can be reached with the tab key; arrow keys lead to the others.
  #word(word, j) {
    return wordSpan(word, {
      class: "word",
      role: "button",
      tabindex: j ? -1 : 0,
      "aria-pressed": "false",
      "aria-describedby": this.readout.id,
      "data-place": j,
    });
  }

  headline() {
    const heading = make("h3", {
      class: "headline",
      dir: "auto",
      mouseover: (event) => this.#point(placeOf(event)),
      mouseleave: () => this.#point(null),
      focusin: (event) => this.#focus(placeOf(event)),
      focusout: () => this.#focus(null),
      click: (event) => this.pin(placeOf(event)),
      keydown: (event) => this.#press(event),
    });
    this.words.forEach((word, j) => heading.append(parted(this.map.headline[j])[0], word));
    return heading;
  }

  /** The lede; runs of dropped words are struck through together. */
  lede() {
    const lede = make("p", { class: "lede", dir: "auto" });
    let run = null;
    this.source.forEach((word, i) => {
      const dropped = this.dropped.has(i);
      word.classList.add(dropped ? "dropped" : "used");
      if (!dropped || !run) lede.append(parted(this.map.source[i])[0]);
      else run.append(parted(this.map.source[i])[0]);
      if (dropped && !run) lede.append((run = make("del")));
      if (!dropped) run = null;
      (run ?? lede).append(word);
    });
    return lede;
  }

  #point(place) {
    this.pointed = place;
    this.update();
  }

  #focus(place) {
    this.focused = place;
    if (place !== null) this.words.forEach((word, j) => (word.tabIndex = j === place ? 0 : -1));
    this.update();
  }

  /** Keep the marks of a word, or let them go. */
  pin(place) {
    if (place === null) return;
    this.pinned = this.pinned === place ? null : place;
    this.words.forEach((word, j) => word.setAttribute("aria-pressed", j === this.pinned));
    this.update();
  }

  #press(event) {
    const place = placeOf(event);
    if (place === null) return;
    const forward = getComputedStyle(event.currentTarget).direction === "rtl" ? -1 : 1;
    const last = this.words.length - 1;
    const steps = { ArrowRight: forward, ArrowLeft: -forward, Home: -last, End: last };
    if (event.key in steps) {
      this.words[Math.min(Math.max(place + steps[event.key], 0), last)].focus();
    } else if (event.key === "Enter" || event.key === " ") {
      if (!event.ctrlKey && !event.metaKey) this.pin(place);
    } else if (event.key === "Escape") {
      this.pin(this.pinned);
    } else {
      return;
    }
    event.preventDefault();
  }

  /** Mark what belongs to the word that is pointed at, else focused, else pinned. */
  update() {
    for (const word of this.marked) word.classList.remove("marked", "most");
    const place = this.pointed ?? this.focused ?? this.pinned;
    this.words.forEach((word, j) => word.classList.toggle("current", j === place));
    this.marked = place === null ? [] : this.#mark(this.rows[place]);
    this.readout.replaceChildren(...(place === null ? [HINT] : this.#named(place)));
  }

  #mark(shares) {
    const marked = [];
    shares.forEach((share, i) => {
      if (share < LEAST_SHARE) return;
      const word = this.source[i];
      word.classList.add("marked");
      word.style.setProperty("--share", share);
      word.dataset.share = share < NUMBERED_SHARE ? "" : Math.round(100 * share);
      marked.push(word);
    });
    return marked;
  }

  /** The same in words. */
  #named(place) {
    const shares = this.rows[place];
    const best = [...shares.keys()]
      .filter((i) => shares[i] >= LEAST_SHARE)
      .sort((one, other) => shares[other] - shares[one])
      .slice(0, MOST_NAMED);
    const parts = [quoted(this.words[place].textContent), ` by ${this.viewName}: `];
    best.forEach((i, rank) => {
      parts.push(rank ? ", " : "", quoted(this.source[i].textContent), ` ${percent(shares[i])}`);
    });
    return best.length ? parts : [...parts, "no word of the lede has 1 % or more"];
  }

  /** Another view was chosen. */
  redraw() {
    this.update();
    this.heat.redraw();
  }
}

const HINT = "Point at a word of the headline to see where it comes from; or use the arrow keys.";

function placeOf(event) {
  const place = event.target.closest("[data-place]")?.dataset.place;
  return place === undefined ? null : Number(place);
}

// --- the heat map -------------------------------------------------------------------------------

/** Every lede word (down) against every headline word (across); drawn when it is opened. */
class HeatMap {
  constructor(marks) {
    this.marks = marks;
    this.label = make("p", { class: "readout note" });
    this.place = make("div");
    this.details = make(
      "details",
      { class: "map", toggle: () => this.redraw() },
      make("summary", {}, "Heat map: every word of the lede against every word of the headline"),
      this.place,
    );
  }

  redraw() {
    if (!this.details.open) return this.place.replaceChildren();
    const scroll = make("div", { class: "scroll" }, this.#table(this.#chosen()));
    this.label.replaceChildren("Point at a cell, or move with the arrow keys, for exact values.");
    return this.place.replaceChildren(scroll, this.label);
  }

  /** Places of lede words: all, or those with the largest shares where there are very many. */
  #chosen() {
    const places = [...this.marks.source.keys()];
    if (places.length <= MOST_ROWS) return places;
    const most = places.map((i) => Math.max(...this.marks.rows.map((row) => row[i])));
    const best = places.sort((one, other) => most[other] - most[one]).slice(0, MOST_ROWS);
    return best.sort((one, other) => one - other);
  }

  #table(chosen) {
    const heads = this.marks.words.map((word) =>
      make("th", { scope: "col" }, make("span", { dir: "auto" }, word.textContent)),
    );
    const table = make(
      "table",
      {
        role: "grid",
        mouseover: (event) => this.#tell(event.target.closest("td[tabindex]")),
        focusin: (event) => this.#tell(event.target.closest("td[tabindex]")),
        keydown: (event) => this.#press(event),
      },
      make("caption", {}, this.#caption(chosen)),
      make("thead", {}, make("tr", {}, make("td"), ...heads)),
      make("tbody", {}, ...chosen.map((i) => this.#row(i))),
    );
    table.querySelector("tbody td")?.setAttribute("tabindex", 0);
    return table;
  }

  #caption(chosen) {
    const all = this.marks.source.length;
    const some = `The ${chosen.length} of ${numbers.format(all)} lede words with the largest shares. `;
    return (
      (chosen.length < all ? some : "") +
      `Share of each lede word in each headline word, by ${this.marks.viewName}, in per cent; ` +
      "an empty cell is less than 1."
    );
  }

  #row(i) {
    const word = this.marks.source[i].textContent;
    const state = this.marks.dropped.has(i) ? "dropped" : "used";
    const cells = this.marks.rows.map((row, j) => this.#cell(row[j === -1 ? 0 : i], i, j));
    const span = make("span", { dir: "auto", class: state }, word);
    return make("tr", {}, make("th", { scope: "row" }, span), ...cells);
  }

  #cell(share, i, j) {
    const cell = make("td", { tabindex: -1, "data-i": i, "data-j": j });
    if (share < LEAST_SHARE) return cell;
    cell.className = "warm";
    cell.style.setProperty("--share", share);
    cell.textContent = Math.round(100 * share);
    return cell;
  }

  #tell(cell) {
    if (!cell) return;
    const [i, j] = [Number(cell.dataset.i), Number(cell.dataset.j)];
    const { map, words, source } = this.marks;
    const values = map.spm ? [`SPM ${percent(map.spm[j][i], 1)}`] : [];
    values.push(`attention ${percent(map.attention[j][i], 1)}`);
    this.label.replaceChildren(
      quoted(words[j].textContent),
      " from ",
      quoted(source[i].textContent),
      `: ${values.join(", ")}`,
    );
  }

  #press(event) {
    const cell = event.target.closest("td[tabindex]");
    const steps = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
    if (!cell || !(event.key in steps)) return;
    const [down, right] = steps[event.key];
    const row = cell.closest("table").rows[cell.parentNode.rowIndex + down];
    const next = row?.cells[cell.cellIndex + right];
    event.preventDefault();
    if (!next?.matches("td[tabindex]")) return;
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }
}

// --- results ------------------------------------------------------------------------------------

/** Minus 0.42, and what that is as a probability. */
function scoreParts(score) {
  const digits = Math.abs(score).toFixed(2);
  return [
    make("span", { class: "score" }, `${Number(digits) ? "−" : ""}${digits}`),
    make("span", { class: "score" }, percent(Math.exp(score))),
  ];
}

function headlineHeading(answer, marks) {
  if (!answer.headline) return make("h3", { class: "headline none" }, "(no headline)");
  const heading = marks?.headline() ?? make("h3", { class: "headline", dir: "auto" }, answer.headline);
  if (answer.truncated) heading.append(" …");
  return heading;
}

function copyButton(answer) {
  const label = make("span", {}, "copy");
  const click = () => copy(answer.headline, label);
  return make("button", { type: "button", class: "copy", "aria-label": "Copy the headline", click }, label);
}

function warningList(warnings) {
  const items = warnings.map(({ kind, message }) =>
    make("li", {}, make("strong", {}, `${WARNINGS[kind] ?? kind}: `), quoted(message)),
  );
  return make("ul", { class: "warnings", "aria-label": "Warnings" }, ...items);
}

/** The score of the headline and the other headlines of the n-best list, with theirs. */
function alternativesTable(answer) {
  if (answer.score === null) return "";
  const others = (answer.alternatives ?? []).slice(1);
  const row = (first, score) => {
    const cells = scoreParts(score).map((part) => make("td", {}, part));
    return make("tr", {}, make("th", { scope: "row" }, first), ...cells);
  };
  const heads = ["score", "per sub-word"].map((name) => make("th", { scope: "col" }, name));
  return make(
    "table",
    { class: "alternatives" },
    make("caption", {}, SCORES),
    make("thead", {}, make("tr", {}, make("td"), ...heads)),
    make(
      "tbody",
      {},
      row("This headline", answer.score),
      ...others.map((one) => row(alternativeButton(one), one.score)),
    ),
  );
}

const SCORES =
  "Score: mean log-probability of the sub-words, 0 is certainty. Per sub-word: the same as a " +
  "probability, exp(score).";

function alternativeButton(one) {
  const label = make("span", { class: "label" }, "copy");
  const text = (one.headline || "(no headline)") + (one.truncated ? " …" : "");
  const click = () => copy(one.headline, label);
  return make("button", { type: "button", class: "alternative", click }, quoted(text), " ", label);
}

function ledePart(answer, marks) {
  if (!marks) return [make("p", { class: "lede", dir: "auto" }, answer.source ?? "")];
  const all = marks.source.length;
  const used = all - marks.dropped.size;
  const cut = answer.warnings.some((one) => one.kind === "cut");
  const lede = marks.lede();
  if (cut) lede.append(" …");
  const count = `${numbers.format(used)} of ${plural(all, "word")} and marks used`;
  return [lede, make("p", { class: "note" }, count, cut ? "; the rest was not read." : ".")];
}

/** Everything about one answer. */
function resultBody(answer, number, pinned) {
  const map = answer.headline && answer.alignment?.heat_map;
  const marks = map ? new Marks(answer.alignment, `readout-${number}`) : null;
  if (marks) results.push(marks);
  if (marks && pinned) marks.pin(tellingWord(marks));
  const body = make("div", { class: "body" });
  const top = make("div", { class: "top" }, headlineHeading(answer, marks));
  if (answer.headline) top.append(copyButton(answer));
  body.append(top);
  if (answer.warnings.length) body.append(warningList(answer.warnings));
  if (marks) body.append(marks.readout);
  body.append(...ledePart(answer, marks), alternativesTable(answer));
  if (marks) body.append(marks.heat.details);
  return body;
}

/** The word to show the marks of, unasked, in the example: that with the clearest source. */
function tellingWord(marks) {
  const most = marks.rows.map((row) => Math.max(...row));
  return most.indexOf(Math.max(...most));
}

/** One of several: folds, and is made when it is first opened. */
function foldingResult(answer, number, total) {
  const short = [quoted(answer.headline || "(no headline)")];
  if (answer.warnings.length) short.push(` (${plural(answer.warnings.length, "warning")})`);
  const summary = make(
    "summary",
    {},
    make("span", { class: "number" }, `${number} of ${total} `),
    make("span", { class: "short" }, ...short),
  );
  const details = make("details", { class: "result" }, summary);
  const fill = () => {
    if (details.open && !details.querySelector(".body")) {
      details.append(resultBody(answer, number, false));
    }
    nameFold();
  };
  details.addEventListener("toggle", fill);
  details.open = number === 1 || total <= OPEN_AT_FIRST;
  fill();
  return details;
}

function show(answers, isExample) {
  results = [];
  const several = answers.length > 1;
  const list = several
    ? answers.map((answer, place) => foldingResult(answer, place + 1, answers.length))
    : [make("article", { class: "result" }, resultBody(answers[0], 1, isExample))];
  byId("results-title").textContent = isExample ? "An example" : several ? "Headlines" : "Headline";
  byId("list").replaceChildren(...list);
  byId("fold").hidden = !several;
  nameFold();
  showReading(answers);
}

function showReading(answers) {
  const maps = answers.map((answer) => answer.alignment?.heat_map).filter(Boolean);
  const hasSpm = maps.some((map) => map.spm);
  byId("reading").hidden = !maps.length;
  byId("no-spm").hidden = hasSpm;
  for (const input of document.querySelectorAll("input[name=view]")) input.disabled = !hasSpm;
  if (!hasSpm) document.querySelector("input[value=attention]").checked = true;
  for (const marks of results) marks.redraw();
}

const folds = () => [...document.querySelectorAll("details.result")];

function nameFold() {
  byId("fold").textContent = folds().some((one) => one.open) ? "Close all" : "Open all";
}

function foldAll() {
  const open = !folds().some((one) => one.open);
  for (const one of folds()) one.open = open;
}

// --- the form -----------------------------------------------------------------------------------

/** The ledes, each with the number of its line; empty lines do not count. */
function ledes() {
  return byId("text")
    .value.split("\n")
    .map((line, place) => ({ text: line.trim(), line: place + 1 }))
    .filter(({ text }) => text);
}

/** Characters as the server counts them. */
const lengthOf = (text) => [...text].length;

/** What the server would refuse, or nothing. */
function excess(given) {
  if (!limits) return "";
  if (given.length > limits.texts) {
    return `${plural(given.length, "lede")}: the server takes ${numbers.format(limits.texts)} at a time.`;
  }
  const long = given.find(
    ({ text }) => text.length > limits.characters && lengthOf(text) > limits.characters,
  );
  if (!long) return "";
  const length = numbers.format(lengthOf(long.text));
  return `Line ${long.line} has ${length} characters: the server takes ${numbers.format(limits.characters)}.`;
}

function countText(given) {
  if (!given.length) {
    if (!limits) return "\u00a0";
    return `Up to ${plural(limits.texts, "lede")} of ${plural(limits.characters, "character")}.`;
  }
  const longest = Math.max(...given.map(({ text }) => text.length));
  const most = limits ? ` of ${numbers.format(limits.characters)}` : "";
  const count = limits ? `${given.length} of ${numbers.format(limits.texts)}` : `${given.length}`;
  const which = given.length > 1 ? `${count} ledes; the longest has ` : "";
  return `${which}${numbers.format(longest)}${most} characters.`;
}

function count() {
  const given = ledes();
  const problem = excess(given);
  byId("count").textContent = problem || countText(given);
  byId("count").classList.toggle("over", Boolean(problem));
  byId("clear").hidden = !byId("text").value;
  nameWrite(given.length);
}

function nameWrite(num) {
  if (running) byId("write").textContent = "Writing …";
  else byId("write").textContent = num > 1 ? `Write ${num} headlines` : "Write headline";
}

/** Fill in examples. What somebody wrote is never taken away: then they are added below it. */
function fillIn(chosen) {
  const own = ledes().some(({ text }) => !examples.includes(text));
  const before = own ? [byId("text").value.trimEnd()] : [];
  byId("text").value = [...before, ...chosen].join("\n");
  clearError();
  count();
}

function showExamples() {
  const chips = examples.map((lede) => {
    const name = `${lede.split(/\s+/).slice(0, 3).join(" ")} …`;
    return make("button", { type: "button", title: lede, click: () => fillIn([lede]) }, name);
  });
  const all = make("button", { type: "button", click: () => fillIn(examples) }, `All ${examples.length}`);
  byId("examples").replaceChildren(make("span", { class: "note" }, "Try:"), ...chips, all);
  byId("examples").hidden = !examples.length;
}

/** The value of a number field, null where it is empty. */
function numberOf(id) {
  return byId(id).value === "" ? null : byId(id).valueAsNumber;
}

/** Whether the settings can be; the browser says what cannot. */
function settingsAreGood() {
  const [beam, nBest, least, most] = ["beam", "n-best", "min-length", "max-length"].map(numberOf);
  const bad = (id, text) => byId(id).setCustomValidity(text);
  bad("n-best", nBest > beam ? `At most as many as the beam, ${beam}.` : "");
  bad("max-length", most !== null && most < least ? `At least the least length, ${least}.` : "");
  if (byId("form").checkValidity()) return true;
  byId("settings").open = true; // the browser cannot point at what is hidden
  byId("form").reportValidity();
  return false;
}

function request(texts) {
  return {
    texts,
    beam: numberOf("beam"),
    n_best: numberOf("n-best"),
    explain: true,
    heat_map: true,
    min_length: numberOf("min-length"),
    max_length: numberOf("max-length"),
  };
}

function setBusy(controller) {
  running = controller;
  // A disabled button would lose the focus.
  byId("write").setAttribute("aria-disabled", Boolean(running));
  byId("results").setAttribute("aria-busy", Boolean(running));
  byId("cancel").hidden = !running;
  if (!running && document.activeElement === document.body) byId("write").focus();
  count();
}

async function write() {
  if (running) return;
  clearError();
  const given = ledes();
  const problem = given.length ? excess(given) : "Write or paste a lede first.";
  if (problem) return refuse(problem);
  if (!settingsAreGood()) return;
  waitingForToken = false;
  const began = performance.now();
  setBusy(new AbortController());
  say(`Writing ${plural(given.length, "headline")} …`);
  try {
    const texts = given.map(({ text }) => text);
    const { headlines } = await ask("v1/headlines", request(texts), running.signal);
    lastWritten = true;
    show(headlines, false);
    sayWhatCame(headlines, (performance.now() - began) / 1000);
    bringIntoView(byId("results"));
  } catch (error) {
    failed(error);
  } finally {
    setBusy(null);
  }
}

function refuse(problem) {
  fail(problem);
  byId("text").setAttribute("aria-invalid", "true");
  byId("text").focus();
}

function sayWhatCame(headlines, seconds) {
  const took = `in ${seconds.toFixed(1)} s`;
  if (headlines.length > 1) return say(`${headlines.length} headlines ${took}.`);
  return say(`Headline ${took}: `, quoted(headlines[0].headline || "none, see the warning"));
}

/** On a phone the headlines are below the form. */
function bringIntoView(element) {
  const { top } = element.getBoundingClientRect();
  if (top >= 0 && top < 0.7 * innerHeight) return;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  element.scrollIntoView({ block: "start", behavior: still ? "auto" : "smooth" });
}

function clear() {
  byId("text").value = "";
  clearError();
  count();
  byId("text").focus();
}

function keys(event) {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    write();
  } else if (event.key === "Escape") {
    running?.abort();
  }
}

// --- the beginning ------------------------------------------------------------------------------

/** The model in the footer, its limits in the form. */
async function describeModel() {
  try {
    showModel(await ask("v1/model"));
  } catch (error) {
    if (error.status === 401) showTokenForm();
    else byId("model").textContent = "The server does not say which model it has.";
  }
}

function showModel(model) {
  limits = model.limits;
  setMost("beam", limits.beam);
  setMost("n-best", Math.min(limits.n_best, limits.beam));
  byId("model").textContent = [
    model.system,
    plural(model.parameters, "parameter"),
    plural(model.vocabulary, "sub-word"),
    `text profile ${model.profile}`,
    `${model.precision} on ${model.device}`,
    `ledeline ${model.version}`,
  ].join(" · ");
  byId("card").hidden = !model.card;
  byId("card").querySelector("pre").textContent = model.card ?? "";
  count();
}

function setMost(id, most) {
  const input = byId(id);
  input.max = most;
  if (input.valueAsNumber > most) input.value = most;
}

async function showWorkedExample() {
  try {
    const given = await ask("page/examples.json");
    examples = given.ledes;
    showExamples();
    if (!lastWritten) show([given.worked], true);
  } catch {
    // There is nothing to lose: the form works without examples.
  }
}

function begin() {
  token.read();
  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    write();
  });
  byId("form").addEventListener("keydown", keys);
  byId("text").addEventListener("input", count);
  byId("token-form").addEventListener("submit", useToken);
  byId("cancel").addEventListener("click", () => running?.abort());
  byId("clear").addEventListener("click", clear);
  byId("fold").addEventListener("click", foldAll);
  byId("reading").addEventListener("change", () => results.forEach((marks) => marks.redraw()));
  byId("sample").style.setProperty("--share", 0.6);
  if (/Mac|iP/.test(navigator.platform)) byId("modifier").textContent = "⌘";
  count();
  describeModel();
  showWorkedExample();
}

begin();
