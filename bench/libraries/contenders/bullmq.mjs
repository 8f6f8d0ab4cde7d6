// BullMQ, for comparison with what isn't Python: node bullmq.mjs push N | work
import { writeFileSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { Queue, Worker } from "bullmq";

const { hostname: host, port } = new URL(process.env.REDIS);
const connection = { host, port: Number(port), maxRetriesPerRequest: null };

if (process.argv[2] === "push") {
  const queue = new Queue("noop", { connection });
  const count = Number(process.argv[3]);
  for (let start = 0; start < count; start += 1000) {
    const size = Math.min(1000, count - start);
    await queue.addBulk(Array.from({ length: size }, (_, index) => ({ name: "noop", data: { number: start + index } })));
  }
  await queue.close();
} else {
  const jobs = Number(process.env.JOBS);
  let count = 0;
  let began = 0;
  const worker = new Worker(
    "noop",
    async () => {
      count += 1;
      if (count === 1) began = performance.now();
      else if (count === jobs) writeFileSync(process.env.DONE, String((performance.now() - began) / 1000));
    },
    { connection, concurrency: Number(process.env.CONCURRENCY) },
  );
  process.on("SIGTERM", async () => { await worker.close(); process.exit(0); });
}
