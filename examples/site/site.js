// SPDX-License-Identifier: MIT
"use strict";
const find = (id) => document.getElementById(id);

// The browser connects again by itself, and says which event it had last.
const events = new EventSource("/ticks");
events.onmessage = (event) => {
  find("ticks").textContent = event.data;
  find("ticks").dataset.count++;
};

find("file").onchange = async (event) => {
  const answer = await fetch("/upload", { method: "POST", body: event.target.files[0] });
  find("answer").textContent = await answer.text();
};

const socket = new WebSocket(`ws://${location.host}/echo`);
socket.onopen = () => { find("send").disabled = false; };
socket.onclose = () => { find("send").disabled = true; };
socket.onmessage = (event) => { find("echo").textContent = event.data; };
find("send").onclick = () => socket.send(find("text").value);
