// Asks for the page again while its sweep goes on, and puts in what has changed. The answer is
// the server's own page: nothing that a run left behind is ever made into markup here.
"use strict";
(() => {
  const EVERY_MS = 3000;
  let tag = null;
  const renew = async () => {
    try {
      const answer = await fetch(location.href, {
        headers: tag ? { "If-None-Match": tag } : {},
        signal: AbortSignal.timeout(30000),
      });
      if (answer.status === 200) {
        tag = answer.headers.get("ETag");
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const now = document.querySelector("main");
        const next = page.querySelector("main");
        // A form in use is the reader's: it is not taken from under the fingers.
        if (next && !now.querySelector("form")?.contains(document.activeElement)) {
          for (const [place, details] of [...now.querySelectorAll("details")].entries()) {
            if (details.open) next.querySelectorAll("details")[place]?.setAttribute("open", "");
          }
          const focused = document.activeElement?.getAttribute?.("href");
          now.replaceChildren(...next.childNodes);
          if (focused) now.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
          if (!next.hasAttribute("data-live")) return;
        }
      }
    } catch {
      // The server is away for a moment, or for good: the page stays as it is and asks again.
    }
    setTimeout(renew, EVERY_MS);
  };
  setTimeout(renew, EVERY_MS);
})();
