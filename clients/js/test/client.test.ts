// The package with real SDKs, behind a proxy in front of the demo model: GROUNDWIRE_URL is its base URL.
import assert from "node:assert/strict";
import { test } from "node:test";

import Anthropic from "@anthropic-ai/sdk";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText } from "ai";
import { GroundingStream, groundingOf, metadataExtractor, type GroundingReport } from "groundwire";
import OpenAI from "openai";

const baseURL = process.env.GROUNDWIRE_URL;
assert(baseURL, "GROUNDWIRE_URL is not set");

const model = "groundwire-demo";
const system = `Answer from the documents and cite them like [1].
<document id="1">Hotel costs are reimbursed up to 180 euros per night.</document>
<document id="2">Employees may work from abroad for at most 20 days per calendar year. A request must be approved by the
line manager at least two weeks before departure.</document>`;
const prompt = "How long may I work from abroad, and what does the company pay for a hotel?";
const answer = /^You may work from abroad for at most 20 days/;

function check(report: GroundingReport | undefined): void {
  assert.equal(report?.status, "complete");
  assert.equal(report.verdict, "grounded");
  const labels = report.choices?.flatMap((choice) => choice.claims?.map((claim) => claim.label));
  assert.deepEqual(labels, ["supported", "supported", "supported"]);
}

test("openai", async (t) => {
  const client = new OpenAI({ baseURL, apiKey: "none" });
  const messages = [{ role: "system" as const, content: system }, { role: "user" as const, content: prompt }];
  const begin = () => client.chat.completions.create({ model, messages, stream: true });

  await t.test("a response", async () => check(groundingOf(await client.chat.completions.create({ model, messages }))));

  await t.test("the rest of a stream", async () => check(await groundingOf(await begin())));

  await t.test("the last chunk", async () => {
    const found = [];
    for await (const chunk of await begin()) found.push(groundingOf(chunk));
    check(found.pop());
    assert(found.length > 20 && found.every((report) => report === undefined));
  });

  await t.test("a stream that keeps its report", async () => {
    const stream = new GroundingStream(await begin());
    let text = "";
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
    assert.match(text, answer);
    check(stream.grounding);
  });

  await t.test("the helper .stream()", async () => {
    const stream = new GroundingStream(client.chat.completions.stream({ model, messages }));
    for await (const chunk of stream) assert.equal(chunk.model, model);
    check(stream.grounding);
  });
});

test("anthropic", async (t) => {
  const client = new Anthropic({ baseURL: baseURL.replace(/\/v1$/, ""), apiKey: "none" });
  const ask = { model, max_tokens: 500, system, messages: [{ role: "user" as const, content: prompt }] };

  await t.test("a message", async () => check(groundingOf(await client.messages.create(ask))));

  await t.test("the rest of a stream", async () => check(await groundingOf(await client.messages.create({ ...ask, stream: true }))));

  await t.test("the helper .stream()", async () => {
    const stream = new GroundingStream(client.messages.stream(ask));
    let text = "";
    for await (const event of stream) {
      if (event.type === "content_block_delta" && event.delta.type === "text_delta") text += event.delta.text;
    }
    assert.match(text, answer);
    check(stream.grounding);
  });
});

test("Vercel's AI SDK", async (t) => {
  const provider = createOpenAICompatible({ name: "groundwire", baseURL, metadataExtractor });
  const ask = { model: provider(model), system, prompt };

  await t.test("generateText", async () => {
    const result = await generateText(ask);
    assert.match(result.text, answer);
    check(groundingOf(result));
    check(groundingOf(result.providerMetadata));
  });

  await t.test("streamText", async () => {
    const result = streamText(ask);
    let text = "";
    for await (const piece of result.textStream) text += piece;
    assert.match(text, answer);
    check(groundingOf(await result.providerMetadata));
  });

  await t.test("a provider without reports has no metadata", async () => {
    assert.equal(await metadataExtractor.extractMetadata({ parsedBody: { choices: [] } }), undefined);
    assert.equal(metadataExtractor.createStreamExtractor().buildMetadata(), undefined);
  });
});

test("a value without a report", async () => {
  for (const value of [undefined, null, "text", {}, { grounding: null }, { response: { id: "x" } }]) {
    assert.equal(groundingOf(value), undefined);
  }
  assert.equal(await groundingOf((async function* () { yield { choices: [] }; })()), undefined);
});

test("ending a loop early closes the stream", async () => {
  let closed = false;
  async function* events() {
    try {
      yield 1;
      yield 2;
    } finally {
      closed = true;
    }
  }
  for await (const event of new GroundingStream(events())) {
    assert.equal(event, 1);
    break;
  }
  assert(closed);
});
