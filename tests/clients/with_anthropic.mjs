// Anthropic's SDK for Node: create, its stream, .stream(), tools.
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: process.argv[2].replace(/\/v1$/, ""), apiKey: "sk-test" });
const ask = {
  model: "claude-sonnet-4-5",
  max_tokens: 100,
  system: "The sky is blue on a clear day. Grass is green.",
  messages: [{ role: "user", content: "Which colour is the sky?" }],
};
const tools = [{ name: "paint", input_schema: { type: "object", properties: {} } }];

const whole = await client.messages.create(ask);
let streamed = "";
let last;
for await (const event of await client.messages.create({ ...ask, stream: true })) {
  if (event.type === "content_block_delta") streamed += event.delta.text;
  if (event.type === "message_delta") last = event;
}
const helper = await client.messages.stream(ask).finalMessage();
const called = await client.messages.create({ ...ask, tools });
const places = { body: whole, "last delta": last, "summed up": helper };
console.log(
  JSON.stringify({
    whole: whole.content[0].text,
    streamed,
    helper: [helper.content[0].text, helper.stop_reason, helper.usage.output_tokens],
    tools: called.content[0].input,
    grounding: Object.keys(places).filter((place) => places[place].grounding).join(" and "),
  }),
);
