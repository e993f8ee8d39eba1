/** The peer of the memory scenarios: a function in this process, the same for every contender. */

export function memoryHandler() {
  return ({ params }) => ({
    resultType: "complete",
    content: [{ type: "text", text: params.arguments.text }],
  });
}
