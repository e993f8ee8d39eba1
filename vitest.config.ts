import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The files that take longest by far; they are small, and would otherwise come last and keep one core waiting. */
const LONGEST = /test\/(faults\/cuts|package\/installed|scenarios\/)/;

/** The longest first, so that all cores are busy to the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification) => LONGEST.test(moduleId);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    setupFiles: ["test/support/input-code.setup.ts"],
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 10_000,
    hookTimeout: 15_000,
    sequence: { sequencer: LongestFirst },
    reporters: process.env.CI ? ["default", "json"] : ["default"],
    outputFile: { json: ".ci/report.json" },
  },
});
