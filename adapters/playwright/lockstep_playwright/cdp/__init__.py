"""The DevTools protocol of a Chromium, over whichever connection there is to it."""
