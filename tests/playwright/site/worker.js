importScripts("/imported.js");
fetch("/answer?worker").then((answer) => answer.text()).then((value) => postMessage([imported, value]));
