/** The system: services, NATS, the index, maintenance, keys and the audit. */

import { button, reveal } from '../actions.js';
import { may } from '../api.js';
import { bytes, duration, moment, number, percent, text } from '../format.js';
import { html, nothing } from '../lit-html.js';
import { badge, facts, head, list, meter, payload, section, submitted, tabs, when } from '../parts.js';
import { address, setQuery } from '../router.js';
import { ROLES } from '../words.js';
import { names } from './webhooks.js';

/** @typedef {import('../visit.js').Visit} Visit */
/** @typedef {() => import('../parts.js').Part} View */

export const title = () => 'System';

/** @type {Record<string, (visit: Visit) => View>} */
const PARTS = { '': services, unreadable, keys, audit, config };

/** @type {import('../app.js').PageModule['open']} */
export function open(visit) {
	const made = new Map(/** @type {[string, View][]} */ ([]));
	return () => {
		const name = visit.query('part');
		const part = made.get(name) ?? (PARTS[name] ?? services)(visit);
		made.set(name, part);
		const choices = /** @type {[string, string][]} */ ([
			['', 'Services'],
			['unreadable', 'Unreadable records'],
			...(may('admin')
				? [
						['keys', 'Keys'],
						['audit', 'Audit'],
					]
				: []),
			['config', 'Settings'],
		]);
		return html`${head('System', { ask: () => ({ call: 'GET /health' }) }, { cli: ['doctor'], actions: html`<a href=${address('/ojs/v1/openapi.json')}>Description of the API</a>` })}
			${tabs('part', choices, 'Part')} ${part()}`;
	};
}

/** @returns {View} */
function services(/** @type {Visit} */ visit) {
	const health = visit.source(() => ({ call: 'GET /health' }));
	const processes = visit.source(() => ({ call: 'GET /admin/services' }));
	const debug = visit.source(() => ({ call: 'GET /debug/status' }));
	const maintenance = visit.source(() => ({ call: 'GET /admin/system/maintenance' }), { every: 10_000 });

	return () => html`${when(health, ({ status, version, uptime_seconds: up, backend, services: { missing }, storage }) =>
		section('Health', [
			facts([
				['State', badge(status)],
				['Specification', text(version)],
				['Up for', duration(up * 1_000)],
				['NATS', html`${badge(backend.status)} ${duration(backend.latency_ms)}`],
				['Missing services', missing.length ? html`<span class="badge problem">${missing.join(', ')}</span>` : 'none'],
			]),
			...storage.levels.map(
				(level) =>
					html`<div>${meter(level.used_bytes, level.limit_bytes, `${level.of}: ${bytes(level.used_bytes)} of ${bytes(level.limit_bytes)}`)}</div>`,
			),
		]),
	)}
		${section(
			'Processes',
			list('Processes', processes, (found) => found.services, [
				['Service', (one) => one.role],
				['Process', (one) => text(one.instance, 60)],
				['Version', (one) => text(one.version)],
				['Since', (one) => moment(one.since)],
				['Last heard', (one) => moment(one.at)],
			]),
		)}
		${when(debug, ({ projector, nats_server_version: nats }) =>
			section(
				'Index',
				facts([
					['Built', percent(projector?.index_progress)],
					['Behind', duration(projector?.lag_ms)],
					['Records applied', number(projector?.applied)],
					['Events relayed', number(projector?.relayed)],
					['NATS server', text(nats)],
				]),
			),
		)}
		${when(maintenance, ({ maintenance: now, reason, enabled_at: since, ends_at: end }) =>
			section('Maintenance', [
				now
					? html`<p><strong>There is maintenance</strong> since ${moment(since)}: nothing is fetched. ${text(reason, 300)} ${end ? html`It ends ${moment(end)}.` : nothing}</p>`
					: html`<p>There is none: jobs are fetched.</p>`,
				button({
					label: now ? 'End maintenance' : 'Begin maintenance',
					needs: 'admin',
					danger: !now,
					call: 'POST /admin/system/maintenance',
					fields: now ? [] : [{ name: 'reason', label: 'Reason' }],
					body: (values) => ({ enabled: !now, reason: values['reason'] || undefined }),
					after: maintenance.reload,
				}),
			]),
		)}`;
}

/** @returns {View} */
function unreadable(/** @type {Visit} */ visit) {
	const records = visit.source(() => ({
		call: 'GET /admin/unreadable',
		query: { per_page: 50, cursor: visit.query('cursor') },
	}));
	const remove = (/** @type {string} */ kind, /** @type {string} */ key) =>
		button({
			label: 'Remove',
			needs: 'destroy',
			danger: true,
			call: 'DELETE /admin/unreadable/{kind}/{record}',
			of: [kind, key],
			about: 'It is gone for good.',
			after: records.reload,
		});
	return () =>
		section(
			'Records that cannot be read',
			list(
				'Unreadable records',
				records,
				(found) => found.items,
				[
					['Kind', (one) => one.kind],
					['Record', (one) => text(one.key, 80)],
					['Why', (one) => text(one.problem, 200)],
					['Since', (one) => moment(one.stored_at)],
					['Size', (one) => bytes(one.size), 'number'],
					['', (one) => remove(one.kind, one.key)],
				],
				{ none: 'All records can be read.' },
			),
		);
}

/** @returns {View} */
function keys(/** @type {Visit} */ visit) {
	const all = visit.source(() => ({ call: 'GET /admin/keys' }), { every: 0 }); // each look is in the audit
	const done = (/** @type {import('../openapi.js').MadeKey} */ made) => reveal('The key', made.token);
	const create = button({
		label: 'New key',
		needs: 'admin',
		call: 'POST /admin/keys',
		fields: [
			{ name: 'name', label: 'Name', required: true },
			{
				name: 'role',
				label: 'Role',
				kind: 'choice',
				choices: ROLES,
				value: 'viewer',
			},
			{ name: 'queues', label: 'Queues', hint: 'Patterns with commas between them; empty for all.' },
			{ name: 'expires_in', label: 'Ends after', hint: 'P30D, PT12H; empty for never.' },
		],
		body: ({ name, role, queues, expires_in }) => ({
			name,
			role,
			queues: queues ? names(queues) : undefined,
			expires_in: expires_in || undefined,
		}),
		cli: ({ name, role }) => ['keys', 'create', '--role', role, '--name', name],
		done,
		after: all.reload,
	});
	const of = (/** @type {import('../openapi.js').Key} */ { id, state }) =>
		state !== 'live'
			? nothing
			: html`<span class="actions">
				${button({ label: 'Rotate', needs: 'admin', call: 'POST /admin/keys/{key_id}/rotate', of: id, cli: ['keys', 'rotate', id], about: 'A new key takes its place; the old one ends a day later.', done, after: all.reload })}
				${button({ label: 'Revoke', needs: 'admin', danger: true, call: 'DELETE /admin/keys/{key_id}', of: id, cli: ['keys', 'revoke', id], about: 'Whoever uses it is refused at once.', after: all.reload })}
			</span>`;
	return () =>
		section(
			'Keys',
			list(
				'Keys',
				all,
				(found) => found.keys,
				[
					['Key', (key) => html`<span class="id">${text(key.id)}</span>`],
					['Name', (key) => text(key.name, 60)],
					['Role', (key) => badge(key.role)],
					['State', (key) => badge(key.state)],
					['Queues', (key) => text((key.queues ?? []).join(', ') || 'all', 60)],
					['Ends', (key) => moment(key.expires_at)],
					['Last used', (key) => moment(key.used_at)],
					['', of],
				],
				{ none: 'There are no keys: whoever reaches the server may do everything.' },
			),
			create,
		);
}

/** What the audit is asked for: a member of its query, its name, and what is an example. */
const ASKED = [
	['principal', 'Who'],
	['operation', 'Operation', 'pauseQueue'],
	['event_type', 'What', 'auth.*'],
	['target', 'Of', 'mail'],
	['outcome', 'Outcome', '', 'success', 'failure'],
	['since', 'Since', '2026-11-26T08:00:00Z'],
	['until', 'Until'],
];

/** @returns {View} */
function audit(/** @type {Visit} */ visit) {
	const asked = () => Object.fromEntries(ASKED.map(([name = '']) => [name, visit.query(name)]));
	// Each look is an entry itself, so it isn't repeated by itself.
	const entries = visit.source(
		() => ({ call: 'GET /admin/audit', query: { limit: 100, cursor: visit.query('cursor'), ...asked() } }),
		{ every: 0 },
	);
	const take = (/** @type {Event} */ event) => setQuery({ ...submitted(event), cursor: null });
	const field = (/** @type {string[]} */ [name = '', label = '', hint = '', ...choices]) =>
		choices.length
			? html`<select name=${name} aria-label=${label}>${['', ...choices].map((one) => html`<option ?selected=${one === visit.query(name)} value=${one}>${one || label}</option>`)}</select>`
			: html`<input name=${name} type="search" aria-label=${label} placeholder=${hint ? `${label}: ${hint}` : label} .value=${visit.query(name)} />`;
	return () =>
		section('Audit', [
			html`<form class="search" role="search" @submit=${take}>${ASKED.map(field)}<button type="submit">Filter</button></form>`,
			list(
				'Audit',
				entries,
				(found) => found.entries,
				[
					['When', (one) => moment(one.timestamp)],
					['What', (one) => text(one.event_type)],
					['Who', (one) => text(one.principal, 60)],
					['From', (one) => text(one.source_ip, 40)],
					['Operation', (one) => text(one.detail.operation, 60)],
					['Of', (one) => text(Object.values(one.detail.target).join(' '), 60)],
					['Outcome', (one) => html`${badge(one.outcome)} ${text(one.detail.reason ?? one.detail.status ?? ' ', 80)}`],
				],
				{ none: 'Nothing like this was recorded.' },
			),
		]);
}

/** @returns {View} */
function config(/** @type {Visit} */ visit) {
	const settings = visit.source(() => ({ call: 'GET /admin/system/config' }), { every: 60_000 });
	return () => when(settings, (found) => payload('What this gateway is set to', found));
}
