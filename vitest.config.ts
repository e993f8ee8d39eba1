import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 10_000,
    hookTimeout: 15_000,
    reporters: process.env.CI ? ["default", "json"] : ["default"],
    outputFile: { json: ".ci/report.json" },
  },
});
