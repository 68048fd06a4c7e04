// ollama-js: chat, generate, streams, embeddings, the list, errors.
import { Ollama } from "ollama";

const client = new Ollama({ host: process.argv[2].replace(/\/v1$/, "") });
const messages = [
  { role: "system", content: "The sky is blue on a clear day. Grass is green." },
  { role: "user", content: "Which colour is the sky?" },
];
const ask = { model: "llama3.2", messages };

const whole = await client.chat({ ...ask, think: true });
const generated = await client.generate({ model: "llama3.2", prompt: "Which colour?", system: messages[0].content });
let streamed = "";
let last;
for await (const part of await client.chat({ ...ask, stream: true })) {
  streamed += part.message.content;
  last = part;
}
const pulled = [];
for await (const progress of await client.pull({ model: "llama3.2", stream: true })) pulled.push(progress.status);
const refused = await client.chat({ model: "missing", messages }).catch((error) => [error.status_code, error.message]);
const embedded = await client.embed({ model: "llama3.2", input: ["a", "b"] });
const listed = await client.list();
const places = { body: whole, "generated body": generated, "last line": last };
console.log(
  JSON.stringify({
    whole: [whole.message.content, whole.message.thinking, whole.done_reason],
    generated: generated.response,
    streamed: [streamed, last.done_reason, last.eval_count],
    embedded: embedded.embeddings.length,
    listed: listed.models.map((model) => model.name),
    pulled,
    refused,
    grounding: Object.keys(places).filter((place) => "grounding" in places[place]).join(" and "),
  }),
);
