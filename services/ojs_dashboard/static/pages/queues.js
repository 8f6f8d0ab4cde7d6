/** All queues, those that need somebody first. */

import { button } from '../actions.js';
import { duration, number, percent, rate } from '../format.js';
import { html } from '../lit-html.js';
import { badge, head, jobsLink, list, queueLink, search } from '../parts.js';

/** @typedef {import('../openapi.js').AdminListedQueue | import('../openapi.js').QueueDetail} Queue */

export const title = () => 'Queues';

/** @type {import('../app.js').PageModule['open']} */
export function open(visit) {
	const queues = visit.source(() => ({ call: 'GET /admin/queues', query: { per_page: 100, cursor: visit.query('cursor') } }), {
		every: 3_000,
	});
	const of =
		(/** @type {'available' | 'active' | 'discarded'} */ state) =>
		(/** @type {Queue} */ { name, counts }) =>
			jobsLink(`state:${state} queue:${name}`, number(counts[state]));
	return () => html`${head('Queues', queues, { cli: ['queues', 'list'], actions: create(queues.reload) })}
		${search('q', 'Part of a name')}
		<section>
			${list(
				'Queues',
				queues,
				({ items }) => items.filter(({ name }) => name.includes(visit.query('q'))).toSorted((a, b) => need(b) - need(a)),
				[
					['Queue', (queue) => queueLink(queue.name)],
					['State', (queue) => badge(queue.status)],
					['Waiting', of('available'), 'number'],
					['Oldest', (queue) => duration(queue.oldest_available_age_ms), 'number'],
					['Active', of('active'), 'number'],
					['Pushed', (queue) => rate(queue.throughput.enqueued_per_minute / 60), 'number'],
					['Done', (queue) => rate(queue.throughput.processed_per_minute / 60), 'number'],
					['Failed', (queue) => percent(failing(queue)), 'number'],
					['Wait p99', (queue) => duration(queue.latency_ms.p99), 'number'],
					['Run p99', (queue) => duration(queue.run_ms.p99), 'number'],
					['Dead letters', of('discarded'), 'number'],
					['', (queue) => pause(queue, queues.reload)],
				],
				{
					none: 'There is no such queue yet: one is there as soon as a job is pushed to it.',
					mark: (queue) => (queue.paused && queue.counts.available ? 'warn' : failing(queue) > 0.2 ? 'bad' : ''),
				},
			)}
		</section>`;
}

/** @returns {number} The share of ended attempts that failed. */
export function failing(/** @type {Queue} */ { throughput }) {
	const { processed_per_minute: done, failed_per_minute: failed } = throughput;
	return done + failed > 0 ? failed / (done + failed) : 0;
}

/** How much a queue needs somebody: one that is paused with work, then what has waited longest. */
const need = (/** @type {Queue} */ queue) =>
	(queue.paused && queue.counts.available ? 1e13 : 0) + (queue.oldest_available_age_ms ?? 0) + failing(queue) * 1e6;

/** The button that pauses a queue, or lets it go on. */
export const pause = (/** @type {Queue} */ { name, paused }, /** @type {() => void} */ after) =>
	button({
		label: paused ? 'Resume' : 'Pause',
		needs: 'control',
		call: paused ? 'POST /queues/{queue}/resume' : 'POST /queues/{queue}/pause',
		of: name,
		cli: ['queues', paused ? 'resume' : 'pause', name],
		quick: true,
		after,
	});

const create = (/** @type {() => void} */ after) =>
	button({
		label: 'New queue',
		needs: 'configure',
		call: 'POST /queues',
		fields: [{ name: 'name', label: 'Name', required: true, hint: 'Lower-case letters, digits, dots and hyphens.' }],
		body: ({ name }) => ({ name }),
		after,
	});
