// Replaces the state of a node every two seconds, until the reader stops that.
"use strict";
const now = document.getElementById("now-state");
const button = document.getElementById("now-pause");
let paused = false;

async function refresh() {
  if (!paused && !document.hidden) {
    try {
      const response = await fetch(now.dataset.source);
      now.innerHTML = await response.text(); // of this server, which escapes every name
    } catch {
      now.textContent = "reveal does not answer: is it still running?";
    }
  }
  setTimeout(refresh, 2000);
}

button.hidden = false;
button.addEventListener("click", () => {
  paused = !paused;
  button.textContent = paused ? "Go on" : "Pause";
});
setTimeout(refresh, 2000);
