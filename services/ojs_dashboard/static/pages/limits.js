/** Limits of keys: how much of each is used, and who waits. */

import { button } from '../actions.js';
import { lasting, moment, number, text } from '../format.js';
import { html, nothing } from '../lit-html.js';
import { head, list, meter, optional, search } from '../parts.js';
import { address } from '../router.js';

/** @typedef {import('../openapi.js').Limit} Limit */

export const title = () => 'Limits';

/** @type {import('../app.js').PageModule['open']} */
export function open(visit) {
	const limits = visit.source(
		() => ({ call: 'GET /rate-limits', query: { per_page: 50, search: visit.query('q'), cursor: visit.query('cursor') } }),
		{
			every: 3_000,
		},
	);
	const after = limits.reload;
	const ended = (/** @type {string} */ of) =>
		button({ label: 'End override', needs: 'configure', call: 'DELETE /rate-limits/{key}/override', of, quick: true, after });
	return () => html`${head('Limits', limits, { actions: override(null, after) })}
		${search('q', 'Part of a key')}
		<section>
			${list(
				'Limits',
				limits,
				(found) => found.items,
				[
					['Key', (limit) => text(limit.key, 80)],
					['At a time', ({ concurrency }) => (concurrency ? used(concurrency.active, concurrency.limit) : '–')],
					['Starts', starts],
					['Waiting', (limit) => number(limit.waiting_count), 'number'],
					['Until', (limit) => moment(limit.rate_limit_until ?? limit.throttle?.next_allowed_at)],
					[
						'Overridden',
						({ override: by }) => (by ? optional(by.expires_at ?? '', (end) => (end ? moment(end) : 'yes')) : '–'),
					],
					[
						'',
						(limit) =>
							html`<span class="actions">${override(limit, after)} ${limit.override ? ended(limit.key) : nothing}</span>`,
					],
				],
				{
					none: visit.query('q')
						? html`No limit that was used within the last month has ${text(visit.query('q'), 60)} in its key. <a href=${address('/limits')}>Show all</a>`
						: 'No job has named a limit within the last month.',
					mark: (limit) => (limit.waiting_count ? 'warn' : ''),
				},
			)}
		</section>`;
}

const used = (/** @type {number} */ now, /** @type {number} */ most, words = '') =>
	meter(now, most, `${number(now)} of ${number(most)}${words}`);

function starts(/** @type {Limit} */ { rate, throttle }) {
	if (rate) return used(rate.current_count, rate.limit, ` in ${lasting(rate.period)}`);
	return throttle ? `${number(throttle.limit)} in ${lasting(throttle.period)}, evenly` : '–';
}

/** The button that sets a key's limit in place of what its jobs say. */
function override(/** @type {Limit | null} */ limit, /** @type {() => void} */ after) {
	return button({
		label: limit ? 'Override' : 'Override a key',
		needs: 'configure',
		call: 'PUT /rate-limits/{key}/override',
		of: ({ key }) => limit?.key ?? key,
		fields: [
			...(limit ? [] : [{ name: 'key', label: 'Key', required: true }]),
			...fields(limit?.concurrency?.limit, limit?.rate),
			{ name: 'expires_at', label: 'Until', hint: 'An RFC 3339 time, or empty for as long as nobody ends it.' },
		],
		body: rates,
		after,
	});
}

/**
 * What is asked for about a limit: jobs at a time, and starts in a period; with what they are now.
 * @param {number | undefined} most
 * @param {{limit: number, period: string} | undefined} rate
 * @returns {import('../actions.js').Field[]}
 */
export const fields = (most, { limit, period } = { limit: NaN, period: 'PT1M' }) => [
	{
		name: 'concurrency',
		label: 'Jobs at a time',
		kind: 'number',
		min: 0,
		value: `${most ?? ''}`,
		hint: 'Empty for any number.',
	},
	{ name: 'limit', label: 'Starts in a period', kind: 'number', min: 1, value: `${limit || ''}` },
	{ name: 'period', label: 'Period', value: period, hint: 'As ISO 8601 writes it: PT1S, PT1M, PT1H.' },
];

/** What was typed about a limit, as requests have it; empty fields are left out. */
export const rates = (/** @type {import('../actions.js').Values} */ { concurrency, limit, period, expires_at }) => ({
	concurrency: concurrency ? Number(concurrency) : undefined,
	rate: limit ? { limit: Number(limit), period } : undefined,
	...(expires_at ? { expires_at } : {}),
});
