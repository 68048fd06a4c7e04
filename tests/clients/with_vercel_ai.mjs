// Vercel's AI SDK with an OpenAI-compatible provider: generateText, streamText, a tool.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText, tool } from "ai";
import { z } from "zod";

const provider = createOpenAICompatible({ name: "groundwire", baseURL: process.argv[2], apiKey: "sk-test", includeUsage: true });
const ask = {
  model: provider("gpt-4o-mini"),
  system: "The sky is blue on a clear day. Grass is green.",
  prompt: "Which colour is the sky?",
};
const paint = tool({ description: "Paints", inputSchema: z.object({ colour: z.string() }) });

const whole = await generateText(ask);
const stream = streamText(ask);
let streamed = "";
for await (const text of stream.textStream) streamed += text;
const called = await generateText({ ...ask, tools: { paint } });
console.log(
  JSON.stringify({
    whole: whole.text,
    usage: whole.usage.totalTokens,
    streamed,
    stream_usage: (await stream.usage).totalTokens,
    reason: await stream.finishReason,
    tools: called.toolCalls[0].input,
    grounding: whole.response.body?.grounding ? "response.body" : "",
  }),
);
