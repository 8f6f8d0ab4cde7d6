/** All queues, those that need somebody first; and one: what waits, how fast it is, its settings. */

import { button, json } from '../actions.js';
import { written } from '../api.js';
import { count, duration, inOneUnit, lasting, number, percent, percentile, rate, text } from '../format.js';
import { html, nothing } from '../lit-html.js';
import {
	badge,
	facts,
	head,
	jobsLink,
	list,
	meter,
	optional,
	payload,
	queueLink,
	search,
	section,
	spark,
	when,
} from '../parts.js';
import { address } from '../router.js';
import { fields, rates } from './limits.js';
import { charts } from './overview.js';

export const title = (/** @type {import('../visit.js').Visit} */ { param }) => param || 'Queues';

/** @type {import('../app.js').PageModule['open']} */
export const open = (visit) => (visit.param ? queue(visit) : queues(visit));

/** Queues of a page. */
const MOST = 100;

/** @typedef {import('../openapi.js').AdminQueue | import('../openapi.js').QueueDetail} Queue */

/** @type {import('../app.js').PageModule['open']} */
function queues(visit) {
	const queues = visit.source(
		() => ({
			call: 'GET /admin/queues',
			query: { per_page: MOST, search: visit.query('q'), cursor: visit.query('cursor') },
		}),
		{ every: 3_000 },
	);
	/** Rates of a column in one unit. */
	const every = (/** @type {'enqueued_per_minute' | 'processed_per_minute'} */ member) =>
		inOneUnit((queues.read.value.value?.items ?? []).map(({ throughput }) => throughput[member] / 60));
	const most = () => queues.read.value.value?.pagination.total ?? 0;
	const of =
		(/** @type {'available' | 'active' | 'discarded'} */ state) =>
		(/** @type {Queue} */ { name, counts }) =>
			jobsLink(`state:${state} queue:${name}`, number(counts[state]));
	return () => html`${head('Queues', queues, { cli: ['queues', 'list'], actions: create(queues.reload) })}
		${search('q', 'Part of a name')}
		${most() > MOST ? html`<p class="notice" role="status">These are ${number(MOST)} of ${number(most())} queues by name, those first that need somebody. Those of other pages aren't among them: type a part of a name to find one.</p>` : nothing}
		<section>
			${list(
				'Queues',
				queues,
				({ items }) => items.toSorted((a, b) => need(b) - need(a)),
				[
					['Queue', (queue) => queueLink(queue.name)],
					['State', (queue) => badge(queue.status)],
					['Waiting', of('available'), 'number'],
					['Not ended, 1 h', ({ backlog }) => spark(backlog)],
					['Oldest', (queue) => duration(queue.oldest_available_age_ms), 'number'],
					['Active', of('active'), 'number'],
					['Pushed', (queue) => every('enqueued_per_minute')(queue.throughput.enqueued_per_minute / 60), 'number'],
					['Done', (queue) => every('processed_per_minute')(queue.throughput.processed_per_minute / 60), 'number'],
					['Failed', (queue) => percent(failing(queue)), 'number'],
					['Wait p99', (queue) => percentile(queue.latency_ms, 'p99'), 'number'],
					['Run p99', (queue) => percentile(queue.run_ms, 'p99'), 'number'],
					['Discarded', of('discarded'), 'number'],
					['', (queue) => pause(queue, queues.reload)],
				],
				{
					none: visit.query('q')
						? html`No queue has ${text(visit.query('q'), 60)} in its name. <a href=${address('/queues')}>Show all</a>`
						: visit.query('cursor')
							? 'There is no queue after these.'
							: 'There is no queue yet: one is there as soon as a job is pushed to it.',
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

const STATES = /** @type {const} */ ([
	['available', 'Waiting'],
	['active', 'Active'],
	['scheduled', 'Scheduled'],
	['retryable', 'Retrying'],
	['discarded', 'Discarded'],
	['completed', 'Completed'],
]);

/** @type {import('../app.js').PageModule['open']} */
function queue(visit) {
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
						['Wait, p50 and p99', `${percentile(found.latency_ms, 'p50')}, ${percentile(found.latency_ms, 'p99')}`],
						['Run, p50 and p99', `${percentile(found.run_ms, 'p50')}, ${percentile(found.run_ms, 'p99')}`],
						[
							'Jobs at a time',
							optional(found.config.concurrency, (most) =>
								meter(found.counts.active, most, `${number(found.counts.active)} of ${number(most)}`),
							),
						],
						[
							'Starts',
							optional(found.config.rate_limit, ({ limit, period }) => `at most ${number(limit)} in ${lasting(period)}`),
						],
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

/** Settings as a document in which nothing stands twice: the age of dead letters is in `retention`, too. */
function once(/** @type {import('../openapi.js').QueueDetail['own_config']} */ { retention, ...own }) {
	if (!retention) return own;
	const { dead_letter: age, ...others } = retention;
	const twice = age !== undefined && own.dead_letter;
	return twice && !Object.keys(others).length ? own : { ...own, retention: twice ? others : retention };
}

/** Settings whose members the server changes one by one. */
const BY_MEMBER = ['retention', 'dead_letter'];

/**
 * Settings that take the place of others: those that aren't there any more are taken back.
 * @returns {any}
 */
function taken(/** @type {any} */ before, /** @type {any} */ after, inside = false) {
	if (![before, after].every((one) => typeof one === 'object' && one !== null && !Array.isArray(one))) return after;
	const gone = Object.keys(before).filter((name) => !(name in after));
	return Object.fromEntries([
		...gone.map((name) => [name, null]), // ahead of the others: a setting may be there by its other name
		...Object.entries(after).map(([name, value]) => [
			name,
			inside || BY_MEMBER.includes(name) ? taken(before[name], value, true) : value,
		]),
	]);
}

const REMOVED = /** @type {const} */ (['available', 'scheduled', 'pending', 'retryable']);

function actions(/** @type {import('../openapi.js').QueueDetail} */ queue, /** @type {() => void} */ after) {
	const { name, counts, config, own_config } = queue;
	const own = once(own_config);
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
			body: (values) => taken(own, json(values['config'], 'Settings') ?? {}),
			after,
		}),
		button({
			label: 'Limit',
			needs: 'configure',
			call: 'PUT /admin/queues/{queue}/rate-limit',
			of: name,
			fields: fields(config.concurrency, config.rate_limit),
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
