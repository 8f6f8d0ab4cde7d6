/** The system: services, NATS, the index, maintenance, keys and the audit. */

import { button } from '../actions.js';
import { may } from '../api.js';
import { bytes, duration, moment, number, percent, text } from '../format.js';
import { html } from '../lit-html.js';
import { badge, facts, head, meter, payload, section, table, tabs, when } from '../parts.js';

export const title = () => 'System';

/** @type {Record<string, (visit: import('../visit.js').Visit) => () => import('../parts.js').Part>} */
const PARTS = { '': services, unreadable, keys, audit, config };

/** @type {import('../app.js').PageModule['open']} */
export function open(visit) {
	const parts = new Map(/** @type {[string, () => import('../parts.js').Part][]} */ ([]));
	return () => {
		const name = visit.query('part');
		const make = PARTS[name] ?? services;
		const part = parts.get(name) ?? make(visit);
		parts.set(name, part);
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
		return html`${head('System', { path: '/health', cli: ['doctor'], actions: html`<a href="/ojs/v1/openapi.json">Description of the API</a>` })}
			${tabs('part', choices, 'Part')} ${part()}`;
	};
}

/** @returns {() => import('../parts.js').Part} */
function services(/** @type {import('../visit.js').Visit} */ visit) {
	const health = visit.source(() => ({ path: '/health' }), { every: 5_000 });
	const processes = visit.source(() => ({ path: '/admin/services' }), { every: 5_000 });
	const debug = visit.source(() => ({ path: '/debug/status' }), { every: 5_000 });
	const maintenance = visit.source(() => ({ path: '/admin/system/maintenance' }), { every: 10_000 });

	return () => html`${when(health, (now) =>
		section('Health', [
			facts([
				['State', badge(now.status)],
				['NATS', html`${badge(now.backend.status)} ${duration(now.backend.latency_ms)}`],
				[
					'Missing services',
					now.services.missing.length ? html`<span class="badge problem">${now.services.missing.join(', ')}</span>` : 'none',
				],
			]),
			...now.storage.levels.map(
				(/** @type {any} */ level) =>
					html`<div>${meter(level.used_bytes, level.limit_bytes, `${level.of}: ${bytes(level.used_bytes)} of ${bytes(level.limit_bytes)}`)}</div>`,
			),
		]),
	)}
		${section(
			'Processes',
			when(processes, ({ services: all }) =>
				table(
					/** @type {any[]} */ (all),
					[
						{ title: 'Service', cell: (one) => one.role },
						{ title: 'Process', cell: (one) => text(one.instance, 60) },
						{ title: 'Version', cell: (one) => text(one.version) },
						{ title: 'Since', cell: (one) => moment(one.since) },
						{ title: 'Last heard', cell: (one) => moment(one.at) },
					],
					{ label: 'Processes' },
				),
			),
		)}
		${when(debug, (now) =>
			section(
				'Index',
				facts([
					['Built', percent(now.projector?.index_progress)],
					['Behind', duration(now.projector?.lag_ms)],
					['Records applied', number(now.projector?.applied)],
					['Events relayed', number(now.projector?.relayed)],
					['NATS server', text(now.nats_server_version)],
				]),
			),
		)}
		${when(maintenance, (now) =>
			section('Maintenance', [
				html`<p>${now.maintenance ? html`<strong>There is maintenance:</strong> nothing is fetched. ${text(now.reason, 300)}` : 'There is none: jobs are fetched.'}</p>`,
				button(
					{
						label: now.maintenance ? 'End maintenance' : 'Begin maintenance',
						needs: 'admin',
						danger: !now.maintenance,
						method: 'POST',
						path: '/admin/system/maintenance',
						fields: now.maintenance ? [] : [{ name: 'reason', label: 'Reason' }],
						body: (values) => ({ enabled: !now.maintenance, ...(values['reason'] ? { reason: values['reason'] } : {}) }),
						cli: null,
					},
					maintenance.reload,
				),
			]),
		)}`;
}

/** @returns {() => import('../parts.js').Part} */
function unreadable(/** @type {import('../visit.js').Visit} */ visit) {
	const records = visit.source(() => ({ path: '/admin/unreadable', query: { per_page: 50 } }), { every: 10_000 });
	return () =>
		section(
			'Records that cannot be read',
			when(
				records,
				(found) =>
					table(
						/** @type {any[]} */ (found.items),
						[
							{ title: 'Kind', cell: (one) => one.kind },
							{ title: 'Record', cell: (one) => text(one.key, 80) },
							{ title: 'Why', cell: (one) => text(one.problem, 200) },
							{
								title: '',
								cell: (one) =>
									button(
										{
											label: 'Remove',
											needs: 'destroy',
											danger: true,
											method: 'DELETE',
											path: `/admin/unreadable/${one.kind}/${encodeURIComponent(one.key)}`,
											cli: null,
											about: 'It is gone for good.',
										},
										records.reload,
									),
							},
						],
						{ label: 'Unreadable records' },
					),
				{ empty: (found) => !found.items.length, none: 'All records can be read.' },
			),
		);
}

/** @returns {() => import('../parts.js').Part} */
function keys(/** @type {import('../visit.js').Visit} */ visit) {
	const all = visit.source(() => ({ path: '/admin/keys' }), { every: 0 }); // each look is in the audit
	const shown = (/** @type {any} */ answer) => {
		prompt('The key, shown this once:', answer.token);
		return 'Made.';
	};
	const create = button(
		{
			label: 'New key',
			needs: 'admin',
			method: 'POST',
			path: '/admin/keys',
			fields: [
				{ name: 'name', label: 'Name', required: true },
				{
					name: 'role',
					label: 'Role',
					kind: 'choice',
					choices: ['producer', 'worker', 'viewer', 'operator', 'admin'],
					value: 'viewer',
				},
				{ name: 'queues', label: 'Queues', hint: 'Patterns with commas between them; empty for all.' },
			],
			body: (values) => ({
				name: values['name'],
				role: values['role'],
				...(values['queues'] ? { queues: values['queues'].split(',').map((one) => one.trim()) } : {}),
			}),
			cli: (values) => ['keys', 'create', '--role', values['role'] ?? '', '--name', values['name'] ?? ''],
			done: shown,
		},
		all.reload,
	);
	return () =>
		section(
			'Keys',
			when(
				all,
				(found) =>
					table(
						/** @type {any[]} */ (found.keys),
						[
							{ title: 'Key', cell: (key) => html`<span class="id">${text(key.id)}</span>` },
							{ title: 'Name', cell: (key) => text(key.name, 60) },
							{ title: 'Role', cell: (key) => badge(key.role) },
							{ title: 'Queues', cell: (key) => text((key.queues ?? []).join(', ') || 'all', 60) },
							{ title: 'Ends', cell: (key) => moment(key.expires_at) },
							{ title: 'Last used', cell: (key) => moment(key.used_at) },
							{
								title: '',
								cell: (key) => html`<span class="actions">
				${button({ label: 'Rotate', needs: 'admin', method: 'POST', path: `/admin/keys/${key.id}/rotate`, cli: ['keys', 'rotate', key.id], about: 'A new key takes its place; the old one ends a day later.', done: shown }, all.reload)}
				${button({ label: 'Revoke', needs: 'admin', danger: true, method: 'DELETE', path: `/admin/keys/${key.id}`, cli: ['keys', 'revoke', key.id], about: 'Whoever uses it is refused at once.' }, all.reload)}
			</span>`,
							},
						],
						{ label: 'Keys' },
					),
				{
					empty: (found) => !found.keys.length,
					none: 'There are no keys: whoever reaches the server may do everything.',
				},
			),
			create,
		);
}

/** @returns {() => import('../parts.js').Part} */
function audit(/** @type {import('../visit.js').Visit} */ visit) {
	// Each look is an entry itself, so it isn't repeated by itself.
	const found = visit.source(() => ({ path: '/admin/audit', query: { limit: 100 } }), { every: 0 });
	return () =>
		section(
			'Audit',
			when(
				found,
				({ entries }) =>
					table(
						/** @type {any[]} */ (entries),
						[
							{ title: 'When', cell: (one) => moment(one.timestamp) },
							{ title: 'What', cell: (one) => text(one.event_type) },
							{ title: 'Who', cell: (one) => text(one.principal, 60) },
							{ title: 'From', cell: (one) => text(one.source_ip, 40) },
							{ title: 'Operation', cell: (one) => text(one.detail.operation, 60) },
							{ title: 'Of', cell: (one) => text(Object.values(one.detail.target ?? {}).join(' '), 60) },
							{ title: 'Outcome', cell: (one) => badge(one.outcome) },
						],
						{ label: 'Audit' },
					),
				{ empty: ({ entries }) => !entries.length, none: 'Nothing was recorded yet.' },
			),
		);
}

/** @returns {() => import('../parts.js').Part} */
function config(/** @type {import('../visit.js').Visit} */ visit) {
	const settings = visit.source(() => ({ path: '/admin/system/config' }), { every: 60_000 });
	return () => when(settings, (found) => payload('What this gateway is set to', found));
}
