/**
 * A server process whose stdin and stdout lead to a port of 127.0.0.1, byte for byte. It exits with 0 when the other end
 * closes, and with 1 when it breaks.
 */

import { connect } from "node:net";

const socket = connect({ host: "127.0.0.1", port: Number(process.argv[2]), noDelay: true });
process.stdin.pipe(socket);
socket.on("data", (bytes) => process.stdout.write(bytes));
socket.on("end", () => process.stdout.write("", () => process.exit(0)));
socket.on("error", () => process.exit(1));
process.stdout.on("error", () => process.exit(1));
