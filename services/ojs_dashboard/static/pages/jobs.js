/** Jobs: found by a filter, counted exactly, and changed one by one, selected, or all that match. */

import { button, json } from '../actions.js';
import { may, request, written } from '../api.js';
import { beyondBulk, listed, parsed, replaced, SUGGESTIONS } from '../filter.js';
import { count, millis, moment, number, text, time } from '../format.js';
import { html, nothing } from '../lit-html.js';
import { asksFor, OPERATIONS, ofAll, progress, typed } from '../matching.js';
import { badge, head, jobLink, list, pages, queueLink, search, table, tree, when } from '../parts.js';
import { address, go, place } from '../router.js';
import { signal } from '../signals-core.js';
import { JOB_STATES, OF_SERVER, OPTIONS } from '../words.js';

export const title = () => 'Jobs';

const PRESETS = /** @type {const} */ ([
	['', 'All'],
	['state:discarded', 'Discarded'],
	['state:retryable', 'Retrying'],
	['state:scheduled', 'Scheduled'],
	['state:active', 'Active'],
	['state:available', 'Waiting'],
]);
/** @typedef {import('../openapi.js').Job} Job */

/** @type {import('../app.js').PageModule['open']} */
export function open(visit) {
	const line = () => visit.query('q');
	const unique = () => visit.query('view') === 'unique';
	const asked = () => ({ ...listed(parsed(line())), limit: '50', cursor: visit.query('cursor') });
	const jobs = visit.source(
		() => (parsed(line()).id || parsed(line()).problems.length || unique() ? null : { call: 'GET /jobs', query: asked() }),
		{
			every: 10_000,
			on: { types: 'job.*' },
		},
	);
	const queues = visit.source(() => ({ call: 'GET /admin/queues', query: { per_page: 100 } }), { every: 60_000 });
	const fingerprints = visit.source(() =>
		unique() ? { call: 'GET /unique-jobs', query: { cursor: visit.query('cursor') } } : null,
	);
	/** Of this page and filter alone. */
	const selected = signal(/** @type {ReadonlySet<string>} */ (new Set()));
	visit.finally(place.subscribe(() => (selected.value = new Set())));

	const toggle = (/** @type {string} */ id) => {
		const next = new Set(selected.peek());
		if (!next.delete(id)) next.add(id);
		selected.value = next;
	};

	const ofSelected = (/** @type {import('../matching.js').Operation} */ operation) => {
		const ids = [...selected.peek()];
		return button({
			label: `${operation.label} ${count(ids.length, 'job')}`,
			needs: operation.needs,
			call: /** @type {const} */ (`POST /jobs/bulk/${operation.name}`),
			danger: operation.name === 'delete',
			fields: asksFor(operation),
			body: (values) => ({ job_ids: ids, ...typed(operation, values) }),
			done: (/** @type {any} */ answer) => {
				const refused =
					answer.items.find((/** @type {import('../openapi.js').ChangedItem} */ item) => item.error)?.error.message ?? '';
				return `${count(answer[operation.done], 'job')} ${operation.done}${answer.skipped ? `, ${number(answer.skipped)} skipped: ${refused}` : ''}.`;
			},
			after: () => {
				selected.value = new Set();
				jobs.reload();
			},
		});
	};

	return () => {
		const filter = parsed(line());
		if (filter.id) queueMicrotask(() => go(address(`/jobs/${filter.id}`), { replace: true }));
		const rows = jobs.read.value.value?.jobs ?? [];
		const names = [
			...(queues.read.value.value?.items ?? []).map((queue) => `queue:${queue.name}`),
			...rows.flatMap(({ type, worker_id: worker, error }) => [
				`type:${type}`,
				worker ? `worker:${worker}` : '',
				error ? `error:${error.code}` : '',
			]),
		];
		const beyond = beyondBulk(filter);
		return html`${head('Jobs', unique() ? fingerprints : jobs, { cli: unique() ? null : cliOf(line()), actions: push(jobs.reload) })}
			<nav class="tabs" aria-label="Presets">
				${PRESETS.map(([q, name]) => html`<a href=${address('/jobs', { q })} aria-current=${q === line() && !unique() ? 'page' : 'false'}>${name}</a>`)}
				${may('payloads') ? html`<a href=${address('/jobs', { view: 'unique' })} aria-current=${unique() ? 'page' : 'false'}>Unique</a>` : nothing}
			</nav>
			${search('q', 'state:retryable type:mail.* queue:mail meta.tenant:acme error:… age>1h, or an id', [...SUGGESTIONS, ...new Set(names.filter(Boolean))], filter.problems)}
			${progress()}
			<section>
				${
					unique()
						? list(
								'Unique jobs',
								fingerprints,
								(found) => found.items,
								[
									['Fingerprint', (one) => html`<span class="id">${text(one.key, 40)}</span>`],
									['Job', (one) => jobLink(one.job_id)],
									['Type', (one) => text(one.type, 60)],
									['Queue', (one) => queueLink(one.queue)],
									['State', (one) => badge(one.state)],
								],
								{ none: 'No unique job is there.' },
							)
						: nothing
				}
				${when(
					jobs,
					(found) => {
						const chosen = rows.filter((job) => selected.value.has(job.id));
						const named = filter.terms.find(({ name }) => name === 'state');
						const others = !chosen.length && !named && (found.pagination.has_more || visit.query('cursor'));
						/** @type {Set<string>} Those of other pages aren't known. */
						const states = new Set(others ? JOB_STATES : (chosen.length ? chosen : rows).map((job) => job.state));
						const fitting = OPERATIONS.filter(
							(operation) => may(operation.needs) && operation.states.some((state) => states.has(state)),
						);
						return html`<div class="head">
								<strong>${count(found.pagination.total ?? rows.length, 'job')}</strong>
								<span class="actions">
									${
										selected.value.size
											? fitting.map(ofSelected)
											: fitting.map(
													(operation) =>
														html`<button type="button" ?disabled=${beyond.length > 0} title=${beyond.length ? `Not for all that match while the filter has ${beyond.join(' ')}` : nothing} @click=${() => ofAll(operation, line(), jobs.reload)}>${operation.label} all that match</button>`,
												)
									}
									${beyond.length && fitting.length ? html`<small>For all that match, leave out ${text(beyond.join(' '))}.</small>` : nothing}
								</span>
							</div>
							${table('Jobs', rows, [
								[
									html`<input type="checkbox" aria-label="Select all on this page" .checked=${rows.length > 0 && chosen.length === rows.length} @change=${() => (selected.value = new Set(chosen.length === rows.length ? [] : rows.map((job) => job.id)))} />`,
									(job) =>
										html`<input type="checkbox" aria-label="Select job ${job.id}" .checked=${selected.value.has(job.id)} @change=${() => toggle(job.id)} />`,
								],
								['Job', (job) => jobLink(job.id)],
								[
									'Type',
									(job) =>
										html`<a href=${address('/jobs', { q: replaced(line(), 'type', job.type) })}>${text(job.type, 60)}</a>`,
								],
								['Queue', (job) => queueLink(job.queue)],
								['State', (job) => badge(job.state)],
								['Attempt', (job) => `${job.attempt} of ${job.max_attempts}`, 'number'],
								['Priority', (job) => number(job.priority), 'number'],
								['Arguments or error', carried],
								[
									'When',
									({ state, scheduled_at, ...job }) =>
										moment(state === 'scheduled' ? scheduled_at : (job.completed_at ?? job.started_at ?? job.created_at)),
								],
							])}
							${pages(found.pagination)}`;
					},
					{
						empty: (found) => !found.jobs.length,
						none: line()
							? html`No job fits this filter. <a href=${address('/jobs')}>Show all</a>`
							: 'There are no jobs yet. Push one, and it is here.',
					},
				)}
			</section>`;
	};
}

function carried(/** @type {Job} */ { args, error, redacted }) {
	if (error?.message) return text(error.message, 80);
	return redacted?.includes('args') ? html`<span class="hidden">hidden</span>` : text(written(args), 60);
}

/** @returns {readonly string[] | null} The command that lists the same; it can't sort. */
function cliOf(/** @type {string} */ line) {
	if (parsed(line).problems.length) return null;
	const words = ['list'];
	for (const [name, value] of Object.entries(listed(parsed(line)))) {
		if (name === 'sort' || name === 'order') return null;
		if (name.startsWith('meta.')) words.push('--meta', `${name.slice(5)}=${value}`);
		else words.push(`--${name.replace('_', '-')}`, value);
	}
	return words;
}

/**
 * What is registered about the arguments of the type that is typed; the server holds jobs to it when they are pushed.
 * @returns {(values: import('../actions.js').Values) => import('../parts.js').Part}
 */
function schemas() {
	const found = signal(/** @type {import('../openapi.js').Schema | null} */ (null));
	let asked = '';
	let known = /** @type {Promise<Set<string>> | null} */ (null);
	const ask = async (/** @type {string} */ type) => {
		// Most types have none, which isn't worth an error for each letter that is typed.
		known ??= request({ call: 'GET /schemas', query: { limit: 200 } }).then(
			({ schemas }) => new Set(schemas.map((one) => one.type)),
		);
		const there = await known.then((types) => types.has(type)).catch(() => false);
		const answer = there ? await request({ call: 'GET /schemas/{schema}', of: type }).catch(() => null) : null;
		if (type === asked) found.value = answer?.schema ?? null;
	};
	return ({ type }) => {
		if (type !== asked) {
			asked = type;
			found.value = null;
			if (type) ask(type);
		}
		const now = found.value;
		return now
			? html`<details><summary>The arguments have to fit the schema of ${text(type, 60)}, version ${now.version}</summary>${tree(now.schema)}</details>`
			: nothing;
	};
}

/** Members of a job that another one like it isn't pushed with: the server's own, and those that have fields of their own. */
const OWN = new Set([...OF_SERVER, 'specversion', 'id', 'type', 'args', 'meta', 'max_attempts', 'redacted', 'retry_policy']);
/** Those that are options; other members are a client's own. */
const ASKED = new Set(OPTIONS.filter((name) => !OWN.has(name)));

/** What a job like another one is pushed with: all that it carries, but for a time that is over and what says the same twice. */
function optionsOf(/** @type {import('../openapi.js').JobDetail} */ job) {
	const same = /** @type {Record<string, unknown>} */ ({ timeout_ms: job.timeout, expires_at: job.enqueue_ttl });
	const over = (/** @type {string} */ name, /** @type {unknown} */ value) =>
		/^(scheduled|expires)_at$/.test(name) && millis(String(value)) <= time();
	const kept = Object.entries(job).filter(([name, value]) => !OWN.has(name) && same[name] === undefined && !over(name, value));
	// A browser gets the times of a job among its metadata.
	const metadata = Object.entries(job.metadata ?? {}).filter(
		([name]) => !OWN.has(name) && !/^(scheduled|expires)_at$/.test(name),
	);
	return { ...Object.fromEntries(kept), metadata: metadata.length ? Object.fromEntries(metadata) : undefined };
}

/** What is said about the options of a job that is pushed again. */
function optionsHint(/** @type {import('../openapi.js').JobDetail | null} */ like) {
	const hints = ['queue, priority, scheduled_at, tags, retry, unique …'];
	if (like?.expires_at && !like.enqueue_ttl && millis(like.expires_at) <= time())
		hints.push(`It had expires_at ${like.expires_at}, which is over and left out.`);
	if (like?.unique) hints.push('It is unique: while one like it is there, this is refused or replaces it, as unique says.');
	return hints.join(' ');
}

/** The button that pushes a job, empty or like another one. */
export function push(/** @type {() => void} */ after, /** @type {import('../openapi.js').JobDetail | null} */ like = null) {
	if (like?.redacted) return nothing; // without what it carries it would be another job
	const { type = '', args = [], meta = {} } = like ?? {};
	return button({
		label: like ? 'Push again' : 'Push a job',
		needs: 'enqueue',
		call: 'POST /jobs',
		fields: [
			{ name: 'type', label: 'Type', value: type, required: true },
			{ name: 'args', label: 'Arguments, a JSON array', kind: 'json', value: written(args, 2) },
			{ name: 'meta', label: 'Metadata, a JSON object', kind: 'json', value: written(meta, 2) },
			{
				name: 'options',
				label: 'Options, a JSON object',
				kind: 'json',
				value: written(like ? optionsOf(like) : { queue: 'default' }, 2),
				hint: optionsHint(like),
			},
		],
		preview: schemas(),
		body: ({ type, args, meta, options }) => {
			const typed = Object.entries(json(options, 'Options') ?? {});
			const others = typed.filter(([name]) => like && name in like && !ASKED.has(name));
			return {
				...Object.fromEntries(others),
				type,
				args: json(args, 'Arguments') ?? [],
				meta: json(meta, 'Metadata'),
				options: Object.fromEntries(typed.filter((one) => !others.includes(one))),
			};
		},
		done: (answer) => {
			const { job } = answer;
			const warnings = 'warnings' in answer ? answer.warnings : undefined;
			if (job) go(address(`/jobs/${job.id}`));
			return warnings?.[0]
				? `Pushed, but ${warnings[0].field}: ${warnings[0].message}`
				: job
					? 'Pushed.'
					: 'It was not stored.';
		},
		after,
	});
}
