/** Workflows, the newest first. */

import { duration, millis, moment, text } from '../format.js';
import { html } from '../lit-html.js';
import { badge, head, meter, pages, table, tabs, when } from '../parts.js';

export const title = () => 'Workflows';

/** @type {import('../app.js').PageModule['open']} */
export function open(visit) {
	const query = () => ({ state: visit.query('state'), limit: 50, cursor: visit.query('cursor') });
	const workflows = visit.source(() => ({ path: '/workflows', query: query() }), { every: 5_000 });
	return () => html`${head('Workflows', { path: '/workflows', query: query(), cli: ['workflows', 'list'] })}
		${tabs(
			'state',
			[
				['', 'All'],
				['running', 'Running'],
				['completed', 'Completed'],
				['failed', 'Failed'],
				['cancelled', 'Cancelled'],
			],
			'State',
		)}
		<section>
			${when(
				workflows,
				(found) =>
					html`${table(
						/** @type {any[]} */ (found.workflows),
						[
							{
								title: 'Workflow',
								cell: (flow) => html`<a href="/workflows/${flow.id}">${text(flow.name || flow.id, 60)}</a>`,
							},
							{ title: 'Kind', cell: (flow) => flow.type },
							{ title: 'State', cell: (flow) => badge(flow.state) },
							{ title: 'Done', cell: done },
							{ title: 'Created', cell: (flow) => moment(flow.created_at) },
							{ title: 'Took', cell: (flow) => took(flow), number: true },
						],
						{ label: 'Workflows' },
					)} ${pages(found.pagination)}`,
				{ empty: (found) => !found.workflows.length, none: 'There is no such workflow.' },
			)}
		</section>`;
}

/** How many of its steps or jobs are done. */
export function done(/** @type {any} */ flow) {
	const [most, now] =
		flow.steps_total === undefined ? [flow.jobs_total, flow.jobs_completed] : [flow.steps_total, flow.steps_completed];
	return meter(now ?? 0, most ?? 0, `${now ?? 0} of ${most ?? 0}`);
}

/** @returns {string} How long it took, or has taken so far. */
export const took = (/** @type {any} */ flow) =>
	duration(
		(flow.completed_at || flow.cancelled_at ? millis(flow.completed_at ?? flow.cancelled_at) : Date.now()) -
			millis(flow.started_at ?? flow.created_at),
	);
