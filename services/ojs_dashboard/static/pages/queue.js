/** A queue: what waits, how fast it is, and its settings. */

import { button, json } from '../actions.js';
import { count, duration, millis, number, percent, rate } from '../format.js';
import { html } from '../lit-html.js';
import { badge, facts, head, jobsLink, payload, plot, section, table, when } from '../parts.js';
import { failing, pause } from './queues.js';

export const title = (/** @type {import('../visit.js').Visit} */ visit) => visit.param;

/** @type {import('../app.js').PageModule['open']} */
export function open(visit) {
	const name = visit.param;
	const path = `/queues/${encodeURIComponent(name)}`;
	const queue = visit.source(() => ({ path: `/admin${path}` }), { every: 2_000 });
	const history = visit.source(() => ({ path: `${path}/stats/history`, query: { period: '1m' } }), { every: 15_000 });
	const priorities = visit.source(() => ({ path: `${path}/priority-stats` }), { every: 10_000 });

	return () => {
		const now = queue.read.value.value;
		return html`${head(name, { path: `/admin${path}`, cli: ['queues', 'get', name], actions: now ? actions(now, queue.reload) : '' })}
			${when(
				queue,
				(found) => html`<section>
					${facts([
						['State', badge(found.paused ? 'paused' : 'active')],
						...['available', 'active', 'scheduled', 'retryable', 'discarded', 'completed'].map(
							(state) =>
								/** @type {const} */ ([
									words[state] ?? state,
									jobsLink(`state:${state} queue:${name}`, number(found.counts[state])),
								]),
						),
						['Oldest waits', duration(found.oldest_available_age_ms)],
						['Pushed', rate(found.throughput.enqueued_per_minute / 60)],
						['Done', rate(found.throughput.processed_per_minute / 60)],
						['Failed', percent(failing(found))],
						['Wait, p50 and p99', `${duration(found.latency_ms.p50)}, ${duration(found.latency_ms.p99)}`],
						['Run, p50 and p99', `${duration(found.run_ms.p50)}, ${duration(found.run_ms.p99)}`],
					])}
				</section>`,
			)}
			${when(
				history,
				({ data }) => html`<div class="grid">
				<section>${plot(line(data, 'enqueued', 'pushed').concat(line(data, 'processed', 'done'), line(data, 'failed', 'failed')), { label: 'Jobs a minute', format: (value) => number(Math.round(value)) })}</section>
				<section>${plot(line(data, 'latency_p50_ms', 'p50').concat(line(data, 'latency_p99_ms', 'p99')), { label: 'Wait before a job starts', format: (value) => duration(value) })}</section>
			</div>`,
			)}
			<div class="grid">
				${section(
					'Waiting by priority',
					when(
						priorities,
						(found) =>
							table(
								rows(found),
								[
									{ title: 'Priority', cell: (row) => number(row.priority), number: true },
									{ title: 'Jobs', cell: (row) => number(row.count), number: true },
								],
								{ label: 'Waiting by priority' },
							),
						{ empty: (found) => !rows(found).length, none: 'Nothing waits.' },
					),
				)}
				${now ? payload('Settings', now.config) : ''}
			</div>`;
	};
}

const words = /** @type {Record<string, string>} */ ({
	available: 'Waiting',
	active: 'Active',
	scheduled: 'Scheduled',
	retryable: 'Retrying',
	discarded: 'Dead letters',
	completed: 'Completed',
});

/** @returns {{priority: number, count: number}[]} */
const rows = (/** @type {any} */ found) =>
	Object.entries(found.counts_by_priority)
		.map(([priority, count]) => ({ priority: Number(priority), count: Number(count) }))
		.toSorted((a, b) => b.priority - a.priority);

/** @returns {{name: string, points: [number, number | null][]}[]} */
const line = (/** @type {any[]} */ data, /** @type {string} */ member, /** @type {string} */ name) => [
	{ name, points: data.map((point) => [millis(point.timestamp), point[member]]) },
];

function actions(/** @type {any} */ queue, /** @type {() => void} */ then) {
	const path = `/queues/${encodeURIComponent(queue.name)}`;
	return [
		pause(queue, then),
		button(
			{
				label: 'Configure',
				needs: 'configure',
				method: 'PUT',
				path: `${path}/config`,
				fields: [
					{
						name: 'config',
						label: 'Settings, a JSON object',
						kind: 'json',
						value: JSON.stringify(queue.own_config ?? queue.config, null, 2),
						hint: 'They take the place of those that are there.',
					},
				],
				body: (values) => json(values['config'] ?? '', 'Settings') ?? {},
				cli: null,
			},
			then,
		),
		button(
			{
				label: 'Limit',
				needs: 'configure',
				method: 'PUT',
				path: `/admin${path}/rate-limit`,
				fields: [
					{ name: 'concurrency', label: 'Jobs at a time', kind: 'number', min: 0, hint: 'Empty for any number.' },
					{ name: 'limit', label: 'Starts in a period', kind: 'number', min: 1 },
					{ name: 'period', label: 'Period', value: 'PT1M', hint: 'As ISO 8601 writes it: PT1S, PT1M, PT1H.' },
				],
				body: (values) => ({
					...(values['concurrency'] ? { concurrency: Number(values['concurrency']) } : {}),
					...(values['limit'] ? { rate: { limit: Number(values['limit']), period: values['period'] } } : {}),
				}),
				cli: null,
			},
			then,
		),
		button(
			{
				label: 'Purge',
				needs: 'destroy',
				danger: true,
				method: 'DELETE',
				path: `/admin${path}/jobs`,
				body: { states: ['available', 'scheduled', 'pending', 'retryable'], confirm: true },
				typed: queue.name,
				about: `${count(queue.counts.available + queue.counts.scheduled + queue.counts.pending + queue.counts.retryable, 'waiting job')} would be removed for good.`,
				cli: ['queues', 'purge', queue.name],
				done: (answer) => `${count(answer.purged_count, 'job')} removed.`,
			},
			then,
		),
	];
}
