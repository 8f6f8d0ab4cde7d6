/** Cron entries: when each runs, and how its last runs went. */

import { button, json } from '../actions.js';
import { Problem, request, written } from '../api.js';
import { duration, millis, moment, number, said, text } from '../format.js';
import { html, svg } from '../lit-html.js';
import { badge, facts, head, jobLink, jobsLink, list, optional, payload, section, when } from '../parts.js';
import { address, go } from '../router.js';
import { inWords } from '../schedule.js';
import { signal } from '../signals-core.js';
import { OVERLAPS } from '../words.js';

export const title = (/** @type {import('../visit.js').Visit} */ { param }) => param || 'Crons';

/** @type {import('../app.js').PageModule['open']} */
export const open = (visit) => (visit.param ? entry(visit) : entries(visit));

/** @typedef {import('../openapi.js').Cron} Cron */

/** @type {import('../app.js').PageModule['open']} */
function entries(visit) {
	const crons = visit.source(() => ({ call: 'GET /crons', query: { limit: 50, cursor: visit.query('cursor') } }));
	return () => html`${head('Crons', crons, { cli: ['cron', 'list'], actions: edit(null, crons.reload) })}
		<section>
			${list(
				'Cron entries',
				crons,
				(found) => found.crons,
				[
					['Name', (cron) => html`<a href=${address(`/crons/${encodeURIComponent(cron.name)}`)}>${text(cron.name, 60)}</a>`],
					['Schedule', (cron) => html`${inWords(cron.expression)}<br /><small>${cron.expression}, ${cron.timezone}</small>`],
					['State', (cron) => badge(cron.enabled ? 'active' : 'paused')],
					['Job', (cron) => text(cron.job_template.type, 60)],
					['Next', (cron) => moment(cron.enabled ? cron.next_run_at : null)],
					['Last', (cron) => moment(cron.last_run_at)],
					['Runs', (cron) => number(cron.run_count), 'number'],
					['', (cron) => html`<span class="actions">${actions(cron, crons.reload)}</span>`],
				],
				{ none: 'There is no cron entry yet.' },
			)}
		</section>`;
}

/** The buttons of an entry. */
export function actions(/** @type {Cron} */ { name: of, enabled }, /** @type {() => void} */ after) {
	const one = (/** @type {string} */ label, /** @type {'trigger' | 'pause' | 'resume'} */ name, done = () => '') =>
		button({
			label,
			needs: 'control',
			call: /** @type {const} */ (`POST /crons/{cron}/${name}`),
			of,
			cli: ['cron', name, of],
			quick: true,
			done,
			after,
		});
	return [one('Run now', 'trigger', () => 'Its job is pushed.'), enabled ? one('Pause', 'pause') : one('Resume', 'resume')];
}

/**
 * When the schedule that is typed fires next, asked of the server once typing has paused.
 * @returns {(values: import('../actions.js').Values) => import('../parts.js').Part}
 */
function runs() {
	const found = signal(
		/** @type {{runs: string[], warned: string[], problem: string}} */ ({ runs: [], warned: [], problem: '' }),
	);
	let asked = '';
	let timer = 0;
	const ask = async (/** @type {string} */ cron, /** @type {string} */ timezone, /** @type {string} */ of) => {
		try {
			const { runs, warnings } = await request({
				call: 'POST /admin/cron/preview',
				body: { cron, timezone: timezone || 'UTC' },
			});
			if (of === asked) found.value = { runs, warned: (warnings ?? []).map(({ message }) => message), problem: '' };
		} catch (error) {
			if (of === asked)
				found.value = { runs: [], warned: [], problem: String(error instanceof Problem ? error.message : error) };
		}
	};
	return ({ cron, timezone }) => {
		const of = `${cron} ${timezone}`;
		if (of !== asked) {
			asked = of;
			clearTimeout(timer);
			timer = window.setTimeout(() => ask(cron, timezone, of), 300);
		}
		const { runs, warned, problem } = found.value;
		return problem
			? html`<p class="notice warn" role="status">${text(problem, 300)}</p>`
			: html`<div role="status"><p>${inWords(cron)}. Next runs:</p>${warned.map((message) => html`<p class="notice warn">${text(message, 300)}</p>`)}${nextRuns(runs, timezone || 'UTC')}</div>`;
	};
}

/** Next runs, by the clocks in a zone; with seconds where they aren't all at whole minutes. */
const nextRuns = (/** @type {string[]} */ runs, /** @type {string} */ zone) => {
	const exact = runs.some((run) => Date.parse(run) % 60_000);
	return html`<ol>${runs.map((run) => html`<li>${zoned(run, zone, exact)} <span class="dim">${moment(run)}</span></li>`)}</ol>`;
};

/** @returns {string} A time as the clocks in a zone show it. */
export function zoned(/** @type {string} */ time, /** @type {string} */ timeZone, exact = false) {
	const style = /** @type {const} */ ({ dateStyle: 'full', timeStyle: exact ? 'medium' : 'short' });
	try {
		return new Intl.DateTimeFormat(undefined, { ...style, timeZone }).format(Date.parse(time));
	} catch {
		return time; // in a zone that is being typed
	}
}

/** The button that changes an entry, or makes one. */
export function edit(/** @type {Cron | null} */ cron, /** @type {() => void} */ after) {
	const { type = '', args, options = {} } = cron?.job_template ?? { args: [] };
	/** @type {import('../actions.js').Field[]} */
	const fields = [
		{
			name: 'cron',
			label: 'Schedule',
			value: cron?.expression ?? '0 8 * * *',
			required: true,
			hint: 'Minute, hour, day, month, weekday.',
		},
		{ name: 'timezone', label: 'Time zone', value: cron?.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone },
		{
			name: 'overlap_policy',
			label: 'When the last still runs',
			kind: 'choice',
			choices: OVERLAPS,
			shown: said,
			value: cron?.overlap_policy ?? 'skip',
		},
		{ name: 'type', label: 'Type of its jobs', value: type, required: true },
		...(args
			? [{ name: 'args', label: 'Arguments, a JSON array', kind: /** @type {const} */ ('json'), value: written(args) }]
			: []),
		{
			name: 'options',
			label: 'Options, a JSON object',
			kind: 'json',
			value: written(options),
			hint: 'queue, priority, tags, retry …',
		},
	];
	const body = (
		/** @type {import('../actions.js').Values} */ { cron: expression, timezone, overlap_policy, type, ...typed },
	) => ({
		cron: expression,
		timezone,
		overlap_policy,
		job_template: {
			...cron?.job_template,
			type,
			...(args ? { args: json(typed['args'], 'Arguments') ?? [] } : {}),
			options: json(typed['options'], 'Options') ?? {},
		},
	});
	const made = /** @type {const} */ ({ needs: 'configure', preview: runs(), after });
	if (cron) return button({ ...made, label: 'Edit', call: 'PATCH /crons/{cron}', of: cron.name, fields, body });
	return button({
		...made,
		label: 'New entry',
		call: 'POST /crons',
		fields: [{ name: 'name', label: 'Name', required: true }, ...fields],
		body: (values) => ({ name: values['name'], ...body(values) }),
	});
}

/** @type {import('../app.js').PageModule['open']} */
function entry(visit) {
	const of = visit.param;
	const cron = visit.source(() => ({ call: 'GET /crons/{cron}', of }));
	const next = visit.source(() => ({ call: 'GET /crons/{cron}/next', of }), { every: 30_000 });
	const runs = visit.source(() => ({ call: 'GET /crons/{cron}/history', of, query: { limit: 50 } }));
	const reload = () => {
		for (const source of [cron, next, runs]) source.reload();
	};
	const remove = button({
		label: 'Delete',
		needs: 'configure',
		danger: true,
		call: 'DELETE /crons/{cron}',
		of,
		typed: of,
		cli: ['cron', 'delete', of],
		after: () => go(address('/crons')),
	});

	return () => {
		const now = cron.read.value.value?.cron;
		return html`${head(of, cron, { cli: ['cron', 'get', of], actions: now ? [actions(now, reload), edit(now, reload), remove] : '' })}
			${when(
				cron,
				({ cron: entry }) => html`<section>
				${facts([
					['Schedule', html`${inWords(entry.expression)} <small>(${entry.expression})</small>`],
					['Time zone', entry.timezone],
					['State', badge(entry.enabled ? 'active' : 'paused')],
					['When the last still runs', said(entry.overlap_policy)],
					['Waiting for the last', optional(entry.waiting_runs, number)],
					['Runs', number(entry.run_count)],
					['Its jobs', jobsLink(`meta.cron_name:${entry.name}`, 'Show')],
					['About', optional(entry.description, (about) => text(about, 500))],
				])}
			</section>
			<div class="grid">
				${section(
					'Next runs',
					when(next, ({ runs: times }) => nextRuns(times, entry.timezone)),
				)}
				${payload('What it pushes', entry.job_template)}
			</div>`,
			)}
			${section('Last runs', [
				strip(runs.read.value.value?.executions ?? []),
				list(
					'Last runs',
					runs,
					({ executions }) => executions,
					[
						['Due', (run) => moment(run.scheduled_at)],
						['What', (run) => html`${run.status}${run.manual ? ', by hand' : ''}`],
						[
							'Late',
							(run) => duration(run.triggered_at ? millis(run.triggered_at) - millis(run.scheduled_at) : null),
							'number',
						],
						['Job', (run) => (run.job_id ? jobLink(run.job_id) : text(said(run.reason ?? '')))],
						['State', (run) => (run.job_state ? badge(run.job_state) : '–')],
					],
					{ none: 'It has not run yet.' },
				),
			])}`;
	};
}

/** The last runs as coloured strokes, the oldest first. */
function strip(/** @type {import('../openapi.js').CronRun[]} */ runs) {
	const shown = runs.toReversed();
	return html`<svg class="timeline" viewBox="0 0 ${Math.max(50, shown.length) * 20} 24" preserveAspectRatio="none" role="img" aria-label="The last ${shown.length} runs">
		${shown.map((run, i) => svg`<rect class=${`bar ${run.job_state ?? (run.status === 'skipped' ? 'retryable' : '')}`} x=${i * 20} y="2" width="14" height="20"><title>${run.scheduled_at}: ${run.job_state ?? run.status}</title></rect>`)}
	</svg>`;
}
