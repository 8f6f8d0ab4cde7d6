/** What pages are put together from. Each part is a function of what it shows. */

import { curl, quoted, written } from './api.js';
import { copier } from './dialogs.js';
import { count, moment, number, percent, plain, text } from './format.js';
import { html, nothing, render, svg } from './lit-html.js';
import { address, place, setQuery } from './router.js';
import { signal } from './signals-core.js';

/** @typedef {import('./lit-html.js').TemplateResult | symbol | string | number | Part[]} Part */
/** Buttons that copy a request as a command line. `cli` follows `ojs-nats`; there is none for everything. */
export const commands = (
	/** @type {import('./api.js').Call} */ what,
	/** @type {readonly string[] | null} */ cli = null,
) => html`<span class="commands">
	${copier('curl', curl(what))} ${cli ? copier('ojs-nats', ['ojs-nats', ...cli].map(quoted).join(' ')) : nothing}
</span>`;

/** The head of a page: its title, what can be done, and what it reads as command lines. */
export function head(
	/** @type {Part} */ title,
	/** @type {{ask: () => import('./api.js').Call | null}} */ source,
	/** @type {{cli?: readonly string[] | null, actions?: Part}} */ { cli = null, actions = nothing } = {},
) {
	const what = source.ask();
	return html`<header class="head">
		<h1>${title}</h1>
		<div class="actions">${actions}</div>
		${what ? commands(what, cli) : nothing}
	</header>`;
}

/**
 * What was read, or what keeps it from being shown. The last answer stays while a new one isn't there.
 * @template T
 * @param {import('./visit.js').Source<T>} source
 * @param {(value: T) => Part} shown
 * @param {{empty?: (value: T) => boolean, none?: Part}} options
 * @returns {Part}
 */
export function when(source, shown, { empty = () => false, none = 'There is nothing yet.' } = {}) {
	const { value, problem, busy, slow } = source.read.value;
	const again = html`<button type="button" @click=${source.reload}>Try again</button>`;
	const trouble = problem
		? html`<div class="notice ${problem.passing ? 'warn' : 'bad'}" role="status">
				<p>${building(problem) ? 'The index is being built. Lists are there when it is ready.' : text(problem.message, 500)}</p>
				<p>${problem.passing ? 'This page tries again by itself.' : text(problem.hint || ' ', 500)}</p>
				${again}
			</div>`
		: nothing;
	if (value === undefined) return problem ? trouble : busy ? html`<div class="skeleton" role="status">Loading…</div>` : nothing;
	const signs = [slow ? html`<div class="loading" role="status">Loading…</div>` : nothing, trouble, partial(value)];
	return [
		signs,
		empty(value)
			? html`<div class="empty">${/** @type {any} */ (value).partial ? 'None is known yet.' : none}</div>`
			: shown(value),
	];
}

/** Says that an answer was made while the index was being built, so that there may be more than it has. */
function partial(/** @type {any} */ answer) {
	if (!answer?.partial) return nothing;
	const done = answer.index_progress === undefined ? '' : ` (${percent(answer.index_progress)})`;
	return html`<p class="notice warn" role="status">The index is being built${done}: there may be more than is shown.</p>`;
}

const building = (/** @type {import('./api.js').Problem} */ problem) =>
	problem.status === 503 && /index/i.test(problem.message);

/**
 * A table. A column has a title, what stands in a row, and whether that is a number.
 * @template T
 * @typedef {readonly (readonly [title: Part, cell: (row: T) => Part, kind?: 'number'])[]} Columns
 */

/**
 * @template T
 * @param {string} label
 * @param {readonly T[]} rows
 * @param {Columns<T>} columns
 * @param {(row: T) => string} mark the class of a row
 */
export const table = (
	label,
	rows,
	columns,
	mark = () => '',
) => html`<div class="scroll" tabindex="0" role="region" aria-label=${label}>
	<table>
		<thead><tr>${columns.map(([title, , kind]) => (title === '' ? html`<td></td>` : html`<th scope="col" class=${kind ?? ''}>${title}</th>`))}</tr></thead>
		<tbody>
			${rows.map((row) => html`<tr class=${mark(row)}>${columns.map(([, cell, kind]) => html`<td class=${kind ?? ''}>${cell(row)}</td>`)}</tr>`)}
		</tbody>
	</table>
</div>`;

/**
 * A list that is read, as a table with its page buttons; `none` where it is empty.
 * @template {object} T
 * @template R
 * @param {string} label
 * @param {import('./visit.js').Source<T>} source
 * @param {(found: T) => readonly R[]} rows
 * @param {Columns<R>} columns
 * @param {{none?: Part, mark?: (row: R) => string}} options
 */
export const list = (label, source, rows, columns, { none = 'There is none.', mark } = {}) =>
	when(
		source,
		(found) => [
			table(label, rows(found), columns, mark),
			'pagination' in found ? pages(/** @type {import('./openapi.js').Pagination} */ (found.pagination)) : nothing,
		],
		{ empty: (found) => !rows(found).length, none },
	);

/** Links to forms of the same page, by values of the query or by values and names; the one whose value it has is marked. */
export function tabs(
	/** @type {string} */ name,
	/** @type {readonly (string | readonly [string, Part])[]} */ choices,
	/** @type {string} */ label,
) {
	const now = place.value.query.get(name) ?? '';
	return html`<nav class="tabs" aria-label=${label}>
		${choices
			.map((one) => (typeof one === 'string' ? [one, one ? one[0]?.toUpperCase() + one.slice(1) : 'All'] : one))
			.map(
				([value, shown]) => html`<a
					href=${address(place.value.path, { [name]: value || null, cursor: null }, place.value.query)}
					aria-current=${value === now ? 'page' : 'false'}
					>${shown}</a
				>`,
			)}
	</nav>`;
}

/** Pairs of names and values; those whose value is `nothing` are left out. */
export const facts = (/** @type {readonly (readonly [Part, Part])[]} */ pairs) =>
	html`<dl class="facts">${pairs.map(([name, value]) => (value === nothing ? nothing : html`<div><dt>${name}</dt><dd>${value}</dd></div>`))}</dl>`;

/**
 * A value for `facts`, or nothing where there is none.
 * @template T
 * @param {T | null | undefined} value
 * @param {(value: T) => Part} shown
 */
export const optional = (value, shown) => (value == null ? nothing : shown(value));

/** What stands in the place of what somebody may not see. */
export const hidden = () => html`<p class="hidden">Hidden: this needs the permission payloads.</p>`;

/** A state as a coloured word. */
export const badge = (/** @type {string} */ state) => html`<span class="badge ${state}">${state}</span>`;

/** A part of a page with a title. */
export const section = (/** @type {Part} */ title, /** @type {Part} */ content, /** @type {Part} */ beside = nothing) =>
	html`<section><div class="head"><h2>${title}</h2>${beside}</div>${content}</section>`;

export const jobLink = (/** @type {string} */ id) =>
	html`<a class="id" href=${address(`/jobs/${encodeURIComponent(id)}`)} title=${id}>${id.slice(0, 8)}…${id.slice(-4)}</a>`;
export const queueLink = (/** @type {string} */ name) =>
	html`<a href=${address(`/queues/${encodeURIComponent(name)}`)}>${text(name, 60)}</a>`;
/** A link to the jobs that a filter finds. */
export const jobsLink = (/** @type {string} */ filter, /** @type {Part} */ shown) =>
	html`<a href=${address('/jobs', { q: filter })}>${shown}</a>`;

/** A share of a whole as a bar with its words; one that is `scarce` is marked when little is left. */
export function meter(/** @type {number} */ value, /** @type {number} */ most, /** @type {string} */ label, scarce = true) {
	const share = most > 0 ? Math.min(1, value / most) : 0;
	return html`<span class="meter ${!scarce ? '' : share >= 1 ? 'full' : share > 0.8 ? 'high' : ''}">
		<svg viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label=${label}>
			<rect class="all" width="100" height="6" /><rect class="used" width=${share * 100} height="6" />
		</svg>
		${label}
	</span>`;
}

/**
 * Lines over time. Points are pairs of Unix milliseconds and a value; null is a gap.
 * @param {import('./format.js').Series} series
 * @param {{label: string, format: (value: number) => string, height?: number}} options
 */
export function plot(series, { label, format, height = 120 }) {
	const all = series.flatMap((one) => one.points);
	const times = all.map(([at]) => at);
	const top = Math.max(...all.map(([, value]) => value ?? 0), 0);
	const [from, to] = [Math.min(...times), Math.max(...times)];
	if (all.length < 2 || to <= from) return html`<div class="empty">Nothing was measured in this time.</div>`;
	const x = (/** @type {number} */ at) => ((at - from) / (to - from)) * 600;
	const y = (/** @type {number} */ value) => height - (top ? value / top : 0) * (height - 8) - 2;
	const path = (/** @type {readonly (readonly [number, number | null])[]} */ points) => {
		let pen = 'M';
		return points
			.map(([at, value]) => {
				if (value === null) {
					pen = 'M';
					return '';
				}
				const step = `${pen}${x(at).toFixed(1)} ${y(value).toFixed(1)}${pen === 'M' ? 'h0' : ''}`; // a dot, if it is alone
				pen = 'L';
				return step;
			})
			.join('');
	};
	const measured = all.some(([, value]) => value !== null);
	const shown = (/** @type {number | null | undefined} */ value) => (value == null ? '–' : format(value));
	const most = shown(measured ? top : null);
	const last = series.map((one) => `${one.name} ${shown(one.points.findLast(([, value]) => value !== null)?.[1])}`);
	return html`<figure class="plot">
		<figcaption>
			${label}${series.map((one, i) => html` <span class="key s${i}">${last[i] ?? one.name}</span>`)}
			<span class="dim">at most ${most}</span>
		</figcaption>
		<svg viewBox="0 0 600 ${height}" preserveAspectRatio="none" role="img" aria-label="${label}: ${last.join(', ')}; at most ${most}">
			${series.map((one, i) => svg`<path class="s${i}" d=${path(one.points)} />`)}
		</svg>
		<div class="ends">${moment(from)}${moment(to)}</div>
	</figure>`;
}

/** How many there were, up to now, as a small line. */
export function spark(/** @type {number[]} */ values) {
	if (!values.length) return '–'; // a projector of an older version answered
	const most = Math.max(...values);
	const said = `from ${number(values[0])} to ${number(values.at(-1))}, at most ${number(most)}`;
	return html`<svg class="spark" viewBox="0 0 ${values.length - 1} 20" preserveAspectRatio="none" role="img" aria-label=${said}>
		<title>${said}</title><path class="s0" d="M${values.map((value, i) => `${i} ${19 - (value / (most || 1)) * 18}`).join('L')}" />
	</svg>`;
}

const [MOST_MEMBERS, FEW_MEMBERS, MOST_TEXT] = [100, 8, 5_000];

/** JSON as a tree that opens by and by, so that a megabyte is shown as well. */
export function tree(/** @type {unknown} */ value, /** @type {Part} */ name = nothing, open = true) {
	return html`<div class="tree">${node(value, name, open)}</div>`;
}

/** @returns {Part} */
function node(/** @type {unknown} */ value, /** @type {Part} */ name, open = true) {
	const label = name === nothing ? nothing : html`<span class="name">${name}</span> `;
	if (value === null || typeof value !== 'object') {
		const shown = typeof value === 'string' ? plain(written(value.slice(0, MOST_TEXT))) : String(value);
		const more =
			typeof value === 'string' && value.length > MOST_TEXT
				? html`<span class="dim"> … ${count(value.length, 'character')}</span>`
				: nothing;
		return html`<div>${label}<bdi class="value ${value === null ? 'null' : typeof value}">${shown}</bdi>${more}</div>`;
	}
	const members = Object.entries(value);
	const [one, none] = Array.isArray(value) ? ['item', '[]'] : ['member', '{}'];
	if (!members.length) return html`<div>${label}<span class="value">${none}</span></div>`;
	let filled = open;
	const fill = (/** @type {Event} */ event) => {
		const details = /** @type {HTMLDetailsElement} */ (event.currentTarget);
		if (!filled && details.open) render(children(members), /** @type {HTMLElement} */ (details.lastElementChild));
		filled ||= details.open;
	};
	return html`<details ?open=${open} @toggle=${fill}>
		<summary>${label}<span class="dim">${count(members.length, one)}</span></summary>
		<div>${open ? children(members) : nothing}</div>
	</details>`;
}

/** @returns {boolean} Whether a value is shown open; a text has a key for each character. */
const few = (/** @type {unknown} */ value) => typeof value !== 'object' || Object.keys(value ?? {}).length <= FEW_MEMBERS;

/** @returns {Part} */
function children(/** @type {[string, unknown][]} */ members) {
	const shown = members.slice(0, MOST_MEMBERS).map(([name, value]) => node(value, text(name, 100), few(value)));
	return members.length > MOST_MEMBERS
		? [...shown, html`<div class="dim">… ${number(members.length - MOST_MEMBERS)} more: copy to see all</div>`]
		: shown;
}

/** A value with a button that copies it whole. */
export const payload = (/** @type {Part} */ title, /** @type {unknown} */ value) =>
	section(title, tree(value), copier('Copy', written(value, 2)));

/** Page buttons of a list with a cursor. */
export function pages(/** @type {import('./openapi.js').Pagination} */ pagination) {
	const cursor = place.value.query.get('cursor');
	const next = pagination.has_more ? pagination.next_cursor : null;
	if (!cursor && !next) return nothing;
	return html`<nav class="pages" aria-label="Pages">
		${cursor ? html`<button type="button" @click=${() => setQuery({ cursor: null })}>First page</button> <button type="button" @click=${() => history.back()}>Back</button>` : nothing}
		${next ? html`<button type="button" @click=${() => setQuery({ cursor: next }, { replace: false })}>Next page</button>` : nothing}
	</nav>`;
}

/** @returns {Record<string, string>} What was typed into the fields of a form that is submitted. */
export function submitted(/** @type {Event} */ event) {
	event.preventDefault();
	const fields = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
	return Object.fromEntries([...fields].map(([name, value]) => [name, String(value).trim()]));
}

/** What stands in a filter line before the word that is being typed. */
const ahead = signal('');

/**
 * A line to type a filter in, kept in the query string as `name`. `choices` are suggested for the word that is being typed;
 * `problems` are what is wrong with what stands there.
 */
export function search(
	/** @type {string} */ name,
	/** @type {string} */ label,
	/** @type {readonly string[]} */ choices = [],
	/** @type {readonly string[]} */ problems = [],
) {
	const take = (/** @type {Event} */ event) => setQuery({ ...submitted(event), cursor: null }, { replace: false });
	const suggest = (/** @type {Event} */ event) => {
		const typed = /** @type {HTMLInputElement} */ (event.target).value;
		ahead.value = typed.slice(0, typed.lastIndexOf(' ') + 1);
	};
	return html`<form class="search" role="search" @submit=${take}>
		<input name=${name} type="search" .value=${place.value.query.get(name) ?? ''} placeholder=${label} aria-label=${label} list="${name}-choices" aria-invalid=${problems.length > 0} aria-describedby="${name}-problems" autocomplete="off" spellcheck="false" data-search @input=${suggest} />
		<datalist id="${name}-choices">${choices.filter((choice) => plain(choice) === choice).map((choice) => html`<option value=${ahead.value + choice}></option>`)}</datalist>
		<button type="submit">Filter</button>
		<div id="${name}-problems" role="alert">${problems.map((one) => html`<p class="notice bad">${text(one, 500)}</p>`)}</div>
	</form>`;
}
