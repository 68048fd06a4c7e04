// Adds the keyboard, and lights up what belongs to the claim under the cursor. Everything else works without it.
"use strict";

const items = [...document.querySelectorAll("[data-item]")];
let current = null;

function choose(item) {
  if (!item) return;
  items.forEach((each) => each.classList.toggle("current", each === item));
  current = item;
  item.focus({ preventScroll: true });
  item.scrollIntoView({ block: "nearest" });
}

function step(by) {
  const at = items.indexOf(current);
  choose(items[Math.min(Math.max(at < 0 ? 0 : at + by, 0), items.length - 1)]);
}

function decide(decision) {
  const button = current && current.querySelector(`button[name="decision"][value="${decision}"]`);
  if (button) button.click();
}

function note() {
  const details = current && current.querySelector("details");
  if (details) details.open = true;
  const field = current && current.querySelector("textarea");
  if (field) field.focus();
}

function open() {
  const link = current && current.querySelector("[data-open]");
  if (link) link.click();
}

const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  c: () => decide("confirmed"),
  r: () => decide("rejected"),
  n: note,
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const at = event.target;
  if (at.matches("input, select, textarea")) {
    if (event.key === "Escape") choose(at.closest("[data-item]"));
    return;
  }
  if (event.key === "Enter") {
    if (at === current) open();
    return;
  }
  if (event.repeat && "cr".includes(event.key)) return;
  const act = KEYS[event.key];
  if (act) {
    event.preventDefault();
    act();
  }
});

document.addEventListener("focusin", (event) => {
  const item = event.target.closest("[data-item]");
  if (item && item !== current) {
    items.forEach((each) => each.classList.toggle("current", each === item));
    current = item;
  }
});

function light(claim) {
  const belongs = (each) => (each.dataset.claims || each.dataset.claim).split(" ").includes(claim);
  for (const kind of [".answer a.claim", ".evidence"]) {
    document.querySelectorAll(kind).forEach((each) => each.classList.toggle("lit", belongs(each)));
  }
}

for (const name of ["mouseover", "focusin"]) {
  document.addEventListener(name, (event) => {
    const place = event.target.closest("[data-claim]");
    if (place) light(place.dataset.claim);
  });
}

// The answer stays in view beside its claims as long as all of it fits.
const reading = document.querySelector(".reading");
if (reading) {
  const fit = () => reading.classList.toggle("fits", reading.offsetHeight < innerHeight - 100);
  new ResizeObserver(fit).observe(reading);
  window.addEventListener("resize", fit);
}

function arrive() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (items.includes(target)) choose(target);
}

window.addEventListener("hashchange", arrive);
arrive();
