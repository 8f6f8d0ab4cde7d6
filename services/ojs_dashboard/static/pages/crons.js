/** Cron entries: when each runs, and how its last runs went. */

import { button, json } from '../actions.js';
import { request } from '../api.js';
import { moment, number, text } from '../format.js';
import { html } from '../lit-html.js';
import { badge, head, pages, table, when } from '../parts.js';
import { inWords } from '../schedule.js';
import { signal } from '../signals-core.js';

export const title = () => 'Crons';

/** @type {import('../app.js').PageModule['open']} */
export function open(visit) {
	const crons = visit.source(() => ({ path: '/crons', query: { limit: 50, cursor: visit.query('cursor') } }), { every: 5_000 });
	return () => html`${head('Crons', { path: '/crons', cli: ['cron', 'list'], actions: edit(null, crons.reload) })}
		<section>
			${when(
				crons,
				(found) =>
					html`${table(
						/** @type {any[]} */ (found.crons),
						[
							{
								title: 'Name',
								cell: (cron) => html`<a href="/crons/${encodeURIComponent(cron.name)}">${text(cron.name, 60)}</a>`,
							},
							{
								title: 'Schedule',
								cell: (cron) => html`${inWords(cron.expression)}<br /><small>${cron.expression}, ${cron.timezone}</small>`,
							},
							{ title: 'State', cell: (cron) => badge(cron.enabled ? 'active' : 'paused') },
							{ title: 'Job', cell: (cron) => text(cron.job_template.type, 60) },
							{ title: 'Next', cell: (cron) => moment(cron.enabled ? cron.next_run_at : null) },
							{ title: 'Last', cell: (cron) => moment(cron.last_run_at) },
							{ title: 'Runs', cell: (cron) => number(cron.run_count), number: true },
							{ title: '', cell: (cron) => html`<span class="actions">${actions(cron, crons.reload)}</span>` },
						],
						{ label: 'Cron entries' },
					)} ${pages(found.pagination)}`,
				{ empty: (found) => !found.crons.length, none: 'There is no cron entry yet.' },
			)}
		</section>`;
}

/** The buttons of an entry. */
export function actions(/** @type {any} */ cron, /** @type {() => void} */ then) {
	const path = `/crons/${encodeURIComponent(cron.name)}`;
	const switched = cron.enabled ? 'pause' : 'resume';
	return [
		button(
			{
				label: 'Run now',
				needs: 'control',
				method: 'POST',
				path: `${path}/trigger`,
				cli: ['cron', 'trigger', cron.name],
				quick: true,
				done: () => 'Its job is pushed.',
			},
			then,
		),
		button(
			{
				label: cron.enabled ? 'Pause' : 'Resume',
				needs: 'control',
				method: 'POST',
				path: `${path}/${switched}`,
				cli: ['cron', switched, cron.name],
				quick: true,
			},
			then,
		),
		edit(cron, then),
	];
}

/**
 * When the schedule that is typed fires next, asked of the server once typing has paused.
 * @returns {(values: import('../actions.js').Values) => import('../parts.js').Part}
 */
function runs() {
	const found = signal(/** @type {{runs: string[], problem: string}} */ ({ runs: [], problem: '' }));
	let asked = '';
	let timer = 0;
	const ask = async (/** @type {string} */ cron, /** @type {string} */ timezone, /** @type {string} */ of) => {
		let next = { runs: /** @type {string[]} */ ([]), problem: '' };
		try {
			const answer = await request('/admin/cron/preview', { method: 'POST', body: { cron, timezone: timezone || 'UTC' } });
			next = { runs: /** @type {any} */ (answer).runs, problem: '' };
		} catch (error) {
			next.problem = error instanceof Error ? error.message : String(error);
		}
		if (of === asked) found.value = next;
	};
	return (values) => {
		const [cron, timezone] = [values['expression'] ?? '', values['timezone'] ?? ''];
		const of = `${cron} ${timezone}`;
		if (of !== asked) {
			asked = of;
			clearTimeout(timer);
			timer = window.setTimeout(() => ask(cron, timezone, of), 300);
		}
		const { runs, problem } = found.value;
		return problem
			? html`<p class="notice warn" role="status">${text(problem, 300)}</p>`
			: html`<div role="status"><p>${inWords(cron)}. Next runs:</p><ul>${runs.map((run) => html`<li>${moment(run, { plain: true })}</li>`)}</ul></div>`;
	};
}

/** The button that changes an entry, or makes one. */
export function edit(
	/** @type {any} */ cron,
	/** @type {() => void} */ then,
	/** @type {(values: import('../actions.js').Values) => import('../parts.js').Part} */ preview = runs(),
) {
	const template = cron?.job_template ?? { type: '', args: [], options: {}, meta: {} };
	return button(
		{
			label: cron ? 'Edit' : 'New entry',
			needs: 'configure',
			method: cron ? 'PATCH' : 'POST',
			path: cron ? `/crons/${encodeURIComponent(cron.name)}` : '/crons',
			fields: [
				...(cron ? [] : [{ name: 'name', label: 'Name', required: true }]),
				{
					name: 'expression',
					label: 'Schedule',
					value: cron?.expression ?? '0 8 * * *',
					required: true,
					hint: 'Minute, hour, day, month, weekday.',
				},
				{ name: 'timezone', label: 'Time zone', value: cron?.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone },
				...(cron
					? []
					: [
							{ name: 'type', label: 'Type of its jobs', required: true },
							{ name: 'args', label: 'Arguments, a JSON array', kind: /** @type {const} */ ('json'), value: '[]' },
						]),
			],
			preview,
			body: (values) => ({
				cron: values['expression'],
				timezone: values['timezone'],
				...(cron
					? {}
					: { name: values['name'], type: values['type'], args: json(values['args'] ?? '', 'Arguments') ?? template.args }),
			}),
			cli: null,
		},
		then,
	);
}
