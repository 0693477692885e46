addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {
  if (new URL(event.request.url).pathname === "/sw/clock") {
    event.respondWith(Response.json([Date.now(), Math.random(), crypto.randomUUID()]));
  }
  if (new URL(event.request.url).pathname !== "/sw/through") return;
  event.respondWith(fetch("/answer?sw").then((answer) => answer.text()).then((value) => new Response(`worker: ${value}`)));
});
