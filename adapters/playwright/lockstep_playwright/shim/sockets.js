// The WebSockets of one realm, run after `realm.js`: what becomes of each is told by a binding, and where they are served,
// none is opened: what it receives is said to `globalThis[Symbol.for("lockstep")].socket`. See `sockets.py`.
(options) => {
  const here = globalThis[Symbol.for("lockstep")];
  const binding = globalThis[options.binding];
  delete globalThis[options.binding];
  if (!here || here.socket || !globalThis.WebSocket || typeof binding !== "function") return;
  const {wrapped, native} = here;
  const Socket = globalThis.WebSocket;
  const proto = Socket.prototype;
  const add = EventTarget.prototype.addEventListener;
  const dispatch = EventTarget.prototype.dispatchEvent;
  const buffer = Blob.prototype.arrayBuffer;
  const {stringify} = JSON;
  let count = 0;

  const tell = (socket, event, more) => binding(stringify({socket, event, ...more}));
  const encode = (bytes) => {
    let text = "";
    for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
    return btoa(text);
  };
  const decode = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

  // Recording: the browser's own protocol tells of all frames, and not of how a socket was closed.
  const watched = (socket, number) => {
    native.apply(add, socket, ["close", (event) => {
      tell(number, "closed", {code: event.code, reason: event.reason, clean: event.wasClean});
    }]);
    return socket;
  };

  // Serving. An object that is a WebSocket to all that looks, with its state beside it.
  const states = new WeakMap();
  const open = new Map(); // by number
  const CONNECTING = 0, OPEN = 1, CLOSING = 2, CLOSED = 3;
  const fail = (message, name) => { throw new DOMException(message, name); };
  const wanted = (given) => {
    const [address, protocols] = given;
    let url;
    try {
      url = new URL(address, globalThis.location && location.href);
    } catch {
      fail(`Failed to construct 'WebSocket': The URL '${address}' is invalid.`, "SyntaxError");
    }
    if (url.protocol === "http:") url.protocol = "ws:";
    if (url.protocol === "https:") url.protocol = "wss:";
    if (!/^wss?:$/.test(url.protocol) || url.hash) {
      fail(`Failed to construct 'WebSocket': The URL '${address}' is not one of a WebSocket.`, "SyntaxError");
    }
    const list = protocols === undefined ? [] : typeof protocols === "string" ? [protocols] : Array.from(protocols, String);
    if (new Set(list).size !== list.length) {
      fail("Failed to construct 'WebSocket': The subprotocols are not all different.", "SyntaxError");
    }
    return [url.href, list];
  };
  const served = (given, as) => {
    const [url, protocols] = wanted(given);
    const socket = new EventTarget();
    Object.setPrototypeOf(socket, as.prototype);
    const state = {
      number: ++count, url, protocols, ready: CONNECTING, protocol: "", binaryType: "blob", handlers: {}, live: null,
      sent: Promise.resolve(), socket,
    };
    states.set(socket, state);
    open.set(state.number, state);
    tell(state.number, "open", {url, protocols});
    return socket;
  };
  const received = (state, data) => {
    const value = "text" in data ? data.text : decode(data.base64);
    const given = typeof value === "string" ? value : state.binaryType === "blob" ? new Blob([value]) : value.buffer;
    native.apply(dispatch, state.socket, [new MessageEvent("message", {data: given, origin: new URL(state.url).origin})]);
  };
  const closed = (state, {code = 1006, reason = "", clean = false}) => {
    if (state.ready === CLOSED) return;
    state.ready = CLOSED;
    open.delete(state.number);
    native.apply(dispatch, state.socket, [new CloseEvent("close", {code, reason, wasClean: clean})]);
  };
  // One that the record does not have, and that may be opened: a real one behind it.
  const real = (state) => {
    const live = state.live = new Socket(state.url, state.protocols);
    live.binaryType = "arraybuffer";
    live.onopen = () => { state.ready = OPEN; state.protocol = live.protocol; state.socket.dispatchEvent(new Event("open")); };
    live.onmessage = ({data}) => received(state, typeof data === "string" ? {text: data} : {base64: encode(new Uint8Array(data))});
    live.onerror = () => state.socket.dispatchEvent(new Event("error"));
    live.onclose = (event) => closed(state, {code: event.code, reason: event.reason, clean: event.wasClean});
  };
  // What is said to a socket: one of {opened}, {text}, {base64}, {error}, {closed}, {live}.
  here.socket = (number, said) => {
    const state = open.get(number);
    if (!state) return;
    if ("opened" in said) {
      if (state.ready !== CONNECTING) return;
      state.ready = OPEN;
      state.protocol = said.opened;
      native.apply(dispatch, state.socket, [new Event("open")]);
    } else if ("closed" in said) closed(state, said.closed);
    else if ("error" in said) {
      if (state.ready === CONNECTING) state.ready = CLOSING;
      native.apply(dispatch, state.socket, [new Event("error")]);
    } else if ("live" in said) real(state);
    else if (state.ready === OPEN || state.ready === CLOSING) received(state, said);
  };

  const value = (name, get, set) => {
    const found = native.describe(proto, name);
    const change = {...found, get: wrapped(found.get, (self, given, original) => (
      states.has(self) ? get(states.get(self)) : native.apply(original, self, given)))};
    if (set) {
      change.set = wrapped(found.set, (self, given, original) => (
        states.has(self) ? set(states.get(self), given[0]) : native.apply(original, self, given)));
    }
    native.define(proto, name, change);
  };
  const call = (name, run) => here.method(proto, name, (self, given, original) => (
    states.has(self) ? run(states.get(self), given) : native.apply(original, self, given)));

  if (options.serve) {
    value("url", (state) => state.url);
    value("readyState", (state) => state.ready);
    value("bufferedAmount", () => 0);
    value("extensions", () => "");
    value("protocol", (state) => state.protocol);
    value("binaryType", (state) => state.binaryType, (state, type) => {
      if (type === "blob" || type === "arraybuffer") state.binaryType = type;
    });
    for (const type of ["open", "message", "error", "close"]) {
      value(`on${type}`, (state) => state.handlers[type] || null, (state, handler) => {
        const had = state.handlers[type] !== undefined;
        state.handlers[type] = typeof handler === "function" ? handler : null;
        if (had) return;
        native.apply(add, state.socket, [type, function (event) {
          if (state.handlers[type]) native.apply(state.handlers[type], this, [event]);
        }]);
      });
    }
    call("send", (state, given) => {
      if (!given.length) throw new TypeError("Failed to execute 'send' on 'WebSocket': 1 argument required, but only 0 present.");
      if (state.ready === CONNECTING) {
        fail("Failed to execute 'send' on 'WebSocket': Still in CONNECTING state.", "InvalidStateError");
      }
      if (state.ready !== OPEN) return;
      const [data] = given;
      if (state.live) return state.live.send(data);
      // A blob is read first; nothing that is sent after it may come before.
      const frame = data instanceof Blob
        ? native.apply(buffer, data, []).then((read) => ({base64: encode(new Uint8Array(read))}))
        : data instanceof ArrayBuffer ? {base64: encode(new Uint8Array(data))}
          : ArrayBuffer.isView(data)
            ? {base64: encode(new Uint8Array(data.buffer, data.byteOffset, data.byteLength))}
            : {text: String(data)};
      if (!state.waiting && !(data instanceof Blob)) {
        tell(state.number, "sent", frame);
        return;
      }
      state.waiting = (state.waiting || 0) + 1;
      state.sent = state.sent.then(() => frame).then((found) => {
        state.waiting -= 1;
        tell(state.number, "sent", found);
      });
    });
    call("close", (state, given) => {
      const [code, reason = ""] = given;
      if (code !== undefined && Number(code) !== 1000 && !(Number(code) >= 3000 && Number(code) <= 4999)) {
        fail(`Failed to execute 'close' on 'WebSocket': The close code must be either 1000, or between 3000 and 4999. ${code} is neither.`, "InvalidAccessError");
      }
      if (state.ready === CLOSING || state.ready === CLOSED) return;
      state.ready = CLOSING;
      if (state.live) return code === undefined ? state.live.close() : state.live.close(code, reason);
      tell(state.number, "closing", {code: code === undefined ? null : Number(code), reason: String(reason)});
    });
  } else here.socket = () => {};

  const made = new Proxy(Socket, {
    construct: (target, given, as) => {
      const by = as === made ? target : as;
      if (options.serve) return served(given, by);
      const socket = native.construct(target, given, by);
      const number = ++count;
      tell(number, "open", {url: socket.url, protocols: [given[1] === undefined ? [] : given[1]].flat().map(String)});
      return watched(socket, number);
    },
  });
  native.define(globalThis, "WebSocket", {...native.describe(globalThis, "WebSocket"), value: made});
  native.define(proto, "constructor", {...native.describe(proto, "constructor"), value: made});
}
