// Each observable is what a page can tell of one way of reaching the outside. All begin at once, as on a real page.
// `finished` is a promise of {name: value}; what takes too long is "never", what fails says how.
const OTHER = document.getElementById("cross").src.replace(/\/frame$/, "");
const PATIENCE = Number(new URLSearchParams(location.search).get("patience") || 30) * 1000;
const observed = {};
const open = [];

function observe(name, look) {
  const late = new Promise((resolve) => setTimeout(() => resolve("never"), PATIENCE));
  const found = look().catch((error) => `${error.name}: ${error.message}`);
  open.push(Promise.race([found, late]).then((value) => { observed[name] = value; }));
}

const text = async (answer) => [answer.status, await answer.text()];
const said = (from) => new Promise((resolve) => {
  for (const early of window.spoken) if (early.from === from) resolve(early.value);
  addEventListener("message", (event) => { if (event.data.from === from) resolve(event.data.value); });
});
const loaded = new Promise((resolve) => addEventListener("load", resolve));
const bytes = (buffer) => [...new Uint8Array(buffer)];
const width = (url) => new Promise((resolve, reject) => {
  const image = new Image();
  image.onload = () => resolve(image.naturalWidth);
  image.onerror = () => reject(new Error("no image"));
  image.src = url;
});

observe("html", async () => document.title);
observe("css", async () => { await loaded; return getComputedStyle(document.querySelector("h1")).color; });
observe("image", async () => { await loaded; return document.getElementById("picture").naturalWidth; });
observe("background_image", async () => {
  await loaded;
  const painted = performance.getEntriesByName(new URL("/painted.png", location).href);
  return [painted.length > 0, painted[0].responseStatus, await width("/painted.png")];
});
observe("script", async () => [window.library, await text(await fetch("/library.js", {cache: "no-cache"}))]);
observe("frame", () => said("/frame"));
observe("cross_site_frame", () => said("other/frame"));
observe("redirect_get", async () => {
  const answer = await fetch("/moved");
  return [new URL(answer.url).pathname, answer.redirected, ...await text(answer)];
});
observe("redirect_post", async () => {
  const answer = await fetch("/moved/307", {method: "POST", body: "carried over"});
  return [new URL(answer.url).pathname, answer.redirected, ...await text(answer)];
});
observe("same_post_twice", async () => {
  const first = await text(await fetch("/post", {method: "POST", body: "the same"}));
  return [first, await text(await fetch("/post", {method: "POST", body: "the same"}))];
});
observe("random_post", async () => {
  const body = JSON.stringify({id: crypto.randomUUID(), at: Date.now(), dice: Math.random()});
  return text(await fetch("/post?random", {method: "POST", body}));
});
observe("same_get_thrice", async () => {
  const answers = [];
  for (let n = 0; n < 3; n++) answers.push(await text(await fetch("/again")));
  return answers;
});
observe("xhr", () => new Promise((resolve, reject) => {
  const request = new XMLHttpRequest();
  request.open("GET", "/answer?xhr");
  request.onload = () => resolve([request.status, request.getResponseHeader("x-answer"), request.responseText]);
  request.onerror = () => reject(new Error("no answer"));
  request.send();
}));
const packed = async (url) => {
  const answer = await fetch(url);
  return [answer.headers.get("content-encoding"), ...await text(answer)];
};
observe("gzip", () => packed("/packed/gzip"));
observe("brotli", () => packed("/packed/br"));
observe("binary", async () => bytes(await (await fetch("/binary")).arrayBuffer()));
const heard = (url, enough) => new Promise((resolve) => {
  const source = new EventSource(url);
  const events = [];
  source.addEventListener("tick", (event) => {
    events.push([event.lastEventId, event.data]);
    if (events.length === enough) resolve([...events, source.readyState]);
  });
  source.onerror = () => { events.push(source.readyState); source.close(); resolve(events); };
  window.sources = [...(window.sources || []), source];
});
observe("events_held", () => heard("/events/held", 3));
observe("events_that_end", () => heard("/events/ended", 0));
observe("chunks", async () => {
  const reader = (await fetch("/chunks")).body.getReader();
  const chunks = [];
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return chunks;
    chunks.push(new TextDecoder().decode(value));
  }
});
const talk = (Socket, url) => new Promise((resolve) => {
  const socket = new Socket(url, ["v2.chat", "v1.chat"]);
  const messages = [];
  socket.binaryType = "arraybuffer";
  socket.onopen = () => { socket.send("hello"); socket.send(new Uint8Array([1, 2, 3]).buffer); };
  socket.onmessage = (event) => messages.push(typeof event.data === "string" ? event.data : bytes(event.data));
  socket.onclose = (event) => resolve([socket.protocol, messages, event.code, event.reason, event.wasClean]);
});
observe("websocket", () => talk(WebSocket, `ws://${location.host}/talk`));
observe("service_worker", async () => {
  await navigator.serviceWorker.register("/sw/worker.js", {scope: "/sw/"});
  const registration = await navigator.serviceWorker.getRegistration("/sw/");
  const worker = registration.installing || registration.waiting || registration.active;
  if (worker.state !== "activated") {
    await new Promise((resolve) => worker.addEventListener("statechange", () => {
      if (worker.state === "activated") resolve();
    }));
  }
  const answer = said("/sw/frame");
  const frame = document.createElement("iframe");
  frame.src = "/sw/frame";
  document.body.append(frame);
  return answer;
});
const worked = (url) => new Promise((resolve, reject) => {
  const worker = new Worker(url);
  worker.onmessage = (event) => resolve(event.data);
  worker.onerror = (event) => reject(new Error(event.message || "the worker did not start"));
});
observe("worker", () => worked("/worker.js"));
observe("worker_websocket", () => worked("/worker-socket.js"));
observe("blob_worker", () => worked(URL.createObjectURL(new Blob([
  "postMessage([Date.now(), Math.random(), crypto.randomUUID(), performance.now()])",
], {type: "text/javascript"}))));
observe("preflight", async () => {
  const answer = await fetch(`${OTHER}/shared`, {method: "PUT", headers: {"x-custom": "asked"}, body: "put"});
  return [answer.headers.get("x-answer"), ...await text(answer)];
});
observe("upload", async () => {
  const form = new FormData();
  form.append("note", "with a file");
  form.append("file", new Blob(["line 1\nline 2\n"], {type: "text/plain"}), "notes.txt");
  return text(await fetch("/upload", {method: "POST", body: form}));
});
observe("beacon", async () => [navigator.sendBeacon("/beacon", "left"), await text(await fetch("/beacon/seen"))]);
observe("unavailable", async () => text(await fetch("/unavailable")));
observe("dropped", async () => text(await fetch("/dropped")));
observe("indexed_db", async () => {
  const value = await (await fetch("/answer?stored")).text();
  const database = await new Promise((resolve, reject) => {
    const request = indexedDB.open("notes", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("kept");
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  database.transaction("kept", "readwrite").objectStore("kept").put(value, "answer");
  return new Promise((resolve) => {
    const request = database.transaction("kept").objectStore("kept").get("answer");
    request.onsuccess = () => resolve(request.result);
  });
});
observe("local_storage", async () => {
  localStorage.setItem("answer", await (await fetch("/answer?local")).text());
  return localStorage.getItem("answer");
});
observe("cookie", async () => {
  await fetch("/answer?cookie");
  return document.cookie;
});
observe("popup", () => { const answer = said("/popup"); window.open("/popup"); return answer; });
observe("inline", async () => window.inline);

window.finished = Promise.all(open).then(() => observed);
