// openai-node: create, its stream, .stream(), tools, embeddings.
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "sk-test" });
const ask = {
  model: "gpt-4o-mini",
  messages: [
    { role: "system", content: "The sky is blue on a clear day. Grass is green." },
    { role: "user", content: "Which colour is the sky?" },
  ],
};
const tools = [{ type: "function", function: { name: "paint", parameters: { type: "object", properties: {} } } }];

const whole = await client.chat.completions.create(ask);
const stream = await client.chat.completions.create({ ...ask, stream: true, stream_options: { include_usage: true } });
let streamed = "";
let last;
for await (const chunk of stream) {
  streamed += chunk.choices[0]?.delta?.content ?? "";
  last = chunk;
}
const helper = await client.chat.completions.stream(ask).finalChatCompletion();
const called = await client.chat.completions.create({ ...ask, tools });
const embeddings = await client.embeddings.create({ model: "m", input: ["a", "b"] });
console.log(
  JSON.stringify({
    whole: whole.choices[0].message.content,
    streamed,
    stream_usage: last.usage?.total_tokens ?? null,
    helper: helper.choices[0].message.content,
    tools: called.choices[0].message.tool_calls[0].function.arguments,
    embeddings: embeddings.data.length,
    grounding: [whole.grounding && "body", last.grounding && "last event"].filter(Boolean).join(" and "),
  }),
);
