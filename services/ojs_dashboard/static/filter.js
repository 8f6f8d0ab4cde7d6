/** The filter line of the jobs: what is typed, as questions to the lists and as filters of bulk operations. */
import { time } from './format.js';
import { FOUND_BY, JOB_STATES } from './words.js';

const UNITS = /** @type {Record<string, number>} */ ({ s: 1, m: 60, min: 60, h: 3_600, d: 86_400, w: 604_800 });

/** Terms of the line; each is a parameter of `GET /jobs`. */
const FOUND = FOUND_BY.map((name) => (name === 'error_type' ? 'error' : name));
const LISTED = ['state', 'queue', 'type', ...FOUND, 'since', 'until', 'sort', 'order'];
const parameter = (/** @type {string} */ name) => (name === 'error' ? 'error_type' : name);
/** Those that filters of bulk operations have as well. */
const BULK = new Set(['state', 'queue', 'type', 'since', 'until', 'age>', 'age<', 'meta', ...FOUND]);

/** What can stand in the line, for its suggestions. */
export const SUGGESTIONS = [
	...JOB_STATES.map((state) => `state:${state}`),
	...LISTED.map((name) => `${name}:`),
	...['meta.', 'age>1h', 'age<5m', 'sort:priority', 'order:asc'],
];

/**
 * A line with `problems` finds nothing, and nothing acts on it.
 * @typedef {{name: string, value: string, text: string}} Term
 * @typedef {{terms: Term[], problems: string[], id: string}} Filter
 */

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const KNOWN = [...LISTED.map((name) => `${name}:`), 'meta.NAME:', 'age>1h', 'age<5m'].join(' ');
const LONGEST_S = 1e10;
/** Terms that bound the same thing: one of each is enough. */
const BOUND = /** @type {Record<string, string>} */ ({ 'age>': 'until', 'age<': 'since' });

/** @returns {Filter} The terms of a line; an id without a name is a job's. */
export function parsed(/** @type {string} */ line) {
	const filter = /** @type {Filter} */ ({ terms: [], problems: [], id: '' });
	const texts = [...line.matchAll(/(?:"[^"]*"|\S)+/g)].map((match) => match[0]);
	if (texts.length === 1 && ID.test(line.trim())) return { ...filter, id: line.trim() };
	const there = new Map(/** @type {[string, string][]} */ ([]));
	for (const text of texts) {
		const read = term(text);
		if (typeof read === 'string') {
			filter.problems.push(read);
			continue;
		}
		filter.terms.push(read);
		const bound = BOUND[read.name] ?? read.name;
		const before = there.get(bound);
		if (before !== undefined) filter.problems.push(`${before} and ${text} can't both hold: leave one out.`);
		there.set(bound, text);
	}
	return filter;
}

/** @returns {Term | string} A term, or what is wrong with it. */
function term(/** @type {string} */ text) {
	if (text.split('"').length % 2 === 0) return `${text} has a quotation mark that isn't closed.`;
	const age = /^age([<>])(\d{1,9})([a-z]+)$/.exec(text);
	const seconds = Number(age?.[2]) * Number(UNITS[age?.[3] ?? '']);
	if (age && seconds < LONGEST_S) return { name: `age${age[1]}`, value: `${seconds}`, text };
	if (/^age[<>=:]/i.test(text)) return `${text} isn't an age: write age>1h or age<5m, with s, m, h, d or w.`;
	const [, name = '', sign = '', value = ''] = /^([^\s":=<>]+)([:=<>])(.*)$/s.exec(text) ?? [];
	if (!name) return `${text} isn't understood. A filter can name ${KNOWN}`;
	const known = LISTED.includes(name) || /^meta\../.test(name);
	if (!known) {
		const like = LISTED.toSorted((a, b) => distance(a, name) - distance(b, name))[0] ?? '';
		const meant = distance(like, name) < 3 ? `Did you mean ${like}:${value}?` : `A filter can name ${KNOWN}`;
		return `${text} isn't understood. ${meant}`;
	}
	if (sign !== ':') return `${text} isn't understood. Did you mean ${name}:${value}?`;
	if (!bare(value)) return `${text} has no value.`;
	if (name === 'state' && !JOB_STATES.includes(bare(value)))
		return `There is no state ${bare(value)}: it can be ${JOB_STATES.join(', ')}.`;
	if (name === 'order' && !['asc', 'desc'].includes(value)) return `${text} isn't an order: it can be asc or desc.`;
	return { name, value: bare(value), text };
}

/** @returns {number} How many letters have to change until one word is the other, whatever their case. */
function distance(/** @type {string} */ one, /** @type {string} */ other) {
	let row = [...one, ''].map((_, i) => i);
	for (const [j, letter] of [...other.slice(0, 30).toLowerCase()].entries()) {
		const next = [j + 1];
		for (let i = 0; i < one.length; i++)
			next.push(Math.min((row[i] ?? 0) + (one[i] === letter ? 0 : 1), (row[i + 1] ?? 0) + 1, (next[i] ?? 0) + 1));
		row = next;
	}
	return row.at(-1) ?? 0;
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
