/** All queues, those that need somebody first. */

import { button } from '../actions.js';
import { duration, number, percent, rate } from '../format.js';
import { html } from '../lit-html.js';
import { badge, head, jobsLink, pages, queueLink, search, table, when } from '../parts.js';

export const title = () => 'Queues';

/** @type {import('../app.js').PageModule['open']} */
export function open(visit) {
	const queues = visit.source(() => ({ path: '/admin/queues', query: { per_page: 100, cursor: visit.query('cursor') } }), {
		every: 3_000,
	});
	return () => {
		const wanted = visit.query('q');
		return html`${head('Queues', { path: '/admin/queues', cli: ['queues', 'list'], actions: create(queues.reload) })}
			${search('q', 'Part of a name')}
			<section>
				${when(
					queues,
					(found) => html`
					${table(
						found.items
							.filter((/** @type {any} */ queue) => queue.name.includes(wanted))
							.toSorted((/** @type {any} */ a, /** @type {any} */ b) => need(b) - need(a)),
						[
							{ title: 'Queue', cell: (queue) => queueLink(queue.name) },
							{ title: 'State', cell: (queue) => badge(queue.paused ? 'paused' : 'active') },
							{
								title: 'Waiting',
								cell: (queue) => jobsLink(`state:available queue:${queue.name}`, number(queue.counts.available)),
								number: true,
							},
							{ title: 'Oldest', cell: (queue) => duration(queue.oldest_available_age_ms), number: true },
							{
								title: 'Active',
								cell: (queue) => jobsLink(`state:active queue:${queue.name}`, number(queue.counts.active)),
								number: true,
							},
							{ title: 'Pushed', cell: (queue) => rate(queue.throughput.enqueued_per_minute / 60), number: true },
							{ title: 'Done', cell: (queue) => rate(queue.throughput.processed_per_minute / 60), number: true },
							{ title: 'Failed', cell: (queue) => percent(failing(queue)), number: true },
							{ title: 'Wait p99', cell: (queue) => duration(queue.latency_ms.p99), number: true },
							{ title: 'Run p99', cell: (queue) => duration(queue.run_ms.p99), number: true },
							{
								title: 'Dead letters',
								cell: (queue) =>
									queue.counts.discarded
										? jobsLink(`state:discarded queue:${queue.name}`, number(queue.counts.discarded))
										: '0',
								number: true,
							},
							{ title: '', cell: (queue) => pause(queue, queues.reload) },
						],
						{
							label: 'Queues',
							mark: (queue) => (queue.paused && queue.counts.available ? 'warn' : failing(queue) > 0.2 ? 'bad' : ''),
						},
					)}
					${pages(found.pagination)}`,
					{
						empty: (found) => !found.items.length,
						none: 'There is no queue yet: one is there as soon as a job is pushed to it.',
					},
				)}
			</section>`;
	};
}

/** @returns {number} The share of ended attempts that failed. */
export function failing(/** @type {any} */ queue) {
	const { processed_per_minute: done, failed_per_minute: failed } = queue.throughput;
	return done + failed > 0 ? failed / (done + failed) : 0;
}

/** How much a queue needs somebody: one that is paused with work, then what has waited longest. */
const need = (/** @type {any} */ queue) =>
	(queue.paused && queue.counts.available ? 1e13 : 0) + (queue.oldest_available_age_ms ?? 0) + failing(queue) * 1e6;

/** The button that pauses a queue, or lets it go on. */
export function pause(/** @type {any} */ queue, /** @type {() => void} */ then) {
	const name = queue.paused ? 'resume' : 'pause';
	return button(
		{
			label: queue.paused ? 'Resume' : 'Pause',
			needs: 'control',
			method: 'POST',
			path: `/queues/${encodeURIComponent(queue.name)}/${name}`,
			cli: ['queues', name, queue.name],
			quick: true,
		},
		then,
	);
}

function create(/** @type {() => void} */ then) {
	return button(
		{
			label: 'New queue',
			needs: 'configure',
			method: 'POST',
			path: '/queues',
			fields: [{ name: 'name', label: 'Name', required: true, hint: 'Lower-case letters, digits, dots and hyphens.' }],
			body: (values) => ({ name: values['name'] }),
			cli: null,
		},
		then,
	);
}
