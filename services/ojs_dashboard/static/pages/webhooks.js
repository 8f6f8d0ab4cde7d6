/** Webhooks: subscriptions, how their deliveries go, and what did not go through. */

import { button, reveal } from '../actions.js';
import { moment, number, text } from '../format.js';
import { html, nothing } from '../lit-html.js';
import { badge, head, list, meter, section, tabs, tree } from '../parts.js';
import { address } from '../router.js';

/** @typedef {import('../openapi.js').Webhook} Webhook */

const STATUSES = /** @type {const} */ (['', ['failing', 'Tried again'], ['dead', 'Given up'], ['delivered', 'Delivered late']]);

export const title = () => 'Webhooks';

/** @type {import('../app.js').PageModule['open']} */
export function open(visit) {
	const hooks = visit.source(() => ({
		call: 'GET /webhooks/subscriptions',
		query: { limit: 50, cursor: visit.query('cursor') },
	}));
	const deliveries = visit.source(() => ({
		call: 'GET /webhooks/deliveries',
		query: { status: visit.query('status'), subscription_id: visit.query('subscription'), limit: 50 },
	}));
	const reload = () => {
		for (const source of [hooks, deliveries]) source.reload();
	};
	const again = (/** @type {string} */ id) =>
		button({
			label: 'Deliver now',
			needs: 'control',
			call: 'POST /webhooks/deliveries/{delivery}/retry',
			of: id,
			quick: true,
			done: ({ delivery }) => (delivery.status === 'delivered' ? 'It is delivered.' : `It failed: ${delivery.error}`),
			after: reload,
		});

	return () => html`${head('Webhooks', hooks, { actions: subscribe(reload) })}
		<section>
			${list(
				'Subscriptions',
				hooks,
				(found) => found.subscriptions,
				[
					['URL', (hook) => html`<a href=${address('/webhooks', { subscription: hook.id })}>${text(hook.url, 60)}</a>`],
					['Events', (hook) => text(hook.events.join(', '), 60)],
					['State', (hook) => html`${badge(hook.active ? 'active' : 'paused')} ${hook.paused_reason ?? nothing}`],
					['Went through', went],
					['Given up', (hook) => number(hook.dead_count), 'number'],
					['Last', (hook) => html`${moment(hook.last_delivery_at)} ${hook.last_delivery_status ?? nothing}`],
					['', (hook) => html`<span class="actions">${actions(hook, reload)}</span>`],
				],
				{
					none: 'Nobody has subscribed a URL to events.',
					mark: (hook) => (hook.consecutive_failures ? 'warn' : ''),
				},
			)}
		</section>
		${section('Deliveries that did not go through at once', [
			tabs('status', STATUSES, 'Status'),
			visit.query('subscription') ? html`<p>Of one subscription. <a href=${address('/webhooks')}>Show all</a></p>` : nothing,
			list('Deliveries', deliveries, (found) => found.deliveries, [
				['Event', (one) => tree(one.event, one.event_type, false)],
				['Status', (one) => badge(one.status)],
				['Attempts', (one) => number(one.attempts), 'number'],
				['Answer', (one) => html`${one.last_status_code || 'none'} ${text(one.error, 80)}`],
				['Created', (one) => moment(one.created_at)],
				['Next attempt', (one) => moment(one.next_attempt_at)],
				['', (one) => (one.status === 'dead' ? again(one.id) : nothing)],
			]),
		])}`;
}

function went(/** @type {Webhook} */ { success_count: through, failure_count: failed }) {
	return meter(through, through + failed, `${number(through)} of ${number(through + failed)}`, false);
}

function actions(/** @type {Webhook} */ { id, url, active }, /** @type {() => void} */ after) {
	const mine = /** @type {const} */ ({ needs: 'configure', of: id, after });
	return [
		button({
			...mine,
			label: 'Test',
			call: 'POST /webhooks/subscriptions/{subscription}/test',
			quick: true,
			done: ({ success, status_code: status, response_time_ms: took, error }) =>
				success ? `It answered ${status} after ${took} ms.` : `It failed: ${error ?? status}`,
		}),
		button({
			...mine,
			label: active ? 'Pause' : 'Resume',
			call: 'PATCH /webhooks/subscriptions/{subscription}',
			body: { active: !active },
			quick: true,
		}),
		button({
			...mine,
			label: 'Rotate secret',
			danger: true,
			call: 'POST /webhooks/subscriptions/{subscription}/rotate-secret',
			about: 'Deliveries are signed with both secrets for 24 hours.',
			done: ({ secret }) => reveal('The new secret', secret),
		}),
		button({ ...mine, label: 'Delete', danger: true, call: 'DELETE /webhooks/subscriptions/{subscription}', about: text(url) }),
	];
}

const subscribe = (/** @type {() => void} */ after) =>
	button({
		label: 'Subscribe a URL',
		needs: 'configure',
		call: 'POST /webhooks/subscriptions',
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
		body: ({ url, events, queues }) => ({
			url,
			events: names(events),
			filter: queues ? { queues: names(queues) } : undefined,
		}),
		done: ({ subscription: { secret } }) => (secret ? reveal('The secret', secret) : 'Subscribed.'),
		after,
	});

/** @returns {string[]} Names that were typed with commas between them. */
export const names = (/** @type {string} */ typed) => typed.split(/[\s,]+/).filter(Boolean);
