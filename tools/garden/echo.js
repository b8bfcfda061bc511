// SPDX-License-Identifier: MIT
// node's http: answers what it understood, in a field. Usage: node echo.js PORT
const http = require("http");

const server = http.createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const body = Buffer.concat(parts).toString("latin1");
    response.setHeader("X-Saw", encodeURIComponent(`${request.method} ${request.url} ${body}`));
    response.end();
  });
});
server.listen(Number(process.argv[2]), "127.0.0.1");
