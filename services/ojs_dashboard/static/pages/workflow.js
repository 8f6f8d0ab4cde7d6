/** A workflow: its steps as a graph that lives, and as a list. */

import { button } from '../actions.js';
import { duration, millis, moment, number, text } from '../format.js';
import { graph } from '../graph.js';
import { html, nothing } from '../lit-html.js';
import { badge, facts, head, jobLink, payload, section, table, when } from '../parts.js';
import { setQuery } from '../router.js';
import { done, took } from './workflows.js';

export const title = (/** @type {import('../visit.js').Visit} */ visit) => `Workflow ${visit.param.slice(0, 8)}`;

const PAGE = 200;

/** @type {import('../app.js').PageModule['open']} */
export function open(visit) {
	const path = `/workflows/${encodeURIComponent(visit.param)}`;
	const query = () => ({ limit: PAGE, offset: visit.query('offset') });
	const flow = visit.source(() => ({ path, query: query() }), { every: 2_000 });

	return () => {
		const now = flow.read.value.value?.workflow;
		return html`${head(text(now?.name || visit.param, 80), { path, query: query(), cli: ['workflows', 'get', visit.param], actions: now ? actions(now, path, flow.reload) : '' })}
			${when(
				flow,
				({ workflow }) => html`<section>
					${facts([
						['State', badge(workflow.state)],
						['Kind', workflow.type],
						['Done', done(workflow)],
						['Failed', number(workflow.metadata.failed_count)],
						['Cancelled', number(workflow.metadata.cancelled_count)],
						['Created', moment(workflow.created_at)],
						['Took', took(workflow)],
					])}
					${(workflow.errors ?? []).map((/** @type {any} */ error) => html`<p class="notice bad"><strong>Step ${text(error.step_id, 60)}: ${text(error.code, 60)}</strong> ${text(error.message, 500)} ${jobLink(error.job_id)}</p>`)}
				</section>
				${section('Graph', graph(workflow.type, workflow.steps, workflow.metadata.job_count))}
				${section('Steps', [steps(workflow.steps), more(workflow.steps_pagination)])}
				${workflow.result === undefined ? nothing : payload('Result', workflow.result)}`,
			)}`;
	};
}

function actions(/** @type {any} */ flow, /** @type {string} */ path, /** @type {() => void} */ then) {
	return [
		['failed', 'cancelled'].includes(flow.state)
			? button(
					{
						label: 'Retry from where it failed',
						needs: 'control',
						method: 'POST',
						path: `${path}/retry`,
						cli: ['workflows', 'retry', flow.id],
						quick: true,
					},
					then,
				)
			: nothing,
		flow.state === 'running'
			? button(
					{
						label: 'Cancel',
						needs: 'control',
						danger: true,
						method: 'POST',
						path: `${path}/cancel`,
						cli: ['workflows', 'cancel', flow.id],
						about: 'Jobs that wait are cancelled. Active ones may end.',
					},
					then,
				)
			: nothing,
	];
}

function steps(/** @type {any[]} */ all) {
	const flat = all.flatMap((step) => [step, ...(step.steps ?? [])]);
	return table(
		flat,
		[
			{ title: 'Step', cell: (step) => text(step.name ?? step.id, 60) },
			{ title: 'Type', cell: (step) => text(step.type, 60) },
			{ title: 'State', cell: (step) => badge(step.state) },
			{ title: 'After', cell: (step) => text(step.depends_on.join(', '), 60) },
			{ title: 'Job', cell: (step) => (step.job_id ? jobLink(step.job_id) : '–') },
			{
				title: 'Took',
				cell: (step) =>
					step.started_at
						? duration((step.completed_at ? millis(step.completed_at) : Date.now()) - millis(step.started_at))
						: '–',
				number: true,
			},
			{ title: 'Error', cell: (step) => text(step.error?.message, 80) },
		],
		{ label: 'Steps' },
	);
}

function more(/** @type {any} */ page) {
	if (!page) return nothing;
	const { offset, limit, total } = page;
	return html`<nav class="pages" aria-label="Steps">
		<span>${number(offset + 1)} to ${number(Math.min(total, offset + limit))} of ${number(total)}</span>
		<button ?disabled=${offset === 0} @click=${() => setQuery({ offset: String(Math.max(0, offset - limit)) })}>Earlier</button>
		<button ?disabled=${!page.has_more} @click=${() => setQuery({ offset: String(offset + limit) })}>Later</button>
	</nav>`;
}
