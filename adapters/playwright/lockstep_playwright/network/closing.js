// Tells how WebSockets end, which no event of DevTools says: code, reason, and whether the page has closed it. Runs
// before the first script of each page and worker; leaves nothing behind that a page would find.
(() => {
  const name = "__lockstep_socket";
  let tell = globalThis[name];
  const Real = globalThis.WebSocket;
  if (typeof Real !== "function") return;
  if (typeof tell === "function") {
    delete globalThis[name];
  } else {
    // The first document of a popup gets the binding after its scripts.
    const set = (given) => { tell = given; delete globalThis[name]; };
    Object.defineProperty(globalThis, name, {configurable: true, enumerable: false, set});
  }
  const listen = EventTarget.prototype.addEventListener;
  const url = Object.getOwnPropertyDescriptor(Real.prototype, "url").get;
  const text = JSON.stringify;
  const left = new WeakSet();
  const isLeft = left.has.bind(left), leave = left.add.bind(left);
  const {apply, construct} = Reflect;

  const close = new Proxy(Real.prototype.close, {
    apply(target, self, given) {
      const done = apply(target, self, given); // throws for what is no close
      leave(self);
      return done;
    },
  });
  const Ours = new Proxy(Real, {
    construct(target, given, as) {
      const socket = construct(target, given, as);
      apply(listen, socket, ["close", (event) => {
        const {code, reason, wasClean} = event;
        tell?.(text({url: apply(url, socket, []), code, reason, clean: wasClean, by: isLeft(socket) ? "page" : "server"}));
      }]);
      return socket;
    },
  });
  Object.defineProperty(Real.prototype, "close", {...Object.getOwnPropertyDescriptor(Real.prototype, "close"), value: close});
  Object.defineProperty(Real.prototype, "constructor", {
    ...Object.getOwnPropertyDescriptor(Real.prototype, "constructor"), value: Ours,
  });
  Object.defineProperty(globalThis, "WebSocket", {...Object.getOwnPropertyDescriptor(globalThis, "WebSocket"), value: Ours});
})();
