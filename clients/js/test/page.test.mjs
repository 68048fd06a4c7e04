// The JavaScript examples of README.md and docs/integrations.md print what their comments promise.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";

for (const page of ["../README.md", "../../../docs/integrations.md"]) {
  const text = readFileSync(new URL(page, import.meta.url), "utf8");
  const examples = [...text.matchAll(/^```js\n(.*?)^```/gms)];
  test(page, () => assert(examples.length > 0));
  examples.forEach(([, example], index) => test(`${page}, example ${index + 1}`, () => {
    const file = new URL(`../build/example.mjs`, import.meta.url);
    writeFileSync(file, example.replaceAll("http://127.0.0.1:8080/v1", process.env.GROUNDWIRE_URL)
      .replaceAll("http://127.0.0.1:8080", process.env.GROUNDWIRE_URL.replace("/v1", "")));
    const shown = execFileSync(process.execPath, [file.pathname], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    const promised = [...example.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)].map(([, comment]) => comment);
    assert.deepEqual(shown.trim().split(/\s+/), promised.join(" ").split(" "));
  }));
}
