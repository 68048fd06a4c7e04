// Vercel's AI SDK on Responses and Messages: generateText and streamText.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, streamText } from "ai";

const settings = { baseURL: process.argv[2], apiKey: "sk-test" };
const models = {
  responses: createOpenAI(settings).responses("gpt-4o-mini"),
  messages: createAnthropic(settings)("claude-sonnet-4-5"),
};
const ask = { system: "The sky is blue on a clear day. Grass is green.", prompt: "Which colour is the sky?" };
const got = {};
for (const [name, model] of Object.entries(models)) {
  const whole = await generateText({ model, ...ask });
  const stream = streamText({ model, ...ask });
  let streamed = "";
  for await (const piece of stream.textStream) streamed += piece;
  const usage = await stream.usage;
  got[name] = [whole.text, streamed, await stream.finishReason, usage.outputTokens];
  if (whole.response.body?.grounding) got.grounding = "response.body";
}
console.log(JSON.stringify(got));
