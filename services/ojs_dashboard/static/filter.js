/** The filter line of the jobs: what is typed, as questions to the lists and as filters of bulk operations. */
import { time } from './format.js';

export const STATES = ['scheduled', 'available', 'pending', 'active', 'retryable', 'completed', 'cancelled', 'discarded'];
const UNITS = /** @type {Record<string, number>} */ ({ s: 1, m: 60, min: 60, h: 3_600, d: 86_400, w: 604_800 });

/** Terms of the line; each is a parameter of `GET /jobs`. */
const LISTED = ['state', 'queue', 'type', 'tag', 'error', 'worker', 'text', 'since', 'until', 'sort', 'order'];
const parameter = (/** @type {string} */ name) => (name === 'error' ? 'error_type' : name);
/** Those that filters of bulk operations have as well. */
const BULK = new Set(['state', 'queue', 'type', 'since', 'until', 'age>', 'age<', 'meta', 'tag', 'error', 'worker']);

/** What can stand in the line, for its suggestions. */
export const SUGGESTIONS = [
	...STATES.map((state) => `state:${state}`),
	...LISTED.map((name) => `${name}:`),
	...['meta.', 'age>1h', 'age<5m', 'sort:priority', 'order:asc'],
];

/**
 * @typedef {{name: string, value: string, text: string}} Term
 * @typedef {{terms: Term[], unknown: string[], id: string}} Filter
 */

/** @returns {Filter} The terms of a line; words without a name are looked for in arguments, an id is a job's. */
export function parsed(/** @type {string} */ line) {
	const filter = /** @type {Filter} */ ({ terms: [], unknown: [], id: '' });
	for (const match of line.matchAll(/(?:"[^"]*"|\S)+/g)) {
		const text = match[0];
		const age = /^age([<>])(\d+)([a-z]+)$/.exec(text);
		const named = /^([a-z_]+(?:\.[^:]+)?):(.*)$/s.exec(text);
		if (/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(text)) filter.id = text;
		else if (age && UNITS[age[3] ?? ''])
			filter.terms.push({ name: `age${age[1]}`, value: `${Number(age[2]) * (UNITS[age[3] ?? ''] ?? 1)}`, text });
		else if (!named) filter.terms.push({ name: 'text', value: bare(text), text });
		else if (named[1]?.startsWith('meta.') || LISTED.includes(named[1] ?? ''))
			filter.terms.push({ name: named[1] ?? '', value: bare(named[2] ?? ''), text });
		else filter.unknown.push(text);
	}
	return filter;
}

const bare = (/** @type {string} */ text) => text.replaceAll('"', '');
const ago = (/** @type {string} */ seconds, /** @type {number} */ now) =>
	new Date(Math.floor(now / 60_000) * 60_000 - Number(seconds) * 1_000).toISOString();

/** @returns {Record<string, string>} Parameters of `GET /jobs`. */
export function listed(/** @type {Filter} */ filter, now = time()) {
	const query = /** @type {Record<string, string>} */ ({});
	for (const { name, value } of filter.terms) {
		if (name === 'age>') query['until'] = ago(value, now);
		else if (name === 'age<') query['since'] = ago(value, now);
		else if (name === 'text') query['text'] = `${query['text'] ?? ''} ${value}`.trim();
		else query[parameter(name)] = value;
	}
	return query;
}

/** @returns {string[]} The terms that bulk operations don't know, so that they can't be about all that match. */
export const beyondBulk = (/** @type {Filter} */ filter) =>
	filter.terms
		.filter(({ name, value }) => !BULK.has(name.split('.')[0] ?? '') || (name === 'type' && value.includes('*')))
		.map((term) => term.text);

/** @returns {Record<string, unknown>} The same as a filter of bulk operations. */
export function bulk(/** @type {Filter} */ filter, now = time()) {
	const made = /** @type {Record<string, any>} */ ({});
	for (const { name, value } of filter.terms) {
		if (name === 'age>') made['until'] = ago(value, now);
		else if (name === 'age<') made['since'] = ago(value, now);
		else if (name.startsWith('meta.')) made['meta'] = { ...made['meta'], [name.slice(5)]: value };
		else made[parameter(name)] = value;
	}
	return made;
}

/** @returns {string} The line with one term in the place of others of its name; '' takes it out. */
export function replaced(/** @type {string} */ line, /** @type {string} */ name, /** @type {string} */ value) {
	const rest = [...line.matchAll(/(?:"[^"]*"|\S)+/g)].map((match) => match[0]).filter((text) => !text.startsWith(`${name}:`));
	return [...rest, ...(value ? [`${name}:${value}`] : [])].join(' ');
}
