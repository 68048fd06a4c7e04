// Writes src/report.ts from docs/report.schema.json; with --check it only fails if the file is not current.
import { readFileSync, writeFileSync } from "node:fs";
import { compile } from "json-schema-to-typescript";

const schema = JSON.parse(readFileSync(new URL("../../../docs/report.schema.json", import.meta.url), "utf8"));
for (const type of [schema, ...Object.values(schema.$defs)]) {
  for (const member of Object.values(type.properties ?? {})) delete member.title; // else each becomes a type
}
const text = await compile(schema, "GroundingReport", {
  additionalProperties: false,
  bannerComment: "// Generated from docs/report.schema.json by scripts/types.mjs.",
  printWidth: 120,
});
const file = new URL("../src/report.ts", import.meta.url);
if (!process.argv.includes("--check")) writeFileSync(file, text);
else if (readFileSync(file, "utf8") !== text) throw new Error("src/report.ts is not current: npm run types");
