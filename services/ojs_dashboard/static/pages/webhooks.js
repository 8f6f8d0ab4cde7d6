/** Webhooks: subscriptions, how their deliveries go, and what did not go through. */

import { button } from '../actions.js';
import { moment, number, text } from '../format.js';
import { html, nothing } from '../lit-html.js';
import { badge, head, meter, pages, section, table, tabs, when } from '../parts.js';
import { address } from '../router.js';

export const title = () => 'Webhooks';

/** @type {import('../app.js').PageModule['open']} */
export function open(visit) {
	const subscriptions = visit.source(
		() => ({ path: '/webhooks/subscriptions', query: { limit: 50, cursor: visit.query('cursor') } }),
		{ every: 5_000 },
	);
	const deliveries = visit.source(
		() => ({
			path: '/webhooks/deliveries',
			query: { status: visit.query('status'), subscription_id: visit.query('subscription'), limit: 50 },
		}),
		{ every: 5_000 },
	);
	const reload = () => {
		for (const source of [subscriptions, deliveries]) source.reload();
	};

	return () => html`${head('Webhooks', { path: '/webhooks/subscriptions', cli: null, actions: subscribe(reload) })}
		<section>
			${when(
				subscriptions,
				(found) =>
					html`${table(
						/** @type {any[]} */ (found.subscriptions),
						[
							{
								title: 'URL',
								cell: (hook) => html`<a href=${address('/webhooks', { subscription: hook.id })}>${text(hook.url, 60)}</a>`,
							},
							{ title: 'Events', cell: (hook) => text(hook.events.join(', '), 60) },
							{
								title: 'State',
								cell: (hook) =>
									html`${badge(hook.active ? 'active' : 'paused')} ${hook.paused_reason ? text(hook.paused_reason, 80) : nothing}`,
							},
							{
								title: 'Went through',
								cell: (hook) =>
									meter(
										hook.success_count,
										hook.success_count + hook.failure_count,
										`${number(hook.success_count)} of ${number(hook.success_count + hook.failure_count)}`,
									),
							},
							{ title: 'Given up', cell: (hook) => number(hook.dead_count), number: true },
							{ title: 'Last', cell: (hook) => html`${moment(hook.last_delivery_at)} ${hook.last_delivery_status ?? nothing}` },
							{ title: '', cell: (hook) => html`<span class="actions">${actions(hook, reload)}</span>` },
						],
						{ label: 'Subscriptions', mark: (hook) => (hook.consecutive_failures ? 'warn' : '') },
					)} ${pages(found.pagination)}`,
				{ empty: (found) => !found.subscriptions.length, none: 'Nobody has subscribed a URL to events.' },
			)}
		</section>
		${section('Deliveries that did not go through at once', [
			tabs(
				'status',
				[
					['', 'All'],
					['failing', 'Tried again'],
					['dead', 'Given up'],
					['delivered', 'Delivered late'],
				],
				'Status',
			),
			visit.query('subscription') ? html`<p>Of one subscription. <a href="/webhooks">Show all</a></p>` : nothing,
			when(
				deliveries,
				(found) =>
					table(
						/** @type {any[]} */ (found.deliveries),
						[
							{ title: 'Event', cell: (one) => text(one.event_type) },
							{ title: 'Status', cell: (one) => badge(one.status) },
							{ title: 'Attempts', cell: (one) => number(one.attempts), number: true },
							{ title: 'Answer', cell: (one) => html`${one.last_status_code || 'none'} ${text(one.error, 80)}` },
							{ title: 'Created', cell: (one) => moment(one.created_at) },
							{ title: 'Next attempt', cell: (one) => moment(one.next_attempt_at) },
							{
								title: '',
								cell: (one) =>
									button(
										{
											label: 'Deliver now',
											needs: 'control',
											method: 'POST',
											path: `/webhooks/deliveries/${one.id}/retry`,
											cli: null,
											quick: true,
										},
										reload,
									),
							},
						],
						{ label: 'Deliveries' },
					),
				{ empty: (found) => !found.deliveries.length, none: 'There is none.' },
			),
		])}`;
}

function actions(/** @type {any} */ hook, /** @type {() => void} */ then) {
	const path = `/webhooks/subscriptions/${hook.id}`;
	return [
		button(
			{
				label: 'Test',
				needs: 'configure',
				method: 'POST',
				path: `${path}/test`,
				cli: null,
				quick: true,
				done: (answer) =>
					answer.success
						? `It answered ${answer.status_code} after ${answer.response_time_ms} ms.`
						: `It failed: ${answer.error ?? answer.status_code}`,
			},
			then,
		),
		button(
			{
				label: hook.active ? 'Pause' : 'Resume',
				needs: 'configure',
				method: 'PATCH',
				path,
				body: { active: !hook.active },
				cli: null,
				quick: true,
			},
			then,
		),
		button(
			{
				label: 'Rotate secret',
				needs: 'configure',
				danger: true,
				method: 'POST',
				path: `${path}/rotate-secret`,
				cli: null,
				about: 'Deliveries are signed with both secrets for 24 hours.',
				done: (answer) => {
					prompt('The new secret, shown this once:', answer.secret);
					return 'Rotated.';
				},
			},
			then,
		),
		button({ label: 'Delete', needs: 'destroy', danger: true, method: 'DELETE', path, cli: null, about: text(hook.url) }, then),
	];
}

function subscribe(/** @type {() => void} */ then) {
	return button(
		{
			label: 'Subscribe a URL',
			needs: 'configure',
			method: 'POST',
			path: '/webhooks/subscriptions',
			fields: [
				{ name: 'url', label: 'URL', required: true },
				{
					name: 'events',
					label: 'Events',
					value: 'job.completed, job.discarded',
					hint: 'Types with commas between them; job.* for all of jobs.',
				},
				{ name: 'queues', label: 'Queues', hint: 'Empty for all.' },
			],
			body: (values) => ({
				url: values['url'],
				events: names(values['events']),
				...(values['queues'] ? { filter: { queues: names(values['queues']) } } : {}),
			}),
			cli: null,
		},
		then,
	);
}

const names = (/** @type {string | undefined} */ typed) =>
	(typed ?? '')
		.split(',')
		.map((name) => name.trim())
		.filter(Boolean);
