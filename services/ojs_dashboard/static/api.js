/** The one client of the API: requests, errors, exact numbers, who is signed in, and events. */

import { clock, hex, UNSEEN } from './format.js';
import { address } from './router.js';
import { signal } from './signals-core.js';

const API = '/ojs/v1';
const TIMEOUT_MS = 20_000;

/** @typedef {import('./openapi.js').Operations} Operations what `script/dashboard_types.py` writes of the API's description */
/** @typedef {keyof Operations} Name an operation: its method and its path */
/** @typedef {Record<string, import('./openapi.js').Value>} Query */
/**
 * A request: an operation, what stands in its path, and what is sent.
 * @template {Name} [K=Name]
 * @typedef {{call: K, of?: string | readonly string[] | undefined, query?: Operations[K]['query'],
 *   body?: import('./openapi.js').Sent<Operations[K]['body']>}} Call
 */

/** What the server answered in place of what was asked for; status 0 if it didn't answer. */
export class Problem extends Error {
	constructor(
		/** @type {number} */ status,
		/** @type {{code?: string, message?: string, hint?: string, details?: Record<string, unknown>}} */ error,
		/** @type {number} */ retryAfter = 0,
	) {
		super(error.message ?? `the server answered ${status}`);
		this.status = status;
		this.code = error.code ?? '';
		this.hint = error.hint ?? '';
		this.details = error.details ?? {};
		/** In seconds; a minute at most, and 0 for a date, which proxies write. */
		this.retryAfter = Math.min(retryAfter || 0, 60);
	}

	/** What went wrong, and what can be done. */
	get whole() {
		return [this.message, this.hint].filter(Boolean).join(' ');
	}

	/** Whether a later try may do better. */
	get passing() {
		return this.status === 0 || this.status === 429 || this.status >= 500;
	}
}

/** Who is signed in; null until it is known, `false` if a key is needed. */
export const who = signal(
	/** @type {Pick<import('./openapi.js').Session, 'open' | 'name' | 'role' | 'permissions'> | false | null} */ (null),
);
/** Whether the last request was answered. */
export const reachable = signal(true);

/** @returns {boolean} Whether whoever looks may do what needs this permission. */
export function may(/** @type {Operations[Name]['permission']} */ permission) {
	const person = who.value;
	return (
		!!person && (person.open || permission === 'nothing' || /** @type {string[]} */ (person.permissions).includes(permission))
	);
}

/**
 * Ask the server.
 * @template {Name} K
 * @param {Call<K>} what
 * @param {{token?: string, signal?: AbortSignal}} options
 * @returns {Promise<Operations[K]['answer']>} Throws Problem.
 */
export async function request(what, { token, signal } = {}) {
	const sent = what.body === undefined ? undefined : written(what.body);
	const timeout = AbortSignal.timeout(TIMEOUT_MS);
	let response;
	let answer;
	try {
		response = await fetch(url(what), {
			method: methodOf(what),
			body: sent ?? null,
			headers: {
				Accept: 'application/json',
				...(sent === undefined ? {} : { 'Content-Type': 'application/json' }),
				...(token ? { Authorization: `Bearer ${token}` } : {}),
			},
			signal: signal ? AbortSignal.any([timeout, signal]) : timeout,
			cache: 'no-store',
		});
		const text = await response.text();
		answer = text ? exact(text) : null;
	} catch (error) {
		if (signal?.aborted) throw error;
		reachable.value = !!response;
		const message = response ? "The server's answer can't be read." : 'The server does not answer.';
		throw new Problem(response?.ok === false ? response.status : 0, {
			message,
			hint:
				methodOf(what) === 'GET' ? 'This page tries again by itself.' : 'It may have been done: look before you try it again.',
		});
	}
	reachable.value = true;
	const ahead = Date.now() - Date.parse(response.headers.get('Date') ?? '');
	clock.ahead = Math.abs(ahead) > 30_000 ? ahead : 0;
	if (response.ok) return answer;
	if (response.status === 401) who.value = false;
	/** Of a selection, of which all were refused, the first one says why. */
	const refused = answer?.items?.find((/** @type {any} */ item) => item.error)?.error;
	throw new Problem(response.status, answer?.error ?? refused ?? {}, Number(response.headers.get('Retry-After') ?? 0));
}

const methodOf = (/** @type {Call} */ { call }) => call.split(' ')[0] ?? '';

/** @returns {string} The address of a request. */
export function url(/** @type {Call} */ { call, of = [], query = {} }) {
	const values = [of].flat();
	const path = call.slice(call.indexOf(' ') + 1).replace(/\{\w+\}/g, () => encodeURIComponent(values.shift() ?? ''));
	return address(API + path, query);
}

/** @returns {any} JSON in which whole numbers that a double can't hold are BigInts. */
export function exact(/** @type {string} */ text) {
	const reviver = /** @type {any} */ (
		(/** @type {string} */ _key, /** @type {unknown} */ value, /** @type {{source?: string} | undefined} */ context) =>
			typeof value === 'number' && context?.source && !Number.isSafeInteger(value) && /^-?\d+$/.test(context.source)
				? BigInt(context.source)
				: value
	);
	return JSON.parse(text, reviver);
}

/** @returns {string} JSON of a value, BigInts as numbers; where it is for people, none of it turns the direction of writing. */
export function written(/** @type {unknown} */ value, /** @type {number | undefined} */ indent = undefined) {
	const numbers = /** @type {Map<string, string>} */ (new Map());
	const text = JSON.stringify(
		value,
		(_key, member) => {
			if (typeof member !== 'bigint') return member;
			const mark = `\u0000${member}`;
			numbers.set(JSON.stringify(mark), String(member));
			return mark;
		},
		indent,
	);
	const done = numbers.size ? text.replace(/"\\u0000-?\d+"/g, (mark) => numbers.get(mark) ?? mark) : (text ?? 'null');
	return indent ? done.replace(UNSEEN, (mark) => `\\u${hex(mark.charCodeAt(0))}`) : done;
}

/** Who asks a server that was installed without keys.
 * @type {Pick<import('./openapi.js').Session, 'name' | 'open' | 'permissions' | 'role'>}
 */
const EVERYBODY = { open: true, name: 'everybody', role: 'admin', permissions: [] };

/** Find out who is signed in. */
export async function identify() {
	try {
		who.value = await request({ call: 'GET /session' });
	} catch (error) {
		if (error instanceof Problem && error.status === 401) who.value = false;
		else if (error instanceof Problem && error.status === 404) who.value = EVERYBODY;
		else throw error;
	}
}

/** @returns {string} The command line of curl that asks the same. */
export function curl(/** @type {Call} */ what) {
	const words = ['curl'];
	const method = methodOf(what);
	if (method !== 'GET') words.push('-X', method);
	const person = who.peek();
	if (person && !person.open) words.push('-H', '"Authorization: Bearer $OJS_AUTH_TOKEN"');
	if (what.body !== undefined) words.push('-H', quoted('Content-Type: application/json'), '-d', quoted(written(what.body)));
	words.push(quoted(location.origin + url(what)));
	return words.join(' ');
}

/** @returns {string} A word of a shell's command line. */
export function quoted(/** @type {string} */ text) {
	return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

const AGAIN_MS = [1_000, 2_000, 5_000, 10_000];

/**
 * Follow events as they happen; after a break in the connection from where it broke off. Returns what ends it. One that can be
 * made again at once isn't told of.
 * @param {Operations['GET /events/stream']['query']} query
 * @param {(event: import('./openapi.js').Event, id: string) => void} heard
 * @param {(open: boolean) => void} connected
 * @param {(id: string) => void} reached Told of each id, and of the one that the stream begins behind.
 */
export function follow(query, heard, connected = () => {}, reached = () => {}) {
	const ended = new AbortController();
	let last = '';
	let failures = 0;
	const close = () => ended.abort();
	addEventListener('pagehide', close, { once: true });

	async function listen() {
		const headers = { Accept: 'text/event-stream', ...(last ? { 'Last-Event-ID': last } : {}) };
		const response = await fetch(url({ call: 'GET /events/stream', query }), {
			headers,
			signal: ended.signal,
			cache: 'no-store',
		});
		if (response.status === 401) who.value = false;
		if (!response.ok || !response.body) return false;
		connected(true);
		failures = 0;
		const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
		let rest = '';
		for (;;) {
			const { value, done } = await reader.read();
			if (done) return true; // a job's events end with it
			const messages = (rest + value).split('\n\n');
			rest = messages.pop() ?? '';
			for (const message of messages) {
				const members = new Map(message.split('\n').map((line) => /** @type {[string, string]} */ (split(line))));
				const id = members.get('id');
				if (id !== undefined) {
					last = id;
					reached(id);
				}
				const data = members.get('data');
				if (data && members.get('event') !== 'reset' && members.get('event') !== 'missed') heard(exact(data), last);
			}
		}
	}

	(async () => {
		while (!ended.signal.aborted) {
			const whole = await listen().catch(() => false);
			if (ended.signal.aborted) return;
			connected(whole || !failures);
			await new Promise((resolve) => setTimeout(resolve, AGAIN_MS[Math.min(failures++, AGAIN_MS.length - 1)]));
		}
	})();
	return close;
}

function split(/** @type {string} */ line) {
	const end = line.indexOf(':');
	return end < 0 ? [line, ''] : [line.slice(0, end), line.slice(end + 1).trimStart()];
}
