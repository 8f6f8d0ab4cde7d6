/** Workflows, the newest first. */

import { duration, millis, moment, text } from '../format.js';
import { html } from '../lit-html.js';
import { badge, head, list, meter, tabs } from '../parts.js';

/** @typedef {import('../openapi.js').ListedWorkflow} Flow */

export const title = () => 'Workflows';

/** @type {import('../app.js').PageModule['open']} */
export function open(visit) {
	const workflows = visit.source(() => ({
		call: 'GET /workflows',
		query: { state: visit.query('state'), limit: 50, cursor: visit.query('cursor') },
	}));
	return () => html`${head('Workflows', workflows, { cli: ['workflows', 'list'] })}
		${tabs('state', ['', 'running', 'completed', 'failed', 'cancelled'], 'State')}
		<section>
			${list(
				'Workflows',
				workflows,
				(found) => found.workflows,
				[
					['Workflow', (flow) => html`<a href="/workflows/${flow.id}">${text(flow.name || flow.id, 60)}</a>`],
					['Kind', (flow) => flow.type],
					['State', (flow) => badge(flow.state)],
					['Done', done],
					['Created', (flow) => moment(flow.created_at)],
					['Took', took, 'number'],
				],
				{ none: 'There is no such workflow.' },
			)}
		</section>`;
}

/** How many of its steps or jobs are done. */
export function done(/** @type {Flow} */ flow) {
	const most = flow.steps_total ?? flow.jobs_total ?? 0;
	const now = (flow.steps_total === undefined ? flow.jobs_completed : flow.steps_completed) ?? 0;
	return meter(now, most, `${now} of ${most}`, false);
}

/** @returns {string} How long it took, or has taken so far. */
export function took(/** @type {Flow} */ flow) {
	const ended = flow.completed_at ?? flow.cancelled_at;
	return duration((ended ? millis(ended) : Date.now()) - millis(flow.started_at ?? flow.created_at));
}
