/** The overview: what is wrong now, and how much is done. */

import { duration, millis, number, rate, text } from '../format.js';
import { html, nothing } from '../lit-html.js';
import { facts, head, jobsLink, plot, section, tabs, when } from '../parts.js';

export const title = () => 'Overview';

const SPANS = /** @type {Record<string, {period: string, ms: number, seconds: number}>} */ ({
	'': { period: '1m', ms: 3_600_000, seconds: 60 },
	'24h': { period: '1h', ms: 86_400_000, seconds: 3_600 },
	'31d': { period: '1d', ms: 31 * 86_400_000, seconds: 86_400 },
});

/** @type {import('../app.js').PageModule['open']} */
export function open(visit) {
	const span = () => SPANS[visit.query('span')] ?? SPANS[''] ?? { period: '1m', ms: 0, seconds: 60 };
	const findings = visit.source(() => ({ path: '/admin/findings' }), { every: 5_000 });
	const stats = visit.source(() => ({ path: '/admin/stats' }), { every: 2_000 });
	const history = visit.source(
		() => ({ path: '/admin/stats/history', query: { period: span().period, since: since(span()) } }),
		{ every: 15_000 },
	);

	return () => html`${head('Overview', { path: '/admin/stats', cli: ['stats'] })}
		${section(
			'What is wrong now',
			when(findings, ({ findings: all }) => all.map(finding), {
				empty: ({ findings: all }) => !all.length,
				none: html`<p class="notice good">Nothing. All services are there, and all queues get on.</p>`,
			}),
		)}
		${when(
			stats,
			(now) => html`<section>
			${facts([
				['Waiting', jobsLink('state:available', number(now.jobs.available))],
				['Active', jobsLink('state:active', number(now.jobs.active))],
				['Scheduled', jobsLink('state:scheduled', number(now.jobs.scheduled))],
				['Retrying', jobsLink('state:retryable', number(now.jobs.retryable))],
				['Dead letters', jobsLink('state:discarded', number(now.jobs.discarded))],
				['Completed', jobsLink('state:completed', number(now.jobs.completed))],
				['Pushed', rate(now.throughput.enqueued_per_minute / 60)],
				['Done', rate(now.throughput.processed_per_minute / 60)],
				['Failed', rate(now.throughput.failed_per_minute / 60)],
				['Wait, p50 and p99', `${duration(now.latency_ms.p50)}, ${duration(now.latency_ms.p99)}`],
				['Run, p50 and p99', `${duration(now.run_ms.p50)}, ${duration(now.run_ms.p99)}`],
				['Workers', html`<a href="/workers">${number(now.workers)}</a>`],
			])}
		</section>`,
		)}
		<div class="head"><h2>Over time</h2>${tabs(
			'span',
			[
				['', '1 hour'],
				['24h', '24 hours'],
				['31d', '31 days'],
			],
			'Time',
		)}</div>
		${when(
			history,
			({ data }) => html`<div class="grid">
			<section>${plot(
				lines(
					data,
					[
						['pushed', 'enqueued'],
						['done', 'processed'],
						['failed', 'failed'],
					],
					span().seconds,
				),
				{ label: 'Jobs a second', format: (value) => rate(value) },
			)}</section>
			<section>${plot(
				lines(
					data,
					[
						['p50', 'latency_p50_ms'],
						['p99', 'latency_p99_ms'],
					],
					1,
				),
				{ label: 'Wait before a job starts', format: (value) => duration(value) },
			)}</section>
		</div>`,
		)}`;
}

/** Unix ms rounded to a minute, so that the address stays the same for a while. */
const since = (/** @type {{ms: number}} */ span) =>
	new Date(Math.floor((Date.now() - span.ms) / 60_000) * 60_000).toISOString();

/** A sentence about what is wrong, with what to do and where to look. */
function finding(/** @type {any} */ found) {
	return html`<div class="notice ${found.severity === 'problem' ? 'bad' : 'warn'}">
		<p><strong>${text(found.message, 500)}</strong></p>
		<p>${text(found.remedy, 500)} ${found.link ? html`<a href=${found.link}>Look</a>` : nothing}</p>
	</div>`;
}

/** @returns {{name: string, points: [number, number | null][]}[]} */
function lines(/** @type {any[]} */ data, /** @type {[string, string][]} */ members, /** @type {number} */ by) {
	return members.map(([name, member]) => ({
		name,
		points: data.map((point) => [millis(point.timestamp), point[member] / by]),
	}));
}
