// Keeps a page of a running simulation up to date: asks for it anew and exchanges the parts that are marked as live.
"use strict";

async function refresh() {
  if (document.hidden) return again();
  try {
    const answer = await fetch(location.href);
    if (answer.redirected) return location.replace(answer.url);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const fresh = page.getElementById(part.id);
      const used = part.contains(document.activeElement);
      if (fresh && !used && fresh.innerHTML !== part.innerHTML) part.replaceChildren(...fresh.childNodes);
    }
    if (answer.ok && !page.body.dataset.every) return;
  } catch {
    // the viewer was stopped, or is busy: ask again
  }
  again();
}

function again() {
  setTimeout(refresh, Number(document.body.dataset.every));
}

if (document.body.dataset.every) again();
