// SPDX-License-Identifier: MIT
// node's http: answers what it understood, in a field. Usage: node echo.js PORT
const http = require("http");

const server = http.createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const body = Buffer.concat(parts).toString("latin1");
    const text = `${request.method} ${request.url} ${body}`;
    const hex = (letter) => "%" + letter.charCodeAt(0).toString(16).padStart(2, "0");
    response.setHeader("X-Saw", text.replace(/[^A-Za-z0-9]/g, hex));
    response.end();
  });
});
server.listen(Number(process.argv[2]), "127.0.0.1");
