/** Workers: who is there, what each holds, and what it is told. */

import { button } from '../actions.js';
import { duration, millis, moment, number, text } from '../format.js';
import { html, nothing } from '../lit-html.js';
import { badge, facts, head, jobLink, pages, search, table, tabs, when } from '../parts.js';
import { signal } from '../signals-core.js';

export const title = () => 'Workers';

/** @type {import('../app.js').PageModule['open']} */
export function open(visit) {
	const workers = visit.source(
		() => ({ path: '/admin/workers', query: { per_page: 50, state: visit.query('state'), cursor: visit.query('cursor') } }),
		{ every: 3_000 },
	);
	const chosen = signal('');
	const one = visit.source(() => (chosen.value ? { path: `/admin/workers/${encodeURIComponent(chosen.value)}` } : null), {
		every: 3_000,
	});

	return () => {
		const wanted = visit.query('q');
		return html`${head('Workers', { path: '/admin/workers', cli: ['workers', 'list'], actions: all(workers.reload) })}
			${tabs(
				'state',
				[
					['', 'All'],
					['running', 'Running'],
					['quiet', 'Quiet'],
					['stale', 'Stale'],
				],
				'State',
			)}
			${search('q', 'Part of a name, a host or a queue')}
			<section>
				${when(
					workers,
					(found) => html`
					${facts([
						['Workers', number(found.summary.total)],
						['Running', number(found.summary.running)],
						['Quiet', number(found.summary.quiet)],
						['Stale', number(found.summary.stale)],
						['Jobs that they hold', number(found.summary.active)],
					])}
					${table(
						found.items.filter((/** @type {any} */ worker) =>
							[worker.id, worker.hostname, ...(worker.queues ?? [])].some((name) => String(name ?? '').includes(wanted)),
						),
						[
							{
								title: 'Worker',
								cell: (worker) =>
									html`<button class="quiet" aria-expanded=${chosen.value === worker.id} @click=${() => (chosen.value = chosen.value === worker.id ? '' : worker.id)}>${text(worker.id, 60)}</button>`,
							},
							{ title: 'State', cell: (worker) => badge(worker.state) },
							{
								title: 'Holds',
								cell: (worker) =>
									`${number(worker.active_jobs)}${worker.concurrency ? ` of ${number(worker.concurrency)}` : ''}`,
								number: true,
							},
							{ title: 'Queues', cell: (worker) => text((worker.queues ?? []).join(', '), 80) },
							{ title: 'Host', cell: (worker) => text(worker.hostname, 40) },
							{ title: 'Runs', cell: (worker) => text((worker.handlers ?? []).map(version).join(', '), 80) },
							{ title: 'Last heard', cell: (worker) => moment(worker.last_heartbeat_at) },
							{ title: '', cell: (worker) => actions(worker, workers.reload) },
						],
						{ label: 'Workers', mark: (worker) => (worker.state === 'stale' ? 'bad' : '') },
					)}
					${pages(found.pagination)}`,
					{
						empty: (found) => !found.items.length,
						none: html`No worker ${visit.query('state') ? 'is in this state' : 'has been heard of'}. Start one: <code>ojs-nats worker app.jobs</code>`,
					},
				)}
			</section>
			${
				chosen.value
					? html`<section><div class="head"><h2>${text(chosen.value, 80)} holds</h2></div>
				${when(
					one,
					(worker) =>
						table(
							worker.jobs,
							[
								{ title: 'Job', cell: (job) => jobLink(job.id) },
								{ title: 'Type', cell: (job) => text(job.type, 60) },
								{ title: 'Queue', cell: (job) => text(job.queue, 60) },
								{ title: 'For', cell: (job) => duration(Date.now() - millis(job.started_at)), number: true },
								{ title: 'Attempt', cell: (job) => number(job.attempt), number: true },
							],
							{ label: 'Jobs that it holds' },
						),
					{ empty: (worker) => !worker.jobs.length, none: 'No job.' },
				)}</section>`
					: nothing
			}`;
	};
}

/** A job type that a worker runs, with the versions of it. */
const version = (/** @type {any} */ handler) =>
	handler.versions === '*' ? handler.type : `${handler.type} ${handler.versions}`;

function actions(/** @type {any} */ worker, /** @type {() => void} */ then) {
	const path = `/admin/workers/${encodeURIComponent(worker.id)}`;
	const direct = (/** @type {string} */ directive, /** @type {string} */ label, danger = false) =>
		button(
			{
				label,
				needs: 'control',
				method: 'POST',
				path: `${path}/directive`,
				body: { directive },
				cli: ['workers', directive, worker.id],
				danger,
				quick: !danger,
				about: 'It ends what it runs, then it stops.',
			},
			then,
		);
	if (worker.state === 'stale')
		return button({ label: 'Forget', needs: 'control', method: 'DELETE', path, cli: null, quick: true }, then);
	return html`<span class="actions">${worker.state === 'quiet' || worker.directive === 'quiet' ? direct('resume', 'Resume') : direct('quiet', 'Quiet')} ${direct('terminate', 'Terminate', true)}</span>`;
}

function all(/** @type {() => void} */ then) {
	return button(
		{
			label: 'Direct all',
			needs: 'control',
			method: 'POST',
			path: '/admin/workers/directive',
			fields: [
				{
					name: 'directive',
					label: 'What they are told',
					kind: 'choice',
					choices: ['quiet', 'resume', 'terminate'],
					value: 'quiet',
				},
			],
			body: (values) => ({ directive: values['directive'] }),
			cli: null,
		},
		then,
	);
}
