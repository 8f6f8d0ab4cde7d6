/** What a page has while it is open: its parameters, what it reads, and what it follows. */

import { follow, Problem, request } from './api.js';
import { place } from './router.js';
import { computed, effect, signal } from './signals-core.js';

/** Whether everything stands still because whoever looks said so. */
export const paused = signal(false);
/** Whether the tab may be seen. A hidden one has no stream: a browser has six connections to a server, for all of its tabs. */
export const seen = signal(!document.hidden);
document.addEventListener('visibilitychange', () => (seen.value = !document.hidden));
const [LEAST_MS, AGAIN_MS, SLOW_MS] = [1_000, 5_000, 300];

/**
 * What a page has read: the last answer, what went wrong since, whether a newer one is on its way, and whether somebody waits long.
 * @template T
 * @typedef {{value: T | undefined, problem: Problem | null, busy: boolean, slow: boolean}} Read
 */

/**
 * @template T
 * @typedef {{read: import('./signals-core.js').Signal<Read<T>>, ask: () => import('./api.js').Call | null, reload: () => void}} Source
 */

/** @returns {Read<any>} What there is before a question is answered; null asks nothing. */
const unread = (/** @type {unknown} */ question) => ({ value: undefined, problem: null, busy: !!question, slow: false });
/** @returns {string} What is the same on all pages of a list. */
const list = (/** @type {unknown} */ question) =>
	JSON.stringify(question, (name, value) => (name === 'cursor' ? undefined : value));

export class Visit {
	constructor() {
		this.place = place.peek();
		this.param = this.place.param;
		this.ended = new AbortController();
		this.connected = signal(true);
	}

	/** @returns {string} A member of the query string; the view is made anew when it changes. */
	query(/** @type {string} */ name) {
		return place.value.query.get(name) ?? '';
	}

	/** End everything that belongs to the page. */
	close() {
		this.ended.abort();
	}

	/** Call a function when the page is left. */
	finally(/** @type {() => void} */ end) {
		this.ended.signal.addEventListener('abort', end, { once: true });
	}

	/**
	 * Read what `ask` asks for: now, whenever what `ask` uses changes, every so often (never for 0), and after events of these types.
	 * The last answer stays until there is another one, of another page of its list, too. Events lead to one request a second at most,
	 * and are followed while `live` says so of what was read.
	 * @template {import('./api.js').Name} K
	 * @param {() => import('./api.js').Call<K> | null} ask null if there is nothing to ask
	 * @param {{every?: number, on?: import('./api.js').Operations['GET /events/stream']['query'],
	 *   live?: (read: Read<import('./api.js').Operations[K]['answer']>) => boolean}} options
	 * @returns {Source<import('./api.js').Operations[K]['answer']>}
	 */
	source(ask, { every = AGAIN_MS, on, live = () => true } = {}) {
		let current = ask();
		const read = signal(/** @type {Read<import('./api.js').Operations[K]['answer']>} */ (unread(current)));
		const signal_ = this.ended.signal;
		let timer = 0;
		let due = 0; // when what was heard is asked about
		let latest = 0;

		const load = async (awaited = true) => {
			clearTimeout(timer);
			if (signal_.aborted || current === null) return;
			const [mine, began] = [++latest, performance.now()];
			read.value = { ...read.peek(), busy: true };
			let wait = every;
			const late = () => (read.value = { ...read.peek(), slow: true });
			const waiting = awaited ? setTimeout(() => mine === latest && late(), SLOW_MS) : 0;
			try {
				const value = await request(current, { signal: signal_ }).finally(() => clearTimeout(waiting));
				if (mine === latest) read.value = { value, problem: null, busy: false, slow: false };
				if (due > began) wait = Math.max(1, due - performance.now());
			} catch (error) {
				if (signal_.aborted || mine !== latest) return;
				const problem = error instanceof Problem ? error : new Problem(0, { message: String(error) });
				read.value = { ...read.peek(), problem, busy: false, slow: false };
				wait = problem.passing ? Math.max(2_000, problem.retryAfter * 1_000) : every;
			}
			if (mine === latest && wait) soon(wait);
		};
		const soon = (/** @type {number} */ ms) => {
			clearTimeout(timer);
			timer = setTimeout(() => {
				if (paused.peek() || document.hidden) soon(LEAST_MS);
				else if (!read.peek().busy) load(false); // its answer asks again
			}, Math.ceil(ms)); // of a part of one it would come too early, and once more
		};

		this.finally(
			effect(() => {
				const next = ask();
				if (list(next) !== list(current)) read.value = unread(next);
				current = next;
				load();
			}),
		);
		if (on) {
			const heard = () => {
				const now = performance.now();
				if (paused.peek() || due > now) return; // or events that don't stop would put it off for ever
				due = Math.max(now + 100, due + LEAST_MS);
				soon(due - now);
			};
			const open = (/** @type {boolean} */ now) => (this.connected.value = now);
			const followed = computed(() => seen.value && live(read.value));
			let hidden = false;
			this.finally(
				effect(() => {
					if (seen.value && hidden && !paused.peek()) load(false); // nothing was heard meanwhile
					hidden = !seen.value;
				}),
			);
			this.finally(effect(() => (followed.value ? follow(on, heard, open) : void open(true))));
		}
		this.finally(() => clearTimeout(timer));
		return { read, ask, reload: () => void load() };
	}
}
