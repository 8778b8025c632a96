"""Debian's Chromium for tests of what people see."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

TEXT_OUTSIDE = """() => [...document.querySelectorAll('body *')]
  .filter(e => !e.closest('.scroll') && !e.closest('.hidden') && !e.closest('svg')
    && !e.classList.contains('skip') && e.getClientRects().length
    && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map(e => e.outerHTML.slice(0, 80))"""
"""What sticks out of the page on the right; tables that scroll in themselves do not."""

TEXT_OVERLAPPING = """() => {
  const boxes = [...document.querySelectorAll('body *')]
    .filter(e => !e.closest('.hidden') && !e.closest('svg') && !e.classList.contains('skip')
      && e.checkVisibility() && !e.closest('pre')
      && [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))
    .flatMap(e => {
      const range = document.createRange(); range.selectNodeContents(e);
      return [...range.getClientRects()].filter(r => r.width > 2 && r.height > 2).map(r => [e, r]);
    }).sort((a, b) => a[1].top - b[1].top);
  const found = [];
  for (let i = 0; i < boxes.length; i++) for (let j = i + 1; j < boxes.length; j++) {
    const [a, r] = boxes[i], [b, q] = boxes[j];
    if (q.top > r.bottom - 3) break;
    if (a.contains(b) || b.contains(a)) continue;
    const wide = Math.min(r.right, q.right) - Math.max(r.left, q.left);
    const high = Math.min(r.bottom, q.bottom) - q.top;
    if (wide > 3 && high > 3)
      found.push(a.textContent.slice(0, 40) + ' / ' + b.textContent.slice(0, 40));
  }
  return found.slice(0, 5);
}"""
"""Pairs of texts that lie over each other by more than 3 pixels; a long text scrolls in itself."""

FIRST_PAINT = """() => new Promise(seen => new PerformanceObserver(list => {
  const paint = list.getEntriesByName('first-contentful-paint')[0];
  if (paint) seen(paint.startTime);
}).observe({type: 'paint', buffered: true}))"""
"""Milliseconds from the page's beginning to the first content that is seen."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser, without a window."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    assert program is not None, "install Debian's chromium: bash deploy/test.sh does"
    with sync_playwright() as playwright:
        # A sandbox needs a user that is not root, which this may be.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()
