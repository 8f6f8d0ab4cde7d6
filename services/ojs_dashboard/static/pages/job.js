/** A job: why it is where it is, what happened to it, and what it carries. */

import { button } from '../actions.js';
import { copier } from '../dialogs.js';
import { duration, millis, moment, number, percent, plain, relative, said, text, time } from '../format.js';
import { html, nothing, svg } from '../lit-html.js';
import { PRIORITY } from '../matching.js';
import {
	badge,
	facts,
	head,
	hidden,
	jobLink,
	meter,
	optional,
	payload,
	queueLink,
	section,
	table,
	tree,
	when,
} from '../parts.js';
import { address } from '../router.js';
import { TEXTS } from '../words.js';
import { push } from './jobs.js';

/** @typedef {import('../openapi.js').JobDetail} Job */

export const title = (/** @type {import('../visit.js').Visit} */ visit) => `Job ${visit.param.slice(0, 8)}`;

const OVER = new Set(['completed', 'cancelled', 'discarded']);

/** @type {import('../app.js').PageModule['open']} */
export function open(visit) {
	const of = visit.param;
	const job = visit.source(() => ({ call: 'GET /admin/jobs/{job_id}', of }), {
		on: { channel: `job:${of}` },
		live: ({ value, problem }) => problem?.status !== 404 && !OVER.has(value?.state ?? ''),
	});
	const why = visit.source(() => ({ call: 'GET /admin/jobs/{job_id}/why', of }));
	const attempts = visit.source(() => ({ call: 'GET /debug/jobs/{job_id}/traces', of }));
	const progress = visit.source(() => ({ call: 'GET /jobs/{job_id}/progress', of }), { every: 2_000 });
	const lineage = visit.source(() => ({ call: 'GET /jobs/{job_id}/lineage', of }), { every: 0 });
	const reload = () => {
		for (const source of [job, why, attempts]) source.reload();
	};

	return () => {
		const now = job.read.value.value;
		return html`${head(html`Job <span class="id">${text(of)}</span>`, job, { cli: ['get', of], actions: now ? actions(now, reload) : nothing })}
			${when(
				job,
				(found) => html`
				<section>
					${when(why, ({ reasons }) => reasons.map((reason) => html`<p class="notice"><strong>${text(reason.message, 500)}</strong> ${optional(reason.remedy, (remedy) => text(remedy, 500))} ${OVER.has(found.state) && found.state !== 'completed' ? optional(found.workflow_id, workflowRetry) : nothing}</p>`))}
					${summary(found, lineage.read.value.value)} ${reported(progress.read.value.value)}
				</section>
				${section('Timeline', timeline(found))}
				${errors(found, attempts.read.value.value?.traces ?? [])}
				<div class="grid">
					${carried(found, 'args', 'Arguments')} ${carried(found, 'result', 'Result')} ${carried(found, 'meta', 'Metadata')}
					${optional(found.checkpoint, checkpoint)} ${payload('Everything', found)}
				</div>`,
			)}`;
	};
}

/** What a job carries; said to be hidden where the server leaves it out, and nothing where there is none. */
function carried(/** @type {Job} */ job, /** @type {'args' | 'result' | 'meta'} */ member, /** @type {string} */ name) {
	if (job.redacted?.includes(member)) return section(name, hidden());
	const value = job[member];
	return value === undefined || (member === 'meta' && !Object.keys(job.meta ?? {}).length) ? nothing : payload(name, value);
}

/** What a later attempt goes on from. */
const checkpoint = (/** @type {import('../openapi.js').Checkpoint} */ saved) =>
	section(`Checkpoint ${saved.sequence}`, [
		html`<p class="dim">Saved ${moment(saved.created_at)}${optional(saved.step_index, (step) => `, at step ${step}`)}</p>`,
		saved.redacted ? hidden() : tree(saved.state),
	]);

/** How far its worker says that it has come. */
function reported(/** @type {import('../openapi.js').Progress | undefined} */ now) {
	if (!now?.updated_at) return nothing;
	const words = now.progress === null ? '' : `${percent(now.progress)} done, said ${relative(millis(now.updated_at))}`;
	return html`<div>${meter(now.progress ?? 0, 1, words, false)} ${optional(now.message, (said) => text(said, 1_000))}</div>
		${optional(now.data, (data) => tree(data, 'Progress data', false))}`;
}

function summary(/** @type {Job} */ job, /** @type {import('../openapi.js').JobLineage | undefined} */ lineage) {
	const trace = /^\w\w-(\w{32})-/.exec(String(job.meta?.['traceparent'] ?? ''))?.[1];
	return facts([
		['State', badge(job.state)],
		['Type', text(job.type)],
		['Version', optional(job.version, String)],
		['Queue', queueLink(job.queue)],
		['Priority', number(job.priority)],
		['Attempt', `${job.attempt} of ${job.max_attempts}`],
		['Created', moment(job.created_at)],
		['Scheduled', optional(job.scheduled_at, moment)],
		['Next attempt', optional(job.next_attempt_at, moment)],
		['Started', optional(job.started_at, moment)],
		['Ended', optional(job.completed_at ?? job.cancelled_at ?? job.discarded_at, moment)],
		[
			'Worker',
			optional(job.worker_id, (id) => html`<a href=${address('/workers', { q: id, worker: id })}>${text(id, 60)}</a>`),
		],
		['Lease until', optional(job.visible_until, moment)],
		[
			'Workflow',
			optional(
				job.workflow_id,
				(id) =>
					html`<a class="id" href=${address(`/workflows/${id}`)}>${id.slice(0, 8)}…</a>, step ${text(job.workflow_step_id ?? job.workflow_step)}`,
			),
		],
		['Made by', optional(lineage?.parent_id, jobLink)],
		['First of its line', optional(lineage?.root_id === job.id ? null : lineage?.root_id, jobLink)],
		['Trace', optional(trace, traced)],
		[
			'Limit',
			optional(job.rate_limit?.['key'], (key) => html`<a href=${address('/limits', { q: String(key) })}>${text(key, 80)}</a>`),
		],
		['Schema', optional(job.schema, (uri) => text(uri, 80))],
		...texts(job),
		['Leaves the server', optional(job.leaves_at, moment)],
	]);
}

/** The plain texts that it was pushed with. */
const texts = (/** @type {Record<string, any>} */ job) =>
	TEXTS.map((name) => {
		const given = job[name]?.length ? text([job[name]].flat().join(', ')) : nothing;
		return /** @type {const} */ ([name.charAt(0).toUpperCase() + name.slice(1), given]);
	});

const traced = (/** @type {string} */ id) => html`<span class="id">${id}</span> ${copier('Copy', id)}`;

function actions(/** @type {Job} */ job, /** @type {() => void} */ after) {
	const { id: of, state } = job;
	const one = (/** @type {string} */ label, /** @type {'retry' | 'run' | 'cancel'} */ name, more = {}) =>
		button({
			label,
			needs: 'control',
			call: /** @type {const} */ (`POST /admin/jobs/{job_id}/${name}`),
			of,
			cli: [name, of],
			quick: true,
			after,
			...more,
		});
	return [
		['discarded', 'cancelled', 'retryable'].includes(state) ? one('Retry', 'retry', ofWorkflow(job)) : nothing,
		['scheduled', 'retryable', 'pending'].includes(state) ? one('Run now', 'run') : nothing,
		OVER.has(state)
			? nothing
			: one('Cancel', 'cancel', {
					quick: false,
					danger: true,
					about: state === 'active' ? 'Its worker hears of it with its next heartbeat.' : 'It will not run.',
					fields: [{ name: 'reason', label: 'Reason' }],
					body: (/** @type {import('../actions.js').Values} */ { reason }) => (reason ? { reason } : {}),
				}),
		OVER.has(state) || state === 'active'
			? nothing
			: button({
					label: 'Priority',
					needs: 'control',
					call: 'PATCH /jobs/{job_id}',
					of,
					fields: [{ ...PRIORITY, value: String(job.priority) }],
					body: (values) => ({ priority: Number(values['priority']) }),
					cli: (values) => ['priority', of, values['priority']],
					after,
				}),
		push(after, job),
	];
}

/** What is said before the job of a workflow that it failed is retried alone. */
const ofWorkflow = (/** @type {Job} */ { state, workflow_id: id }) =>
	id && OVER.has(state)
		? {
				quick: false,
				about: html`<p>This runs the job alone: its workflow stays failed, and the steps after it don't run.</p><p>${workflowRetry(id)}</p>`,
			}
		: {};
const workflowRetry = (/** @type {string} */ id) =>
	html`<a href=${address(`/workflows/${id}`)}>Retry the workflow from where it failed</a>`;

/** What happened, drawn to scale, and as a table. */
function timeline(/** @type {Job} */ { state, created_at, timeline: events, timers }) {
	const from = millis(events[0]?.at ?? created_at);
	const to = Math.max(OVER.has(state) ? millis(events.at(-1)?.at) : time(), from + 1);
	const x = (/** @type {number} */ at) => ((at - from) / (to - from)) * 1_000;
	const bars = events.map((event, i) => ({
		...event,
		from: millis(event.at),
		until: millis(events[i + 1]?.at ?? to),
		state: event.to ?? '',
	}));
	return html`<svg class="timeline" viewBox="0 0 1000 24" preserveAspectRatio="none" role="img" aria-label="From ${new Date(from).toISOString()}, over ${duration(to - from)}">
			${bars.map((bar) => svg`<rect class=${`bar ${bar.state}`} x=${x(bar.from)} width=${Math.max(1.5, x(bar.until) - x(bar.from))} y="2" height="20"><title>${bar.state}: ${duration(bar.until - bar.from)}</title></rect>`)}
		</svg>
		<div class="ends">${moment(from, { plain: true })}<span>${duration(to - from)}</span></div>
		${table('Timeline', bars, [
			['When', (bar) => moment(bar.from, { plain: true })],
			['After', (bar) => duration(bar.from - from), 'number'],
			['What', (bar) => text(said(bar.event))],
			['State', (bar) => html`${badge(bar.state)}${OVER.has(bar.state) ? nothing : ` for ${duration(bar.until - bar.from)}`}`],
			['Attempt', (bar) => (bar.attempt ? number(bar.attempt) : '–'), 'number'],
			['Worker or reason', (bar) => text(bar.worker_id ?? bar.reason, 100)],
		])}
		${timers.map((timer) => html`<p>${text(timer.service)} looks at it ${moment(timer.due_at)}</p>`)}`;
}

function errors(/** @type {Job} */ job, /** @type {import('../openapi.js').AttemptTrace[]} */ traces) {
	const all = job.errors ?? [];
	if (!all.length) return nothing;
	return section(
		'Errors',
		all.toReversed().map((error) => {
			const stack = backtrace(error);
			const run = traces.find((one) => one.attempt === error.attempt);
			return html`<article class="notice bad">
				<p><strong>${text(error.code, 100)}</strong> ${error.redacted?.includes('message') ? html`<span class="hidden">hidden</span>` : text(error.message, 2_000)}</p>
				<p class="dim">Attempt ${error.attempt}${optional(run?.worker_id, (id) => html`, worker ${text(id, 60)}`)}${optional(run?.duration_ms, (ms) => `, after ${duration(ms)}`)}, ${relative(millis(error.occurred_at))}</p>
				${stack ? html`<details><summary>Stack trace</summary>${copier('Copy', stack)}<pre>${plain(stack).replaceAll('␊', '\n')}</pre></details>` : nothing}
			</article>`;
		}),
	);
}

/** @returns {string} */
function backtrace(/** @type {import('../openapi.js').JobError} */ error) {
	const details = /** @type {Record<string, unknown>} */ (error.details ?? {});
	const found = error.backtrace ?? details['backtrace'] ?? details['stack_trace'] ?? details['traceback'] ?? '';
	return Array.isArray(found) ? found.join('\n') : String(found);
}
