/** The bench server over stdio: answers of one chunk leave in one write. */

import { answer } from "./answers.mjs";

let rest = [];
process.stdin.on("data", (chunk) => {
  let start = 0;
  let out = "";
  let isReading = true;
  const send = (text) => {
    if (isReading) out += `${text}\n`;
    else process.stdout.write(`${text}\n`);
  };
  for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
    rest.push(chunk.subarray(start, end));
    answer(JSON.parse(Buffer.concat(rest).toString()), send);
    rest = [];
    start = end + 1;
  }
  rest.push(chunk.subarray(start));
  isReading = false;
  if (out !== "") process.stdout.write(out);
});
process.stdin.on("end", () => process.exit(0));
