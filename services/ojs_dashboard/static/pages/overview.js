/** The overview: what is wrong now, and how much is done. */

import { backlog, duration, millis, number, percentile, rate, series, text, time } from '../format.js';
import { html, nothing } from '../lit-html.js';
import { facts, head, jobsLink, plot, section, tabs, when } from '../parts.js';
import { address } from '../router.js';

export const title = () => 'Overview';

const HOUR = { period: '1m', ms: 3_600_000, seconds: 60 };
const SPANS = /** @type {Record<string, typeof HOUR>} */ ({
	'24h': { period: '1h', ms: 86_400_000, seconds: 3_600 },
	'31d': { period: '1d', ms: 31 * 86_400_000, seconds: 86_400 },
});

const SPAN_NAMES = /** @type {const} */ ([
	['', '1 hour'],
	['24h', '24 hours'],
	['31d', '31 days'],
]);

/** @type {import('../app.js').PageModule['open']} */
export function open(visit) {
	const span = () => SPANS[visit.query('span')] ?? HOUR;
	const findings = visit.source(() => ({ call: 'GET /admin/findings' }));
	const stats = visit.source(() => ({ call: 'GET /admin/stats' }), { every: 2_000 });
	const history = visit.source(
		() => ({ call: 'GET /admin/stats/history', query: { period: span().period, since: since(span().ms) } }),
		{ every: 15_000 },
	);

	return () => html`${head('Overview', stats, { cli: ['top', '--once'] })}
		${section(
			'What is wrong now',
			when(findings, (found) => found.findings.map(finding), {
				empty: (found) => !found.findings.length,
				none: html`<p class="notice good">Nothing. All services are there, and all queues get on.</p>`,
			}),
		)}
		${when(
			stats,
			({
				jobs,
				dead_letter: dead,
				throughput,
				latency_ms: wait,
				run_ms: run,
				workers,
				oldest_available_age_ms: oldest,
			}) => html`<section>
			${facts([
				['Waiting', jobsLink('state:available', number(jobs.available))],
				['Active', jobsLink('state:active', number(jobs.active))],
				['Scheduled', jobsLink('state:scheduled', number(jobs.scheduled))],
				['Retrying', jobsLink('state:retryable', number(jobs.retryable))],
				['Discarded', jobsLink('state:discarded', number(jobs.discarded))],
				['Dead letters', number(dead)],
				['Completed', jobsLink('state:completed', number(jobs.completed))],
				['Pushed', jobsLink('age<5m', rate(throughput.enqueued_per_minute / 60))],
				['Done', jobsLink('state:completed', rate(throughput.processed_per_minute / 60))],
				['Failed', jobsLink('state:discarded', rate(throughput.failed_per_minute / 60))],
				['Oldest waits', html`<a href=${address('/queues')}>${duration(oldest)}</a>`],
				['Wait, p50 and p99', `${percentile(wait, 'p50')}, ${percentile(wait, 'p99')}`],
				['Run, p50 and p99', `${percentile(run, 'p50')}, ${percentile(run, 'p99')}`],
				['Workers', html`<a href=${address('/workers')}>${number(workers)}</a>`],
			])}
		</section>`,
		)}
		<div class="head"><h2>Over time</h2>${tabs('span', SPAN_NAMES, 'Time')}</div>
		${when(history, ({ data }) => charts(data, stats.read.value.value?.jobs, span().seconds, 'Jobs a second'))}`;
}

/**
 * How much was pushed and done, how long jobs waited and ran, and how many there were, as far as they are counted.
 * @param {import('../openapi.js').StatisticsPoint[]} data
 * @param {import('../openapi.js').Counts | undefined} now
 */
export const charts = (data, now, seconds = 1, label = 'Jobs a minute') => {
	const length = millis(data[1]?.timestamp) - millis(data[0]?.timestamp);
	/** What the present span comes to, if it goes on as it has begun. */
	const whole = (/** @type {number} */ jobs, /** @type {{timestamp: string}} */ { timestamp }) =>
		jobs / seconds / Math.min(1, Math.max(0.1, (time() - millis(timestamp)) / length));
	return html`<div class="grid">
	<section>${plot(
		series(data, {
			pushed: (point) => whole(point.enqueued, point),
			done: (point) => whole(point.processed, point),
			failed: (point) => whole(point.failed, point),
		}),
		{ label, format: seconds === 1 ? (value) => number(Math.round(value)) : rate },
	)}</section>
	<section>${plot(series(data, { p50: (point) => point.wait_ms?.p50, p99: (point) => point.wait_ms?.p99 }), { label: 'Wait before a job starts', format: duration })}</section>
	<section>${plot(series(data, { p50: (point) => point.run_ms?.p50, p99: (point) => point.run_ms?.p99 }), { label: 'Run of a job', format: duration })}</section>
	${now ? html`<section>${plot(backlog(data, now), { label: 'Jobs that have not ended', format: number })}</section>` : nothing}
</div>`;
};

/** Rounded to a minute, so that the address stays the same for a while. */
const since = (/** @type {number} */ ms) => new Date(Math.floor((time() - ms) / 60_000) * 60_000).toISOString();

const sentence = (/** @type {string} */ words) => `${words.slice(0, 1).toUpperCase()}${words.slice(1)}.`;

/** A sentence about what is wrong, with what to do and where to look. */
const finding = (/** @type {import('../openapi.js').Finding} */ found) =>
	html`<div class="notice ${found.severity === 'problem' ? 'bad' : 'warn'}">
		<p><strong>${text(sentence(found.message), 500)}</strong> ${text(sentence(found.remedy), 500)}
			${found.link ? html`<a href=${address(found.link)} aria-label="Look at it: ${found.message}">Look</a>` : nothing}</p>
	</div>`;
