// openai-node on Responses: create, its stream, .stream(), tools.
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "sk-test" });
const ask = {
  model: "gpt-4o-mini",
  instructions: "The sky is blue on a clear day. Grass is green.",
  input: "Which colour is the sky?",
};
const tools = [{ type: "function", name: "paint", parameters: { type: "object", properties: {} }, strict: false }];

const whole = await client.responses.create(ask);
let streamed = "";
let last;
for await (const event of await client.responses.create({ ...ask, stream: true })) {
  if (event.type === "response.output_text.delta") streamed += event.delta;
  last = event;
}
const helper = await client.responses.stream(ask).finalResponse();
const called = await client.responses.create({ ...ask, tools });
const places = { body: whole, "last event": last.response, "summed up": helper };
console.log(
  JSON.stringify({
    whole: whole.output_text,
    streamed,
    helper: helper.output_text,
    tools: called.output[0].arguments,
    grounding: Object.keys(places).filter((place) => places[place].grounding).join(" and "),
  }),
);
