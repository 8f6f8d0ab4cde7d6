/** A queue: what waits, how fast it is, and its settings. */

import { button, json } from '../actions.js';
import { written } from '../api.js';
import { count, duration, number, percent, rate } from '../format.js';
import { html, nothing } from '../lit-html.js';
import { badge, facts, head, jobsLink, list, meter, optional, payload, section, when } from '../parts.js';
import { rates } from './limits.js';
import { charts } from './overview.js';
import { failing, pause } from './queues.js';

export const title = (/** @type {import('../visit.js').Visit} */ visit) => visit.param;

const STATES = /** @type {const} */ ([
	['available', 'Waiting'],
	['active', 'Active'],
	['scheduled', 'Scheduled'],
	['retryable', 'Retrying'],
	['discarded', 'Dead letters'],
	['completed', 'Completed'],
]);

/** @type {import('../app.js').PageModule['open']} */
export function open(visit) {
	const of = visit.param;
	const queue = visit.source(() => ({ call: 'GET /admin/queues/{queue}', of }), { every: 2_000 });
	const history = visit.source(() => ({ call: 'GET /queues/{queue}/stats/history', of, query: { period: '1m' } }), {
		every: 15_000,
	});
	const priorities = visit.source(() => ({ call: 'GET /queues/{queue}/priority-stats', of }), { every: 10_000 });

	return () => {
		const now = queue.read.value.value;
		return html`${head(of, queue, { cli: ['queues', 'get', of], actions: now ? actions(now, queue.reload) : '' })}
			${when(
				queue,
				(found) => html`<section>
					${facts([
						['State', badge(found.status)],
						...STATES.map(
							([state, name]) =>
								/** @type {const} */ ([name, jobsLink(`state:${state} queue:${of}`, number(found.counts[state]))]),
						),
						['Oldest waits', duration(found.oldest_available_age_ms)],
						['Pushed', rate(found.throughput.enqueued_per_minute / 60)],
						['Done', rate(found.throughput.processed_per_minute / 60)],
						['Failed', percent(failing(found))],
						['Wait, p50 and p99', `${duration(found.latency_ms.p50)}, ${duration(found.latency_ms.p99)}`],
						['Run, p50 and p99', `${duration(found.run_ms.p50)}, ${duration(found.run_ms.p99)}`],
						[
							'Jobs at a time',
							optional(found.config.concurrency, (most) =>
								meter(found.counts.active, most, `${number(found.counts.active)} of ${number(most)}`),
							),
						],
						['Starts', optional(found.config.rate_limit, ({ limit, period }) => `at most ${number(limit)} in ${period}`)],
						[
							'Room',
							optional(found.config.max_size, (most) => meter(found.depth, most, `${number(found.depth)} of ${number(most)}`)),
						],
					])}
				</section>`,
			)}
			${when(history, ({ data }) => charts(data, now?.counts))}
			<div class="grid">
				${section(
					'Waiting by priority',
					list(
						'Waiting by priority',
						priorities,
						(found) => Object.entries(found.counts_by_priority).toSorted(([a], [b]) => Number(b) - Number(a)),
						[
							['Priority', ([priority]) => number(Number(priority)), 'number'],
							['Jobs', ([, jobs]) => number(jobs), 'number'],
						],
						{ none: 'Nothing waits.' },
					),
				)}
				${now ? payload('Settings', now.config) : nothing}
			</div>`;
	};
}

const REMOVED = /** @type {const} */ (['available', 'scheduled', 'pending', 'retryable']);

function actions(/** @type {import('../openapi.js').QueueDetail} */ queue, /** @type {() => void} */ after) {
	const { name, counts, config, own_config: own } = queue;
	const waiting = REMOVED.reduce((sum, state) => sum + counts[state], 0);
	return [
		pause(queue, after),
		button({
			label: 'Configure',
			needs: 'configure',
			call: 'PUT /queues/{queue}/config',
			of: name,
			fields: [
				{
					name: 'config',
					label: 'Settings, a JSON object',
					kind: 'json',
					value: written(own, 2),
					hint: 'They take the place of those that are there. What is left out is as _default says.',
				},
			],
			body: (values) => json(values['config'], 'Settings') ?? {},
			after,
		}),
		button({
			label: 'Limit',
			needs: 'configure',
			call: 'PUT /admin/queues/{queue}/rate-limit',
			of: name,
			fields: [
				{
					name: 'concurrency',
					label: 'Jobs at a time',
					kind: 'number',
					min: 0,
					value: String(config.concurrency ?? ''),
					hint: 'Empty for any number.',
				},
				{ name: 'limit', label: 'Starts in a period', kind: 'number', min: 1, value: String(config.rate_limit?.limit ?? '') },
				{
					name: 'period',
					label: 'Period',
					value: config.rate_limit?.period ?? 'PT1M',
					hint: 'As ISO 8601 writes it: PT1S, PT1M, PT1H.',
				},
			],
			body: rates,
			after,
		}),
		button({
			label: 'Purge',
			needs: 'destroy',
			danger: true,
			call: 'DELETE /admin/queues/{queue}/jobs',
			of: name,
			body: { states: REMOVED, confirm: true },
			typed: name,
			about: `${count(waiting, 'waiting job')} would be removed for good.`,
			cli: ['queues', 'purge', name],
			done: (answer) => `${count(answer.purged_count, 'job')} removed.`,
			after,
		}),
	];
}
