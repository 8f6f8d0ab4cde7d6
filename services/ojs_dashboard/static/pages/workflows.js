/** Workflows, the newest first; and one: its steps as a graph that lives, and as a list. */

import { button } from '../actions.js';
import { duration, millis, moment, number, text, time } from '../format.js';
import { graph } from '../graph.js';
import { html, nothing } from '../lit-html.js';
import { badge, facts, head, hidden, jobLink, list, meter, optional, payload, section, table, tabs, when } from '../parts.js';
import { address, setQuery } from '../router.js';
import { WORKFLOW_STATES } from '../words.js';

export const title = (/** @type {import('../visit.js').Visit} */ { param }) =>
	param ? `Workflow ${param.slice(0, 8)}` : 'Workflows';

/** @type {import('../app.js').PageModule['open']} */
export const open = (visit) => (visit.param ? workflow(visit) : workflows(visit));

/** @typedef {import('../openapi.js').WorkflowHead} Flow */

/** @type {import('../app.js').PageModule['open']} */
function workflows(visit) {
	const workflows = visit.source(() => ({
		call: 'GET /workflows',
		query: { state: visit.query('state'), limit: 50, cursor: visit.query('cursor') },
	}));
	return () => html`${head('Workflows', workflows, { cli: ['workflows', 'list'] })}
		${tabs('state', ['', ...WORKFLOW_STATES], 'State')}
		<section>
			${list(
				'Workflows',
				workflows,
				(found) => found.workflows,
				[
					['Workflow', (flow) => html`<a href=${address(`/workflows/${flow.id}`)}>${text(flow.name || flow.id, 60)}</a>`],
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
	return meter(now, most, `${number(now)} of ${number(most)}`, false);
}

/** @returns {string} How long it took, or has taken so far. */
export function took(/** @type {Flow} */ flow) {
	const ended = flow.completed_at ?? flow.cancelled_at;
	return duration((ended ? millis(ended) : time()) - millis(flow.started_at ?? flow.created_at));
}

const PAGE = 200;

/** @type {import('../app.js').PageModule['open']} */
function workflow(visit) {
	const of = visit.param;
	const flow = visit.source(
		() => ({ call: 'GET /workflows/{workflow_id}', of, query: { limit: PAGE, offset: visit.query('offset') } }),
		{ every: 2_000 },
	);

	return () => {
		const now = flow.read.value.value?.workflow;
		return html`${head(text(now?.name || of, 80), flow, { cli: ['workflows', 'get', of], actions: now ? actions(now, flow.reload) : '' })}
			${when(
				flow,
				({ workflow }) => html`<section>
					${facts([
						['State', badge(workflow.state)],
						['Kind', workflow.type],
						['Done', done(workflow)],
						['Failed', number(workflow.metadata?.failed_count)],
						['Cancelled', number(workflow.metadata?.cancelled_count)],
						['Retried', optional(workflow.retries, number)],
						['Created', moment(workflow.created_at)],
						['Took', took(workflow)],
					])}
					${(workflow.errors ?? []).map((error) => html`<p class="notice bad"><strong>Step ${text(error.step_id, 60)}: ${text(error.code, 60)}</strong> ${text(error.message, 500)} ${jobLink(error.job_id)}</p>`)}
				</section>
				${section('Graph', graph(workflow.type, workflow.steps, workflow.metadata?.job_count ?? 0))}
				${section('Steps', [steps(workflow), more(workflow.steps_pagination)])}
				${results(workflow.steps)}`,
			)}`;
	};
}

function actions(/** @type {import('../openapi.js').Workflow} */ { id, state }, /** @type {() => void} */ after) {
	if (state === 'running')
		return button({
			label: 'Cancel',
			needs: 'control',
			danger: true,
			call: 'POST /workflows/{workflow_id}/cancel',
			of: id,
			cli: ['workflows', 'cancel', id],
			about: 'Jobs that wait are cancelled. Active ones may end.',
			after,
		});
	if (state === 'completed') return nothing;
	return button({
		label: 'Retry from where it failed',
		needs: 'control',
		call: 'POST /workflows/{workflow_id}/retry',
		of: id,
		cli: ['workflows', 'retry', id],
		quick: true,
		after,
	});
}

/** Its steps, those of steps that are workflows themselves, and what is run at its end. */
function steps(/** @type {import('../openapi.js').Workflow} */ flow) {
	const ends = Object.entries(flow.callbacks ?? {}).map(([name, step]) => ({ ...step, name }));
	return table(
		'Steps',
		[...flow.steps.flatMap((step) => [step, ...(step.steps ?? [])]), ...ends],
		[
			['Step', (step) => text(step.name ?? step.id, 60)],
			['Type', (step) => text(step.type, 60)],
			['State', (step) => badge(step.state)],
			['After', (step) => text(step.depends_on.join(', '), 60)],
			['Job', (step) => (step.job_id ? jobLink(step.job_id) : '–')],
			[
				'Took',
				(step) => duration(step.started_at ? (millis(step.completed_at) || time()) - millis(step.started_at) : null),
				'number',
			],
			['Error', (step) => text((step.error ?? flow.errors?.find((one) => one.step_id === step.id))?.message, 80)],
		],
	);
}

/** The results of its steps by their names. */
function results(/** @type {import('../openapi.js').WorkflowStep[]} */ steps) {
	const there = steps.filter((step) => step.result !== undefined);
	if (steps.some((step) => step.redacted?.includes('result'))) return section('Results', hidden());
	return there.length
		? payload('Results', Object.fromEntries(there.map((step) => [step.name ?? step.id, step.result])))
		: nothing;
}

function more(/** @type {import('../openapi.js').StepsPagination | undefined} */ page) {
	if (!page) return nothing;
	const { offset, limit, total } = page;
	return html`<nav class="pages" aria-label="Steps">
		<span>${number(offset + 1)} to ${number(Math.min(total, offset + limit))} of ${number(total)}</span>
		<button type="button" ?disabled=${offset === 0} @click=${() => setQuery({ offset: String(Math.max(0, offset - limit)) })}>Earlier</button>
		<button type="button" ?disabled=${!page.has_more} @click=${() => setQuery({ offset: String(offset + limit) })}>Later</button>
	</nav>`;
}
