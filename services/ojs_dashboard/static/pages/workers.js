/** Workers: who is there, what each holds, and what it is told. */

import { button } from '../actions.js';
import { duration, millis, moment, number, text, time } from '../format.js';
import { html, nothing } from '../lit-html.js';
import { badge, facts, head, jobLink, list, search, section, tabs, when } from '../parts.js';
import { address, setQuery } from '../router.js';

/** @typedef {import('../openapi.js').Worker} Worker */

export const title = () => 'Workers';

/** @type {import('../app.js').PageModule['open']} */
export function open(visit) {
	const workers = visit.source(
		() => ({
			call: 'GET /admin/workers',
			query: { per_page: 50, state: visit.query('state'), search: visit.query('q'), cursor: visit.query('cursor') },
		}),
		{ every: 3_000 },
	);
	const chosen = () => visit.query('worker');
	const one = visit.source(() => (chosen() ? { call: 'GET /admin/workers/{worker_id}', of: chosen() } : null), {
		every: 3_000,
	});
	const choose = (/** @type {string} */ id) => setQuery({ worker: chosen() === id ? null : id });

	return () => html`${head('Workers', workers, { cli: ['workers', 'list'], actions: all(workers.reload) })}
		${tabs('state', ['', 'running', 'quiet', 'stale'], 'State')} ${search('q', 'Part of a name, a host or a queue')}
		<section>
			${when(workers, ({ summary }) =>
				facts([
					['Workers', number(summary.total)],
					['Running', number(summary.running)],
					['Quiet', number(summary.quiet)],
					['Stale', number(summary.stale)],
					['Jobs that they hold', number(summary.active_jobs)],
				]),
			)}
			${list(
				'Workers',
				workers,
				(found) => found.items,
				[
					[
						'Worker',
						({ id }) =>
							html`<button type="button" class="quiet" aria-expanded=${chosen() === id} @click=${() => choose(id)}>${text(id, 60)}</button>`,
					],
					['State', (worker) => badge(worker.state)],
					[
						'Holds',
						(worker) => `${number(worker.active_jobs)}${worker.concurrency ? ` of ${number(worker.concurrency)}` : ''}`,
						'number',
					],
					['Queues', (worker) => text(worker.queues.join(', '), 80)],
					['Host', (worker) => html`${text(worker.hostname, 40)}${worker.pid ? html` <small>${worker.pid}</small>` : nothing}`],
					['Runs', (worker) => text((worker.handlers ?? []).map(version).join(', '), 80)],
					['Since', (worker) => moment(worker.started_at)],
					['Last heard', (worker) => moment(worker.last_heartbeat_at)],
					['', (worker) => actions(worker, workers.reload)],
				],
				{
					none:
						visit.query('state') || visit.query('q') || visit.query('cursor')
							? html`No worker that is heard of is like this. <a href=${address('/workers')}>Show all</a>`
							: html`No worker is heard of. Start one: <code>ojs-nats worker app.jobs</code>`,
					mark: (worker) => (worker.state === 'stale' ? 'bad' : ''),
				},
			)}
		</section>
		${
			chosen()
				? section(
						html`${text(chosen(), 80)} holds`,
						list(
							'Jobs that it holds',
							one,
							(worker) => worker.jobs,
							[
								['Job', (job) => jobLink(job.id)],
								['Type', (job) => text(job.type, 60)],
								['Queue', (job) => text(job.queue, 60)],
								['For', (job) => duration(job.started_at ? time() - millis(job.started_at) : null), 'number'],
								['Attempt', (job) => number(job.attempt), 'number'],
							],
							{ none: 'No job.' },
						),
					)
				: nothing
		}`;
}

/** A job type that a worker runs, with the versions of it. */
const version = (/** @type {import('../openapi.js').WorkerHandler} */ handler) =>
	handler.versions === '*' ? handler.type : `${handler.type} ${handler.versions}`;

function actions(/** @type {Worker} */ { id, state, directive }, /** @type {() => void} */ after) {
	const told = (/** @type {string} */ directive, /** @type {string} */ label, danger = false) =>
		button({
			label,
			needs: 'control',
			call: 'POST /admin/workers/{worker_id}/directive',
			of: id,
			body: { directive },
			cli: ['workers', directive, id],
			danger,
			quick: !danger,
			about: 'It ends what it runs, then it stops.',
			after,
		});
	if (state === 'stale')
		return button({ label: 'Forget', needs: 'control', call: 'DELETE /admin/workers/{worker_id}', of: id, quick: true, after });
	const quiet = state === 'quiet' || directive === 'quiet';
	return html`<span class="actions">${quiet ? told('resume', 'Resume') : told('quiet', 'Quiet')} ${told('terminate', 'Terminate', true)}</span>`;
}

const DIRECTIVES = ['quiet', 'resume', 'terminate'];
const all = (/** @type {() => void} */ after) =>
	button({
		label: 'Direct all',
		needs: 'control',
		call: 'POST /admin/workers/directive',
		fields: [{ name: 'directive', label: 'What they are told', kind: 'choice', choices: DIRECTIVES, value: 'quiet' }],
		body: ({ directive }) => ({ directive }),
		after,
	});
