// What a page is at one moment: its document as a text with what stands in its fields, and its storages. Runs in a world
// of its own beside the page's scripts, which can neither see nor change it. A text is only sent if it is not the one
// that was seen last, by its hash, and not too long to be sent.
//
// Left out, as they are not the page's doing or move without it: scroll positions, the caret and the focus, layout,
// styles, nonces, comments, and the random part of blob addresses, which stand by their order.
(() => {
  const BLOB = /blob:[^\s"'()<>]+/g;

  function hash(text) {
    let a = 0x9e3779b9, b = 0x85ebca6b, c = 0xc2b2ae35, d = 0x27d4eb2f;
    for (let i = 0; i < text.length; i++) {
      const k = text.charCodeAt(i);
      a = Math.imul(a ^ k, 0x85ebca77);
      b = Math.imul(b ^ (k + a), 0xc2b2ae3d);
      c = Math.imul(c ^ (k + b), 0x27d4eb2f);
      d = Math.imul(d ^ (k + c), 0x165667b1);
    }
    return [a, b, c, d].map(n => (n >>> 0).toString(16).padStart(8, '0')).join('');
  }

  function text() {
    const out = [], blobs = new Map(), secrets = [];
    let elements = 0;
    const steady = value => value.includes('blob:') ? value.replace(BLOB, found => {
      if (!blobs.has(found)) blobs.set(found, 'blob:' + (blobs.size + 1));
      return blobs.get(found);
    }) : value;

    function field(node, tag) {
      if (tag === 'INPUT') {
        const type = node.type;
        if (type === 'checkbox' || type === 'radio') return (node.checked ? ' :checked' : '') + (node.indeterminate ? ' :mixed' : '');
        if (type === 'password') {
          if (node.value) secrets.push(node.value);
          return node.value ? ' :value="***"' : '';
        }
        return node.value ? ' :value=' + JSON.stringify(steady(node.value)) : '';
      }
      if (tag === 'TEXTAREA') return node.value ? ' :value=' + JSON.stringify(node.value) : '';
      if (tag === 'OPTION') return node.selected ? ' :selected' : '';
      return '';
    }

    function element(node) {
      elements++;
      const tag = node.tagName, hidden = tag === 'INPUT' && node.type === 'password';
      let line = '<' + node.localName;
      for (const {name, value} of node.attributes) {
        if (name === 'nonce' || (name === 'style' && !value)) continue;  // Playwright's screenshots leave an empty style
        line += ' ' + name + '=' + JSON.stringify(hidden && name === 'value' ? '***' : steady(value));
      }
      out.push(line + field(node, tag) + '>');
      if (node.shadowRoot) {
        out.push('#shadow');
        children(node.shadowRoot);
        out.push('/#shadow');
      }
      if (tag === 'IFRAME' || tag === 'FRAME') {
        let inner = null;
        try { inner = node.contentDocument; } catch (e) {}
        if (inner) {
          out.push('#document');
          children(inner);
          out.push('/#document');
        }
      } else if (tag === 'TEMPLATE') {
        children(node.content);
      }
      children(node);
      out.push('/' + node.localName);
    }

    function children(parent) {
      for (let node = parent.firstChild; node; node = node.nextSibling) {
        if (node.nodeType === 1) element(node);
        else if (node.nodeType === 3 || node.nodeType === 4) {
          if (node.data.trim()) out.push(JSON.stringify(steady(node.data)));
        }
      }
    }

    children(document);
    return {text: out.join('\n'), elements, secrets};
  }

  function items(storage) {
    const found = {};
    for (let i = 0; i < storage.length; i++) {
      const key = storage.key(i);
      found[key] = storage.getItem(key);
    }
    return found;
  }

  function storages(win, into, seen) {
    try {
      const origin = win.location.origin;
      if (!seen.has(origin)) {
        seen.add(origin);
        const local = items(win.localStorage), session = items(win.sessionStorage);
        if (Object.keys(local).length) (into[origin] ||= {}).local = local;
        if (Object.keys(session).length) (into[origin] ||= {}).session = session;
      }
    } catch (e) {}  // a document that has no storage: data:, a sandbox
    for (let i = 0; i < win.frames.length; i++) storages(win.frames[i], into, seen);
  }

  // Names and versions only: a connection of ours would be in the way of the page's own upgrades.
  async function databases() {
    const found = {};
    try {
      for (const {name, version} of await indexedDB.databases()) found[name] = version;
    } catch (e) {}  // a document that has none
    return found;
  }

  // Storages list their keys in an order of their own.
  const sorted = (key, each) => each && typeof each === 'object'
    ? Object.fromEntries(Object.keys(each).sort().map(name => [name, each[name]])) : each;

  function page(seen, longest) {
    const {text: dom, elements, secrets} = text(), h = hash(dom);
    const loading = document.readyState === 'loading';
    return {h, elements, url: location.href, loading, secrets,
      dom: h === seen || dom.length > longest ? null : dom, s: '', storage: null};
  }

  async function whole(seen, longest, stored) {
    const found = page(seen, longest), into = {};
    storages(globalThis, into, new Set());
    if (globalThis.indexedDB && location.origin !== 'null') {
      const kept = await databases();
      if (Object.keys(kept).length) (into[location.origin] ||= {}).databases = kept;
    }
    const kept = JSON.stringify(into, sorted), s = hash(kept);
    return {...found, s, storage: s === stored ? null : kept};
  }

  globalThis.lockstep = {page, whole};
})()
