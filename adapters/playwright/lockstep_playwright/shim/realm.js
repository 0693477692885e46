// The clock and the dice of one realm: a window, a frame, a worker. A function of its options, run before the realm's
// first line of code; see `shim.py` for the options and for what it promises.
(options) => {
  const KEY = Symbol.for("lockstep");
  if (globalThis[KEY]) return;
  const here = {};
  Object.defineProperty(globalThis, KEY, {value: here, configurable: true});

  // What the page may replace later is taken now.
  const native = {
    Date, Proxy, Symbol, Error, Promise, WeakMap, Math, performance: globalThis.performance,
    apply: Reflect.apply, construct: Reflect.construct, define: Object.defineProperty,
    describe: Object.getOwnPropertyDescriptor, now: Date.now, parse: Date.parse,
  };
  // A proxy of a function is that function, for all that looks at its name, length or text.
  const wrapped = (original, apply) => new Proxy(original, {apply: (_, self, given) => apply(self, given, original)});
  const method = (owner, name, apply) => {
    const found = owner && native.describe(owner, name);
    if (found && typeof found.value === "function") {
      native.define(owner, name, {...found, value: wrapped(found.value, apply)});
    }
  };
  const getter = (owner, name, apply) => {
    const found = owner && native.describe(owner, name);
    if (found && found.get) native.define(owner, name, {...found, get: wrapped(found.get, apply)});
  };

  // Who this is. What was loaded has an address; all else is a child of what made it, which can be asked. A window that
  // was opened for an address of its opener's origin begins empty and stays the same window: it is a child too.
  const within = () => {
    for (const other of [globalThis.parent, globalThis.opener]) {
      try {
        if (other && other !== globalThis && other[KEY] && other[KEY].child) return other[KEY];
      } catch { /* of another site */ }
    }
  };
  const address = options.worker ? options.url : String(location.href).split("#")[0];
  const made = !options.worker && !/^(https?|file|ftp|chrome-extension):/.test(address) && within();
  let named = made ? made.child() : `${address} ${options.ordinal}`;
  let begun = made ? made.begun : options.start;
  let children = 0;
  here.child = () => `${named}/${++children}`;
  // The document's number is known when it is asked for, and told right after this.
  here.document = (numbers) => {
    const known = numbers[address];
    if (made || !known) return;
    named = `${address} ${known[0]}`;
    begun = here.begun = options.start + known[1];
    random = dice("random");
    secret = dice("secret");
  };
  here.begun = begun;

  // sfc32, seeded by the four words of a string's hash (cyrb128).
  const dice = (purpose) => {
    const text = `${options.seed} ${named} ${purpose}`;
    let [a, b, c, d] = [1779033703, 3144134277, 1013904242, 2773480762];
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      a = b ^ native.Math.imul(a ^ code, 597399067);
      b = c ^ native.Math.imul(b ^ code, 2869860233);
      c = d ^ native.Math.imul(c ^ code, 951274213);
      d = a ^ native.Math.imul(d ^ code, 2716044179);
    }
    const roll = () => {
      const sum = (a + b + d) | 0;
      d = (d + 1) | 0;
      a = b ^ (b >>> 9);
      b = (c + (c << 3)) | 0;
      c = (c << 21) | (c >>> 11);
      c = (c + sum) | 0;
      return sum >>> 0;
    };
    for (let round = 0; round < 15; round++) roll();
    return roll;
  };
  let random = dice("random");
  let secret = dice("secret");

  method(Math, "random", () => (random() * 2 ** 21 + (random() >>> 11)) / 2 ** 53);
  const Crypto = globalThis.Crypto;
  const fill = (view) => {
    const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
    for (let at = 0; at < bytes.length; at++) bytes[at] = secret();
    return bytes;
  };
  method(Crypto && Crypto.prototype, "getRandomValues", (self, given, original) => {
    const view = native.apply(original, self, given); // it says what is wrong with what it was given
    fill(view);
    return view;
  });
  method(Crypto && Crypto.prototype, "randomUUID", (self, given, original) => {
    native.apply(original, self, given);
    const bytes = fill(new Uint8Array(16));
    bytes[6] = (bytes[6] & 15) | 64;
    bytes[8] = (bytes[8] & 63) | 128;
    const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
  });

  // The clock: it stands but for what timers and frames were set to, and a little with each look, so that who looks at
  // nothing else comes to an end.
  const TICK = options.mode === "freeze" ? 0 : 0.005; // ms
  const FRAME = 1000 / 60;
  const clock = made && made.clock || {passed: 0};
  here.clock = clock;
  const passed = () => (clock.passed += TICK);
  const coarse = (time) => native.Math.floor(time * 10 + 1e-6) / 10;
  const now = () => native.Math.floor(begun + passed());
  const reach = (time) => {
    if (TICK && time > clock.passed) clock.passed = time;
  };
  here.now = now;

  // A clock that the program has set (`page.clock`) was put here before: it stays.
  if (globalThis.__pwClock) return;
  method(Date, "now", now);
  const plain = globalThis.Date;
  const told = new Proxy(plain, {
    construct: (target, given, as) => native.construct(target, given.length ? given : [now()], as === told ? target : as),
    apply: () => new plain(now()).toString(),
  });
  native.define(globalThis, "Date", {...native.describe(globalThis, "Date"), value: told});
  native.define(plain.prototype, "constructor", {...native.describe(plain.prototype, "constructor"), value: told});

  const Performance = globalThis.Performance;
  method(Performance && Performance.prototype, "now", () => coarse(passed()));
  getter(Performance && Performance.prototype, "timeOrigin", () => begun);

  const delayed = (name, again) => {
    const original = globalThis[name];
    if (!original) return;
    const run = (self, given) => {
      const [handler, delay, ...rest] = given;
      if (typeof handler !== "function") return native.apply(original, self, given);
      const length = native.Math.max(Number(delay) || 0, again ? 1 : 0);
      let due = clock.passed + length;
      const fired = function (...told) {
        reach(due);
        due += length;
        return native.apply(handler, this, told);
      };
      return native.apply(original, self, [fired, delay, ...rest]);
    };
    timer(name, original, run);
  };
  // Playwright's own waits are made of timers too, which it takes from the page: those do not move the page's clock.
  const OWN = /\bnew UtilityScript\b/;
  const timer = (name, original, run) => {
    const made = new Proxy(original, {
      apply: (_, self, given) => run(self, given),
      get: (target, property, self) => {
        if (property === "bind" && OWN.test(new native.Error().stack)) return (...given) => original.bind(...given);
        return Reflect.get(target, property, self);
      },
    });
    native.define(globalThis, name, {...native.describe(globalThis, name), value: made});
  };
  delayed("setTimeout", false);
  delayed("setInterval", true);
  if (globalThis.requestAnimationFrame) {
    const original = globalThis.requestAnimationFrame;
    let drawn = -1; // the frame that the clock has moved for
    timer("requestAnimationFrame", original, (self, given) => {
      const [handler] = given;
      if (typeof handler !== "function") return native.apply(original, self, given);
      return native.apply(original, self, [function (frame) {
        if (frame !== drawn) {
          drawn = frame;
          reach(clock.passed + FRAME);
        }
        return native.apply(handler, this, [coarse(clock.passed)]);
      }]);
    });
  }

  // What else tells the time.
  const shown = new WeakMap();
  getter(globalThis.Intl && Intl.DateTimeFormat.prototype, "format", (self, given, original) => {
    const format = native.apply(original, self, given);
    if (!shown.has(format)) {
      shown.set(format, wrapped(format, (that, args) => (
        native.apply(format, that, args[0] === undefined ? [now()] : args))));
    }
    return shown.get(format);
  });
  method(globalThis.Intl && Intl.DateTimeFormat.prototype, "formatToParts", (self, given, original) => (
    native.apply(original, self, given[0] === undefined ? [now()] : given)));
  if (globalThis.Temporal) {
    const {Instant, Now} = Temporal;
    const zoned = (given) => Instant.fromEpochMilliseconds(now()).toZonedDateTimeISO(
      given[0] === undefined ? Now.timeZoneId() : given[0]);
    method(Now, "instant", () => Instant.fromEpochMilliseconds(now()));
    method(Now, "zonedDateTimeISO", (self, given) => zoned(given));
    method(Now, "plainDateTimeISO", (self, given) => zoned(given).toPlainDateTime());
    method(Now, "plainDateISO", (self, given) => zoned(given).toPlainDate());
    method(Now, "plainTimeISO", (self, given) => zoned(given).toPlainTime());
  }
  const stamps = new WeakMap();
  getter(globalThis.Event && Event.prototype, "timeStamp", (self, given, original) => {
    native.apply(original, self, given);
    if (!stamps.has(self)) stamps.set(self, coarse(clock.passed));
    return stamps.get(self);
  });

  // How long things took is of this time only: pages that report it would never ask the same again.
  const MEASURED = /^(mark|measure)$/;
  for (const name of ["startTime", "duration"]) {
    getter(globalThis.PerformanceEntry && PerformanceEntry.prototype, name, (self, given, original) => (
      MEASURED.test(self.entryType) ? native.apply(original, self, given) : 0));
  }
  for (const type of ["PerformanceResourceTiming", "PerformanceNavigationTiming", "PerformancePaintTiming",
    "LargestContentfulPaint", "PerformanceEventTiming", "PerformanceElementTiming", "PerformanceLongTaskTiming"]) {
    const owner = globalThis[type] && globalThis[type].prototype;
    for (const name of owner ? Object.getOwnPropertyNames(owner) : []) {
      if (/(Start|End|Time|Complete|Interactive)$/.test(name)) getter(owner, name, () => 0);
      if (/^(transferSize|encodedBodySize)$/.test(name)) getter(owner, name, (self) => self.decodedBodySize);
    }
    told_as_seen(owner);
  }
  told_as_seen(globalThis.PerformanceEntry && PerformanceEntry.prototype);
  function told_as_seen(owner) {
    method(owner, "toJSON", (self, given, original) => {
      const found = native.apply(original, self, given);
      for (const name of Object.keys(found)) {
        if (typeof found[name] === "number" && typeof self[name] === "number") found[name] = self[name];
      }
      return found;
    });
  }
  const timing = globalThis.PerformanceTiming && PerformanceTiming.prototype;
  for (const name of timing ? Object.getOwnPropertyNames(timing) : []) {
    getter(timing, name, (self, given, original) => native.apply(original, self, given) && begun);
  }
  told_as_seen(timing);
  method(Performance && Performance.prototype, "mark", (self, given, original) => {
    const [name, more] = given;
    if (!given.length || (more && more.startTime !== undefined)) return native.apply(original, self, given);
    return native.apply(original, self, [name, {...more, startTime: coarse(passed())}]);
  });
  method(Performance && Performance.prototype, "measure", (self, given, original) => {
    const [name, from, to] = given;
    if (!given.length || to !== undefined) return native.apply(original, self, given);
    const more = from && typeof from === "object" ? from : {start: from === undefined ? 0 : from};
    if (more.end !== undefined || more.duration !== undefined) return native.apply(original, self, given);
    return native.apply(original, self, [name, {...more, end: coarse(passed())}]);
  });

  // The browser keeps cookies by its own clock, which has gone on since: they are set for as long as the page means.
  const Document = globalThis.Document;
  const cookie = Document && native.describe(Document.prototype, "cookie");
  if (cookie) {
    native.define(Document.prototype, "cookie", {...cookie, set: wrapped(cookie.set, (self, given, original) => {
      const [name, ...parts] = String(given[0]).split(";");
      const ages = parts.some((part) => /^\s*max-age\s*=/i.test(part));
      const kept = parts.map((part) => {
        const [, date] = /^\s*expires\s*=\s*(.*)$/i.exec(part) || [];
        const until = date === undefined ? NaN : native.parse(date);
        if (ages || Number.isNaN(until)) return part;
        return ` max-age=${native.Math.round((until - begun - clock.passed) / 1000)}`;
      });
      return native.apply(original, self, [[name, ...kept].join(";")]);
    })});
  }
  method(globalThis.CookieStore && CookieStore.prototype, "set", (self, given, original) => {
    const [first] = given;
    if (!first || typeof first !== "object" || typeof first.expires !== "number") {
      return native.apply(original, self, given);
    }
    const expires = first.expires - begun - clock.passed + native.now.call(native.Date);
    return native.apply(original, self, [{...first, expires}]);
  });
}
