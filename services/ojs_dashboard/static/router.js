/** Addresses: which page a path is, and the query string as the page's state. */
import { signal } from './signals-core.js';

/** Path segments, `:name` for one of any text, and the module of the page under pages/. */
const PAGES = /** @type {const} */ ([
	['/', 'overview'],
	['/queues', 'queues'],
	['/queues/:name', 'queues'],
	['/jobs', 'jobs'],
	['/jobs/:id', 'job'],
	['/workflows', 'workflows'],
	['/workflows/:id', 'workflows'],
	['/crons', 'crons'],
	['/crons/:name', 'crons'],
	['/workers', 'workers'],
	['/limits', 'limits'],
	['/webhooks', 'webhooks'],
	['/events', 'events'],
	['/system', 'system'],
]);

/** @typedef {{path: string, page: string, param: string, query: URLSearchParams}} Place */

/** What all paths of the server begin with, as its page says; '' at the root of a host. */
const BASE = document.querySelector('meta[name=ojs-base]')?.getAttribute('content') ?? '';

/** @returns {Place} Where a path of the browser and a query string lead; page '' if nowhere. */
export function placeOf(/** @type {string} */ pathname, /** @type {string} */ search) {
	const path = pathname === BASE ? '/' : pathname.startsWith(`${BASE}/`) ? pathname.slice(BASE.length) : '';
	for (const [template, page] of PAGES) {
		const found = new RegExp(`^${template.replace(/:\w+/, '([^/]+)')}$`).exec(path);
		if (found) return { path, page, param: decoded(found[1] ?? ''), query: new URLSearchParams(search) };
	}
	return { path, page: '', param: '', query: new URLSearchParams(search) };
}

function decoded(/** @type {string} */ text) {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}

export const place = signal(placeOf(location.pathname, location.search));

/** Go to an address of the dashboard, as `address` makes it. */
export function go(/** @type {string} */ address, { replace = false } = {}) {
	const url = new URL(address, location.href);
	history[replace ? 'replaceState' : 'pushState'](null, '', url);
	if (!replace) scrollTo(0, 0);
	place.value = placeOf(url.pathname, url.search);
}

/** Change members of the query string of the page that is open; '' and null take one away. */
export function setQuery(/** @type {Record<string, string | null>} */ members, { replace = true } = {}) {
	go(address(place.peek().path, members, place.peek().query), { replace });
}

/** @returns {string} The browser's address of a path, with a query string; empty members are left out. All addresses are made here. */
export function address(
	/** @type {string} */ path,
	/** @type {Record<string, string | number | boolean | null | undefined>} */ members = {},
	/** @type {URLSearchParams | undefined} */ over = undefined,
) {
	const query = new URLSearchParams(over);
	for (const [name, value] of Object.entries(members)) {
		if (value === '' || value === null || value === undefined) query.delete(name);
		else query.set(name, String(value));
	}
	return BASE + (query.size ? `${path}?${query}` : path);
}

/** Follow links and the buttons of the browser without loading the document again. */
export function listen() {
	addEventListener('popstate', () => {
		place.value = placeOf(location.pathname, location.search);
	});
	document.addEventListener('click', (event) => {
		const link = event.composedPath().find((node) => node instanceof HTMLAnchorElement);
		if (!(link instanceof HTMLAnchorElement) || link.target || link.hasAttribute('download')) return;
		if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
		if (link.origin !== location.origin || !placeOf(link.pathname, '').page) return;
		event.preventDefault();
		go(link.href);
	});
}
