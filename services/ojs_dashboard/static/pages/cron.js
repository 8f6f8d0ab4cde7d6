/** A cron entry: its next runs, and how the last ones went. */

import { button } from '../actions.js';
import { duration, millis, moment, number, text } from '../format.js';
import { html, svg } from '../lit-html.js';
import { badge, facts, head, jobLink, jobsLink, payload, section, table, when } from '../parts.js';
import { go } from '../router.js';
import { inWords } from '../schedule.js';
import { actions } from './crons.js';

export const title = (/** @type {import('../visit.js').Visit} */ visit) => visit.param;

/** @type {import('../app.js').PageModule['open']} */
export function open(visit) {
	const path = `/crons/${encodeURIComponent(visit.param)}`;
	const cron = visit.source(() => ({ path }), { every: 5_000 });
	const next = visit.source(() => ({ path: `${path}/next` }), { every: 30_000 });
	const runs = visit.source(() => ({ path: `${path}/history`, query: { limit: 50 } }), { every: 5_000 });
	const reload = () => {
		for (const source of [cron, next, runs]) source.reload();
	};

	return () => {
		const now = cron.read.value.value?.cron;
		return html`${head(visit.param, {
			path,
			cli: ['cron', 'get', visit.param],
			actions: now
				? [
						actions(now, reload),
						button(
							{
								label: 'Delete',
								needs: 'destroy',
								danger: true,
								method: 'DELETE',
								path,
								typed: now.name,
								cli: ['cron', 'delete', now.name],
							},
							() => go('/crons'),
						),
					]
				: '',
		})}
			${when(
				cron,
				({ cron: entry }) => html`<section>
				${facts([
					['Schedule', html`${inWords(entry.expression)} <small>(${entry.expression})</small>`],
					['Time zone', entry.timezone],
					['State', badge(entry.enabled ? 'active' : 'paused')],
					['When the last still runs', entry.overlap_policy],
					['Runs', number(entry.run_count)],
					['Its jobs', jobsLink(`meta.cron_name:${entry.name}`, 'Show')],
				])}
			</section>
			<div class="grid">
				${section(
					'Next runs',
					when(
						next,
						({ runs: times }) =>
							html`<ol>${times.map((/** @type {string} */ run) => html`<li>${zoned(run, entry.timezone)} <span class="dim">${moment(run)}</span></li>`)}</ol>`,
					),
				)}
				${payload('What it pushes', entry.job_template)}
			</div>`,
			)}
			${section(
				'Last runs',
				when(
					runs,
					({ executions }) =>
						html`${strip(executions)} ${table(
							/** @type {any[]} */ (executions),
							[
								{ title: 'Due', cell: (run) => moment(run.scheduled_at) },
								{ title: 'What', cell: (run) => html`${text(run.status)}${run.manual ? ', by hand' : ''}` },
								{
									title: 'Late',
									cell: (run) => (run.triggered_at ? duration(millis(run.triggered_at) - millis(run.scheduled_at)) : '–'),
									number: true,
								},
								{ title: 'Job', cell: (run) => (run.job_id ? jobLink(run.job_id) : text(run.reason)) },
								{ title: 'State', cell: (run) => (run.job_state ? badge(run.job_state) : '–') },
							],
							{ label: 'Last runs' },
						)}`,
					{ empty: ({ executions }) => !executions.length, none: 'It has not run yet.' },
				),
			)}`;
	};
}

/** @returns {string} A time as the clocks in a zone show it. */
export const zoned = (/** @type {string} */ time, /** @type {string} */ timeZone) =>
	new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'short', timeZone }).format(millis(time));

/** The last runs as coloured strokes, the oldest first. */
function strip(/** @type {any[]} */ runs) {
	const shown = runs.toReversed();
	return html`<svg class="timeline" viewBox="0 0 ${Math.max(50, shown.length) * 20} 24" preserveAspectRatio="none" role="img" aria-label="The last ${shown.length} runs">
		${shown.map((run, i) => svg`<rect class=${`bar ${run.job_state ?? (run.status === 'skipped' ? 'retryable' : '')}`} x=${i * 20} y="2" width="14" height="20"><title>${run.scheduled_at}: ${run.job_state ?? run.status}</title></rect>`)}
	</svg>`;
}
