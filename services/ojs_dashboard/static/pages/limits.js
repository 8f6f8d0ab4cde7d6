/** Limits of keys: how much of each is used, and who waits. */

import { button } from '../actions.js';
import { moment, number, text } from '../format.js';
import { html, nothing } from '../lit-html.js';
import { head, meter, pages, table, when } from '../parts.js';

export const title = () => 'Limits';

/** @type {import('../app.js').PageModule['open']} */
export function open(visit) {
	const limits = visit.source(() => ({ path: '/rate-limits', query: { per_page: 50, page: visit.query('page') } }), {
		every: 3_000,
	});
	return () => html`${head('Limits', { path: '/rate-limits', cli: null, actions: override(null, limits.reload) })}
		<section>
			${when(
				limits,
				(found) =>
					html`${table(
						/** @type {any[]} */ (found.items),
						[
							{ title: 'Key', cell: (limit) => text(limit.key, 80) },
							{
								title: 'At a time',
								cell: (limit) =>
									limit.concurrency
										? meter(
												limit.concurrency.active,
												limit.concurrency.limit,
												`${number(limit.concurrency.active)} of ${number(limit.concurrency.limit)}`,
											)
										: '–',
							},
							{
								title: 'Starts',
								cell: (limit) =>
									limit.rate
										? meter(
												limit.rate.current_count,
												limit.rate.limit,
												`${number(limit.rate.current_count)} of ${number(limit.rate.limit)} in ${limit.rate.period}`,
											)
										: limit.throttle
											? `${number(limit.throttle.limit)} in ${limit.throttle.period}, evenly`
											: '–',
							},
							{ title: 'Waiting', cell: (limit) => number(limit.waiting_count), number: true },
							{ title: 'Until', cell: (limit) => moment(limit.rate_limit_until) },
							{
								title: 'Overridden',
								cell: (limit) =>
									limit.override ? (limit.override.expires_at ? moment(limit.override.expires_at) : 'yes') : '–',
							},
							{
								title: '',
								cell: (limit) =>
									html`<span class="actions">${override(limit, limits.reload)} ${limit.override ? button({ label: 'End override', needs: 'configure', method: 'DELETE', path: `/rate-limits/${encodeURIComponent(limit.key)}/override`, cli: null, quick: true }, limits.reload) : nothing}</span>`,
							},
						],
						{ label: 'Limits', mark: (limit) => (limit.waiting_count ? 'warn' : '') },
					)} ${pages(found.pagination)}`,
				{ empty: (found) => !found.items.length, none: 'No job has named a limit within the last month.' },
			)}
		</section>`;
}

function override(/** @type {any} */ limit, /** @type {() => void} */ then) {
	const key = limit?.key ?? '';
	return button(
		{
			label: limit ? 'Override' : 'Override a key',
			needs: 'configure',
			method: 'PUT',
			path: (values) => `/rate-limits/${encodeURIComponent(key || (values['key'] ?? ''))}/override`,
			fields: [
				...(limit ? [] : [{ name: 'key', label: 'Key', required: true }]),
				{
					name: 'concurrency',
					label: 'Jobs at a time',
					kind: /** @type {const} */ ('number'),
					min: 0,
					value: String(limit?.concurrency?.limit ?? ''),
					required: true,
				},
				{ name: 'expires_at', label: 'Until', hint: 'An RFC 3339 time, or empty for as long as nobody ends it.' },
			],
			body: (values) => ({
				concurrency: Number(values['concurrency']),
				...(values['expires_at'] ? { expires_at: values['expires_at'] } : {}),
			}),
			cli: null,
		},
		then,
	);
}
