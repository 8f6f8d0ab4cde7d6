/** A job: why it is where it is, what happened to it, and what it carries. */

import { button } from '../actions.js';
import { duration, millis, moment, number, plain, relative, text } from '../format.js';
import { html, nothing, svg } from '../lit-html.js';
import { badge, copier, facts, head, payload, queueLink, section, table, when } from '../parts.js';
import { push } from './jobs.js';

export const title = (/** @type {import('../visit.js').Visit} */ visit) => `Job ${visit.param.slice(0, 8)}`;

const OVER = new Set(['completed', 'cancelled', 'discarded']);

/** @type {import('../app.js').PageModule['open']} */
export function open(visit) {
	const id = encodeURIComponent(visit.param);
	const path = `/admin/jobs/${id}`;
	const job = visit.source(() => ({ path }), { every: 5_000, on: { job_id: visit.param } });
	const why = visit.source(() => ({ path: `${path}/why` }), { every: 5_000 });
	const attempts = visit.source(() => ({ path: `/debug/jobs/${id}/traces` }), { every: 5_000 });
	const reload = () => {
		for (const source of [job, why, attempts]) source.reload();
	};

	return () => {
		const now = job.read.value.value;
		return html`${head(html`Job <span class="id">${text(visit.param)}</span>`, {
			path,
			cli: ['get', visit.param],
			actions: now ? actions(now, reload) : nothing,
		})}
			${when(
				job,
				(found) => html`
				<section>
					${when(
						why,
						({ reasons }) =>
							reasons.map(
								(/** @type {any} */ reason) =>
									html`<p class="notice"><strong>${text(reason.message, 500)}</strong> ${reason.remedy ? text(reason.remedy, 500) : nothing}</p>`,
							),
						{
							empty: ({ reasons }) => !reasons.length,
							none: nothing,
						},
					)}
					${summary(found)}
				</section>
				${section('Timeline', timeline(found))}
				${errors(found, attempts.read.value.value?.traces ?? [])}
				<div class="grid">
					${carried(found, 'args', 'Arguments')} ${carried(found, 'result', 'Result')} ${carried(found, 'meta', 'Metadata')}
					${payload('Everything', found)}
				</div>`,
			)}`;
	};
}

/** What a job carries; said to be hidden where the server leaves it out, and nothing where there is none. */
function carried(/** @type {any} */ job, /** @type {string} */ member, /** @type {string} */ name) {
	if (job.redacted?.includes(member))
		return section(name, html`<p class="hidden">Hidden: this needs the permission payloads.</p>`);
	const value = job[member];
	return value === undefined || (member === 'meta' && !Object.keys(value).length) ? nothing : payload(name, value);
}

function summary(/** @type {any} */ job) {
	return facts([
		['State', badge(job.state)],
		['Type', text(job.type)],
		['Queue', queueLink(job.queue)],
		['Priority', number(job.priority)],
		['Attempt', `${job.attempt} of ${job.max_attempts}`],
		['Created', moment(job.created_at)],
		...(job.scheduled_at ? [/** @type {const} */ (['Scheduled', moment(job.scheduled_at)])] : []),
		...(job.started_at ? [/** @type {const} */ (['Started', moment(job.started_at)])] : []),
		...(job.completed_at ? [/** @type {const} */ (['Ended', moment(job.completed_at)])] : []),
		...(job.worker_id
			? [
					/** @type {const} */ ([
						'Worker',
						html`<a href="/workers?q=${encodeURIComponent(job.worker_id)}">${text(job.worker_id, 60)}</a>`,
					]),
				]
			: []),
		...(job.workflow_id
			? [
					/** @type {const} */ ([
						'Workflow',
						html`<a class="id" href="/workflows/${job.workflow_id}">${job.workflow_id.slice(0, 8)}…</a>, step ${text(job.workflow_step_id ?? job.workflow_step)}`,
					]),
				]
			: []),
		...(job.tags?.length ? [/** @type {const} */ (['Tags', text(job.tags.join(', '))])] : []),
		...(job.leaves_at ? [/** @type {const} */ (['Leaves the server', moment(job.leaves_at)])] : []),
	]);
}

function actions(/** @type {any} */ job, /** @type {() => void} */ then) {
	const id = encodeURIComponent(job.id);
	const one = (/** @type {string} */ name, /** @type {string} */ label, more = {}) =>
		button(
			{ label, needs: 'control', method: 'POST', path: `/admin/jobs/${id}/${name}`, cli: [name, job.id], quick: true, ...more },
			then,
		);
	return [
		['discarded', 'cancelled', 'retryable'].includes(job.state) ? one('retry', 'Retry') : nothing,
		['scheduled', 'retryable', 'pending'].includes(job.state) ? one('run', 'Run now') : nothing,
		OVER.has(job.state)
			? nothing
			: one('cancel', 'Cancel', {
					quick: false,
					danger: true,
					about: job.state === 'active' ? 'Its worker hears of it with its next heartbeat.' : 'It will not run.',
					fields: [{ name: 'reason', label: 'Reason' }],
					body: (/** @type {import('../actions.js').Values} */ values) =>
						values['reason'] ? { reason: values['reason'] } : {},
				}),
		OVER.has(job.state) || job.state === 'active'
			? nothing
			: button(
					{
						label: 'Priority',
						needs: 'control',
						method: 'PATCH',
						path: `/jobs/${id}`,
						fields: [
							{
								name: 'priority',
								label: 'Priority, from -100 to 100',
								kind: 'number',
								value: String(job.priority),
								min: -100,
								max: 100,
							},
						],
						body: (values) => ({ priority: Number(values['priority']) }),
						cli: (values) => ['priority', job.id, values['priority'] ?? ''],
					},
					then,
				),
		push(then, job),
	];
}

/** What happened, drawn to scale, and as a table. */
function timeline(/** @type {any} */ job) {
	const events = /** @type {any[]} */ (job.timeline ?? []);
	const from = millis(events[0]?.at ?? job.created_at);
	const to = Math.max(OVER.has(job.state) ? millis(events.at(-1)?.at) : Date.now(), from + 1);
	const x = (/** @type {number} */ at) => ((at - from) / (to - from)) * 1_000;
	const bars = events.map((event, i) => ({
		event,
		from: millis(event.at),
		to: i + 1 < events.length ? millis(events[i + 1].at) : to,
	}));
	return html`<svg class="timeline" viewBox="0 0 1000 24" preserveAspectRatio="none" role="img" aria-label="From ${new Date(from).toISOString()}, over ${duration(to - from)}">
			${bars.map((bar) => svg`<rect class=${`bar ${bar.event.to}`} x=${x(bar.from)} width=${Math.max(1.5, x(bar.to) - x(bar.from))} y="2" height="20"><title>${bar.event.to}: ${duration(bar.to - bar.from)}</title></rect>`)}
		</svg>
		<div class="ends">${moment(from, { plain: true })}<span>${duration(to - from)}</span></div>
		${table(
			bars,
			[
				{ title: 'When', cell: ({ event }) => moment(event.at, { plain: true }) },
				{ title: 'After', cell: (bar) => duration(bar.from - from), number: true },
				{ title: 'What', cell: ({ event }) => text(event.event) },
				{ title: 'State', cell: (bar) => html`${badge(bar.event.to)} for ${duration(bar.to - bar.from)}` },
				{ title: 'Attempt', cell: ({ event }) => (event.attempt ? number(event.attempt) : '–'), number: true },
				{ title: 'Worker or reason', cell: ({ event }) => text(event.worker_id ?? event.reason, 100) },
			],
			{ label: 'Timeline' },
		)}
		${(job.timers ?? []).map((/** @type {any} */ timer) => html`<p>${text(timer.service)} looks at it ${moment(timer.due_at)}</p>`)}`;
}

function errors(/** @type {any} */ job, /** @type {any[]} */ traces) {
	const all = (job.errors ?? []).map((/** @type {any} */ error) => {
		const trace = traces.find((one) => one.attempt === error.attempt);
		return {
			error,
			attempt: error.attempt,
			worker_id: trace?.worker_id,
			ended_at: trace?.ended_at,
			duration_ms: trace?.duration_ms,
		};
	});
	if (!all.length) return nothing;
	return section(
		'Errors',
		all.toReversed().map((/** @type {any} */ { attempt, error, worker_id, ended_at, duration_ms }) => {
			const trace = backtrace(error);
			return html`<article class="notice bad">
				<p><strong>${text(error.code ?? error.type ?? 'error', 100)}</strong> ${text(error.message, 2_000)}</p>
				<p class="dim">Attempt ${attempt ?? '–'}${worker_id ? html`, worker ${text(worker_id, 60)}` : nothing}${duration_ms == null ? nothing : `, after ${duration(duration_ms)}`}${ended_at ? `, ${relative(millis(ended_at))}` : nothing}</p>
				${trace ? html`<details><summary>Stack trace</summary>${copier('Copy', trace)}<pre>${plain(trace).replaceAll('␊', '\n')}</pre></details>` : nothing}
			</article>`;
		}),
	);
}

/** @returns {string} */
function backtrace(/** @type {any} */ error) {
	const found =
		error.backtrace ?? error.stack_trace ?? error.details?.backtrace ?? error.details?.stack_trace ?? error.details?.traceback;
	return Array.isArray(found) ? found.join('\n') : (found ?? '');
}
