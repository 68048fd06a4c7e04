import type { GroundingReport } from "./report.js";

export type * from "./report.js";

/** Members of events and results that may hold the response, or the report as metadata of the provider. */
const INSIDE = ["response", "message", "providerMetadata", "groundwire"];

/** Return the report in the rest of a stream, which is read to its end. */
export function groundingOf(stream: AsyncIterable<unknown>): Promise<GroundingReport | undefined>;
/** Return the report in a response, in an event of a stream, or in the metadata of a provider; undefined if there is none. */
export function groundingOf(value: unknown): GroundingReport | undefined;
export function groundingOf(value: unknown): Promise<GroundingReport | undefined> | GroundingReport | undefined {
  return isStream(value) ? lastOf(value) : reportIn(value);
}

/** A stream that passes every event on and keeps the report that it carries, in `grounding`. */
export class GroundingStream<T> implements AsyncIterable<T> {
  grounding: GroundingReport | undefined;
  readonly #events: AsyncIterable<T>;

  constructor(events: AsyncIterable<T>) {
    this.#events = events;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const event of this.#events) {
      this.grounding = reportIn(event) ?? this.grounding;
      yield event;
    }
  }
}

// Not GroundingReport: the AI SDK wants JSON with an index signature, which an interface lacks.
type Metadata = { groundwire: Record<string, any> } | undefined;

/**
 * The `metadataExtractor` for `createOpenAICompatible` of Vercel's AI SDK.
 * It keeps the report in `providerMetadata.groundwire`, where `groundingOf` finds it.
 */
export const metadataExtractor = {
  async extractMetadata({ parsedBody }: { parsedBody: unknown }): Promise<Metadata> {
    return metadata(reportIn(parsedBody));
  },

  createStreamExtractor() {
    let report: GroundingReport | undefined;
    return {
      processChunk(parsedChunk: unknown): void {
        report = reportIn(parsedChunk) ?? report;
      },
      buildMetadata: (): Metadata => metadata(report),
    };
  },
};

function metadata(report: GroundingReport | undefined): Metadata {
  return report && { groundwire: { ...report } };
}

async function lastOf(stream: AsyncIterable<unknown>): Promise<GroundingReport | undefined> {
  let report: GroundingReport | undefined;
  for await (const event of stream) report = reportIn(event) ?? report;
  return report;
}

function reportIn(value: unknown): GroundingReport | undefined {
  if (!isRecord(value)) return undefined;
  for (const found of [value.grounding, value]) if (isReport(found)) return found;
  for (const name of INSIDE) {
    const found = reportIn(value[name]);
    if (found) return found;
  }
  return undefined;
}

function isReport(value: unknown): value is GroundingReport {
  return isRecord(value) && "verdict" in value && "flags" in value && "version" in value;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function isStream(value: unknown): value is AsyncIterable<unknown> {
  return isRecord(value) && Symbol.asyncIterator in value;
}
