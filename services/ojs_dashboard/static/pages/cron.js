/** A cron entry: its next runs, and how the last ones went. */

import { button } from '../actions.js';
import { duration, millis, moment, number, text } from '../format.js';
import { html, svg } from '../lit-html.js';
import { badge, facts, head, jobLink, jobsLink, list, optional, payload, section, when } from '../parts.js';
import { go } from '../router.js';
import { inWords } from '../schedule.js';
import { actions, edit, zoned } from './crons.js';

export const title = (/** @type {import('../visit.js').Visit} */ visit) => visit.param;

/** @type {import('../app.js').PageModule['open']} */
export function open(visit) {
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
		after: () => go('/crons'),
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
					['When the last still runs', entry.overlap_policy],
					['Waiting for the last', optional(entry.waiting_runs, number)],
					['Runs', number(entry.run_count)],
					['Its jobs', jobsLink(`meta.cron_name:${entry.name}`, 'Show')],
					['About', optional(entry.description, (about) => text(about, 500))],
				])}
			</section>
			<div class="grid">
				${section(
					'Next runs',
					when(
						next,
						({ runs: times }) =>
							html`<ol>${times.map((run) => html`<li>${zoned(run, entry.timezone)} <span class="dim">${moment(run)}</span></li>`)}</ol>`,
					),
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
						['Job', (run) => (run.job_id ? jobLink(run.job_id) : text(run.reason))],
						['State', (run) => (run.job_state ? badge(run.job_state) : '–')],
					],
					{ none: 'It has not run yet.' },
				),
			])}`;
	};
}

/** The last runs as coloured strokes, the oldest first. */
function strip(/** @type {import('../openapi.js').CronExecution[]} */ runs) {
	const shown = runs.toReversed();
	return html`<svg class="timeline" viewBox="0 0 ${Math.max(50, shown.length) * 20} 24" preserveAspectRatio="none" role="img" aria-label="The last ${shown.length} runs">
		${shown.map((run, i) => svg`<rect class=${`bar ${run.job_state ?? (run.status === 'skipped' ? 'retryable' : '')}`} x=${i * 20} y="2" width="14" height="20"><title>${run.scheduled_at}: ${run.job_state ?? run.status}</title></rect>`)}
	</svg>`;
}
