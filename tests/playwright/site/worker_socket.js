const socket = new WebSocket(`ws://${location.host}/talk`, ["v1.chat"]);
const messages = [];
socket.binaryType = "arraybuffer";
socket.onopen = () => { socket.send("hello"); socket.send(new Uint8Array([4, 5]).buffer); };
socket.onmessage = (event) => {
  messages.push(typeof event.data === "string" ? event.data : [...new Uint8Array(event.data)]);
};
socket.onclose = (event) => postMessage([socket.protocol, messages, event.code, event.reason, event.wasClean]);
