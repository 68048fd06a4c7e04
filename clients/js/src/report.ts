// Generated from docs/report.schema.json by scripts/types.mjs.

/**
 * All verdicts on one answer and their aggregate.
 *
 * `score` is supported / checked, null if nothing was checked. A pending report has only the members up to `warnings`.
 */
export interface GroundingReport {
  id: string;
  version: 1;
  status: "complete" | "partial" | "pending" | "deferred" | "skipped" | "failed";
  verdict: "grounded" | "partially_grounded" | "ungrounded" | "not_applicable" | "not_checked";
  score: number | null;
  offset_unit: "codepoint" | "utf16";
  flags: (
    | "unsupported_claims"
    | "contradicted_claims"
    | "numeric_mismatch"
    | "misattributed"
    | "quote_not_found"
    | "quotes_all_rejected"
    | "evidence_schema_violation"
    | "unknown_citation"
    | "budget_gap"
    | "inconsistent_with_history"
    | "low_confidence"
    | "high_risk"
    | "context_truncated"
    | "answer_truncated"
    | "verifier_degraded"
  )[];
  warnings: string[];
  coverage?: ReportCoverage;
  confidence?: ReportConfidence;
  risk?: ReportRisk;
  quality?: number;
  sources?: ReportSource[];
  prompt?: ReportPrompt;
  choices?: ReportChoice[];
  consistency?: ReportConsistency;
  quotes?: ReportQuotes;
  schema?: ReportSchema;
  numeric?: ReportNumbers;
  cache?: ReportCache;
  correction?: ReportCorrection;
  self_consistency?: ReportSelfConsistency;
  stages?: ReportStage[];
  timing_ms?: {
    [k: string]: number;
  };
  degraded?: DegradedVerifier[];
  attempts?: ReportAttempt[];
  config?: string;
}
/**
 * The extent of verification: counts of claims, and shares of the answer's and the context's characters.
 */
export interface ReportCoverage {
  claims_total: number;
  claims_checked: number;
  claims_skipped: number;
  answer_examined: number;
  context_examined: number;
}
/**
 * The confidence in the report, its level, and the recommendation that follows from it.
 */
export interface ReportConfidence {
  score: number;
  level: "very_low" | "low" | "medium" | "high" | "very_high";
  recommendation: string;
  parts: ConfidenceComponents;
}
/**
 * The four components of a confidence; null where one is not known.
 */
export interface ConfidenceComponents {
  retrieval: number | null;
  source: number | null;
  extraction: number | null;
  consistency: number | null;
}
/**
 * The risk of acting on the answer, and its factors, the heaviest first.
 */
export interface ReportRisk {
  score: number;
  level: "low" | "medium" | "high" | "critical";
  factors: string[];
  recommendation: string;
}
/**
 * A source that was used: its kind, position and size, without its text.
 *
 * `label` is the id or name that the request gives it; title and URL are from the request, too.
 */
export interface ReportSource {
  id: string;
  label?: string;
  kind: "source" | "document" | "tool" | "system" | "user" | "facts";
  message_index?: number;
  part_index?: number;
  title?: string;
  url?: string;
  chars: number;
  sha256: string;
}
/**
 * The number of prompt tokens that the model server reports (null: none), and the least possible number.
 */
export interface ReportPrompt {
  reported_tokens: number | null;
  at_least_tokens: number;
  truncated: boolean;
}
/**
 * The verdicts on one choice; a summary has no claims. `score` is supported / checked, null if none was checked.
 */
export interface ReportChoice {
  index: number;
  verdict: "grounded" | "partially_grounded" | "ungrounded" | "not_applicable" | "not_checked";
  score: number | null;
  claims?: ReportClaim[];
}
/**
 * One assertion of the answer with its verdict, at the half-open span from `start` to `end` of the answer.
 *
 * `pointer` is the JSON pointer of its field, if the answer is JSON. `score` is the strength of the support and
 * `confidence` that of the verdict; both are null if the claim was not checked, with the reason in `skip_reason` if it
 * asserts nothing. `flags` are those that it raises in addition to its label. `budget` is present if it was measured.
 */
export interface ReportClaim {
  id: string;
  text: string;
  start: number;
  end: number;
  pointer?: string;
  kind: "statement" | "numeric" | "quote" | "table_row" | "field" | "heading" | "code";
  label: "supported" | "contradicted" | "unsupported" | "not_checked";
  score: number | null;
  confidence: number | null;
  confidence_parts?: ConfidenceComponents;
  stated_confidence: number;
  verifier: string | null;
  method: string;
  reason: string;
  skip_reason?: string;
  flags?: (
    | "unsupported_claims"
    | "contradicted_claims"
    | "numeric_mismatch"
    | "misattributed"
    | "quote_not_found"
    | "quotes_all_rejected"
    | "evidence_schema_violation"
    | "unknown_citation"
    | "budget_gap"
    | "inconsistent_with_history"
    | "low_confidence"
    | "high_risk"
    | "context_truncated"
    | "answer_truncated"
    | "verifier_degraded"
  )[];
  citations: ReportCitation[];
  budget?: ClaimBudget;
}
/**
 * A piece of evidence: a half-open span of the source's original text, that text, and the quality of the match.
 */
export interface ReportCitation {
  source: string;
  start: number;
  end: number;
  text: string;
  score: number;
  match: "exact" | "fuzzy" | "numeric" | "semantic" | "inference" | "sql" | "model";
}
/**
 * The information budget of a claim, in bits.
 *
 * `p1` is the probability of the claim with the context and `p0` without the cited evidence; null if not known.
 * `budget_gap` is positive exactly when `p1` is below `target`. Bits are clipped to `resolution`. `decorative` are
 * the indices of citations that change nothing. `missing` is the cause if the status is "unavailable".
 */
export interface ClaimBudget {
  p0: number | null;
  p1: number | null;
  required_bits: number | null;
  observed_bits: number | null;
  budget_gap: number | null;
  status:
    | "supported"
    | "contradicted"
    | "not_entailed"
    | "prior_leak"
    | "decorative_citation"
    | "ambiguous"
    | "unknown_citation"
    | "no_context"
    | "unavailable";
  target: number;
  resolution: number | null;
  /**
   * @minItems 2
   * @maxItems 2
   */
  p1_interval?: [number, number];
  /**
   * @minItems 2
   * @maxItems 2
   */
  p0_interval?: [number, number];
  method?: "logprobs" | "samples" | "service" | "verifier";
  decorative?: number[];
  missing?:
    | "no_logprobs"
    | "misaligned"
    | "no_verdict"
    | "no_samples"
    | "timeout"
    | "rate_limited"
    | "unreachable"
    | "overload"
    | "error";
}
/**
 * The agreement of the answer with earlier answers about its subject; null if there are none to compare.
 */
export interface ReportConsistency {
  score: number | null;
  contradictions: ReportContradiction[];
}
/**
 * A contradiction between a claim and the answer `exchange`, given at Unix time `at`, about the same subject.
 */
export interface ReportContradiction {
  choice: number;
  claim: string;
  statement: string;
  earlier: string;
  exchange: string;
  at: number;
  kind: "entity" | "temporal" | "semantic";
  severity: "low" | "medium" | "high" | "critical";
  reason: string;
}
/**
 * The counts of quotations: extracted, found in a source, and rejected in total and by field.
 */
export interface ReportQuotes {
  extracted: number;
  validated: number;
  rejected: number;
  rejected_by_field: {
    [k: string]: number;
  };
}
/**
 * The violations of the schema of a JSON answer.
 */
export interface ReportSchema {
  violations: SchemaViolation[];
}
/**
 * A place of a JSON answer that violates its schema.
 */
export interface SchemaViolation {
  field: string;
  index?: number;
  expected: string;
  found: string;
}
/**
 * The numbers of the answer, one by one; `unverified_claims` were checked and are not supported.
 */
export interface ReportNumbers {
  total_claims: number;
  verified_claims: number;
  unverified_claims: number;
  not_checked: number;
  confidence_adjustment: number;
  flagged: ReportFlaggedNumber[];
}
/**
 * A number of a claim that was checked and is not supported; the value of a date is its ordinal day.
 */
export interface ReportFlaggedNumber {
  choice: number;
  id: string;
  text: string;
  type: string;
  value: number;
}
/**
 * The verdicts taken from the cache and newly computed, and the age in seconds of the oldest cached one.
 */
export interface ReportCache {
  hits: number;
  misses: number;
  oldest_s: number | null;
}
/**
 * A second answer, requested because the first one violates its schema; while pending, only its status.
 */
export interface ReportCorrection {
  status: "pending" | "complete" | "failed";
  answer?: string | null;
  violations?: SchemaViolation[];
  usage?: TokenUsage;
  reason?: string;
}
/**
 * The tokens of extra calls, as far as the server reports them.
 */
export interface TokenUsage {
  calls?: number;
  prompt_tokens: number;
  completion_tokens: number;
}
/**
 * The agreement of further answers to the same request with this one; while pending, only the parameters.
 */
export interface ReportSelfConsistency {
  status: "pending" | "complete" | "failed";
  samples: number;
  temperatures: number[];
  answered?: number;
  risk?: number | null;
  claims?: ReportSampledClaim[];
  usage?: TokenUsage;
  reasons?: string[];
}
/**
 * Agreement of the samples with one claim: 1 the same, ½ unrelated, 0 otherwise, null without a sample.
 */
export interface ReportSampledClaim {
  choice: number;
  id: string;
  votes: (number | null)[];
  variance: number | null;
}
/**
 * The number of claims that reached one stage of verification, and its cost.
 */
export interface ReportStage {
  stage: "deterministic" | "embedded" | "judge" | "model";
  claims: number;
  calls: number;
  prompt_tokens: number;
  completion_tokens: number;
  ms: number;
}
/**
 * A verifier that could not do all of its work, and the reason.
 */
export interface DegradedVerifier {
  verifier: string;
  reason: string;
}
/**
 * An upstream that was tried, listed if there was more than one; the last one answered.
 */
export interface ReportAttempt {
  upstream: string;
  model: string;
  outcome: string;
}
