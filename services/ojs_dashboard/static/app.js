/** The frame of all pages: navigation, keys, theme, sign-in, and the page that is open. */

import { closeAction, closeAll, dialog } from './actions.js';
import { identify, Problem, reachable, request, who } from './api.js';
import { byHand, say, toast } from './dialogs.js';
import { text } from './format.js';
import { html, nothing, render } from './lit-html.js';
import * as crons from './pages/crons.js';
import * as events from './pages/events.js';
import * as job from './pages/job.js';
import * as jobs from './pages/jobs.js';
import * as limits from './pages/limits.js';
import * as overview from './pages/overview.js';
import * as queues from './pages/queues.js';
import * as system from './pages/system.js';
import * as webhooks from './pages/webhooks.js';
import * as workers from './pages/workers.js';
import * as workflows from './pages/workflows.js';
import { submitted } from './parts.js';
import { address, go, listen, place } from './router.js';
import { effect, signal, untracked } from './signals-core.js';
import { paused, Visit } from './visit.js';

/** @typedef {() => import('./parts.js').Part} View */
/** @typedef {{title: (visit: Visit) => string, open: (visit: Visit) => View}} PageModule */

/** The modules of the pages, by the names that the router has for them.
 * @type {Record<string, PageModule>} */
const PAGES = { crons, events, job, jobs, limits, overview, queues, system, webhooks, workers, workflows };
/** The pages of the navigation: path, name, and the letter that goes there after `g`. */
const PLACES = /** @type {const} */ ([
	['/', 'Overview', 'o'],
	['/queues', 'Queues', 'q'],
	['/jobs', 'Jobs', 'j'],
	['/workflows', 'Workflows', 'f'],
	['/crons', 'Crons', 'c'],
	['/workers', 'Workers', 'w'],
	['/limits', 'Limits', 'l'],
	['/webhooks', 'Webhooks', 'h'],
	['/events', 'Events', 'e'],
	['/system', 'System', 's'],
]);

const view = signal(/** @type {View} */ (() => html`<div class="skeleton">Loading…</div>`));
const help = signal(false);
const trouble = signal('');
let visit = /** @type {Visit | null} */ (null);

/** Show the page of the place; called when its page or its parameter changes. */
function show(/** @type {import('./router.js').Place} */ to) {
	visit?.close();
	const mine = new Visit();
	visit = mine;
	trouble.value = '';
	const page = PAGES[to.page];
	if (!page) {
		document.title = 'Not found · ojs-nats';
		view.value = () => html`<h1>There is no such page</h1><p>See the <a href=${address('/')}>overview</a>.</p>`;
		return;
	}
	try {
		document.title = `${page.title(mine)} · ojs-nats`;
		view.value = untracked(() => page.open(mine));
	} catch (error) {
		failed(error);
	}
}

/** A page that can't be shown says so; the others still work. */
function failed(/** @type {unknown} */ error) {
	console.error(error);
	view.value = () => html`<div class="notice bad" role="alert">
		<p>This page can't be shown: ${text(error instanceof Error ? error.message : error, 300)}</p>
		<button type="button" @click=${() => location.reload()}>Load it again</button>
	</div>`;
}

function frame() {
	const person = who.value;
	if (person === false) return html`${signIn()}${bar()}`;
	const now = place.value.path;
	const here = (/** @type {string} */ path) => now === path || (path !== '/' && now.startsWith(`${path}/`));
	return html`<a class="skip" href="#main" @click=${skip}>Skip to the page</a>
		<nav class="main" aria-label="Main">
			<a class="brand" href=${address('/')}>ojs-nats</a>
			${PLACES.map(([path, name, key]) => html`<a href=${address(path)} aria-current=${here(path) ? 'page' : 'false'} title="g ${key}">${name}</a>`)}
			<span class="grow"></span>
			<button type="button" aria-pressed=${paused.value} title="p" @click=${() => (paused.value = !paused.value)}>${paused.value ? 'Resume updates' : 'Pause updates'}</button>
			<button type="button" title="t" @click=${theme}>Light or dark</button>
			<button type="button" title="?" @click=${() => (help.value = true)}>Shortcuts</button>
			${person && !person.open ? html`<span class="person">${text(person.name, 40)} (${person.role})</span><button type="button" @click=${signOut}>Sign out</button>` : nothing}
		</nav>
		<main id="main" tabindex="-1">
			${reachable.value ? nothing : html`<div class="notice bad" role="alert">The server does not answer. What you see may be old; this page tries again.</div>`}
			${visit && !visit.connected.value && reachable.value ? html`<div class="notice warn" role="status">Connecting to the events again…</div>` : nothing}
			${view.value()}
		</main>
		${bar()}${help.value ? keys() : nothing}${dialog()}${byHand()}`;
}

const bar = () =>
	html`<div class="toast ${toast.value?.bad ? 'bad' : ''}" role="status" aria-live="polite">${toast.value?.message ?? nothing}</div>`;

function skip(/** @type {Event} */ event) {
	event.preventDefault();
	document.getElementById('main')?.focus();
}

function keys() {
	const rows = [
		['/', 'Go to the filter'],
		...PLACES.map(([, name, key]) => [`g ${key}`, name]),
		['p', 'Pause or resume updates'],
		['t', 'Light or dark'],
		['?', 'This help'],
		['Esc', 'Close'],
	];
	return html`<aside class="help" role="dialog" aria-modal="true" aria-label="Shortcuts">
		<h2>Shortcuts</h2>
		<dl class="facts">${rows.map(([key, name]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${name}</dd></div>`)}</dl>
		<button type="button" autofocus @click=${() => (help.value = false)}>Close</button>
	</aside>`;
}

function signIn() {
	const submit = async (/** @type {Event} */ event) => {
		const form = /** @type {HTMLFormElement} */ (event.currentTarget);
		const token = submitted(event)['key'] ?? '';
		trouble.value = '';
		try {
			await request({ call: 'POST /session' }, { token });
			form.reset();
			await identify();
			show(place.peek());
		} catch (error) {
			trouble.value =
				error instanceof Problem && error.status === 401
					? 'This key is not known, or its time is over.'
					: error instanceof Problem
						? error.whole
						: String(error);
		}
	};
	return html`<main class="sign-in">
		<h1>ojs-nats</h1>
		<form @submit=${submit}>
			<label for="key">Key</label>
			<input id="key" name="key" type="password" autocomplete="current-password" required placeholder="ojs_sk_…" />
			<button type="submit" class="first">Sign in</button>
			${trouble.value ? html`<p class="notice bad" role="alert">${trouble.value}</p>` : nothing}
		</form>
		<p class="dim">Whoever runs the server makes keys: <code>ojs-nats keys create --role viewer --name you</code></p>
	</main>`;
}

/** The browser's other tabs have the same session. */
const tabs = new BroadcastChannel('signed-out');
tabs.onmessage = () => (who.value = false);
async function signOut() {
	await request({ call: 'DELETE /session' }).catch((error) => say(error.whole ?? error.message, { bad: true }));
	who.value = false;
	tabs.postMessage('');
}

/** Kept with the page alone where the browser keeps nothing. */
let chosen = '';
try {
	chosen = localStorage.getItem('theme') ?? '';
} catch {}
/** Switch to the other one of light and dark than what is shown. */
function theme() {
	const dark = chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
	chosen = document.documentElement.dataset['theme'] = dark ? 'light' : 'dark';
	try {
		localStorage.setItem('theme', chosen);
	} catch {}
}

let before = '';
addEventListener('keydown', (event) => {
	if (event.key === 'Escape') help.value = false;
	const target = event.composedPath()[0];
	if (
		event.ctrlKey ||
		event.metaKey ||
		event.altKey ||
		(target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
	)
		return;
	if (document.querySelector('dialog[open]')) return;
	const sequence = `${before} ${event.key}`.trim();
	before = event.key === 'g' ? 'g' : '';
	const there = PLACES.find(([, , key]) => sequence === `g ${key}`);
	if (there) go(address(there[0]));
	else if (event.key === '?') help.value = !help.value;
	else if (event.key === 'p') paused.value = !paused.value;
	else if (event.key === 't') theme();
	else if (event.key === '/') {
		const field = document.querySelector('[data-search]');
		if (!(field instanceof HTMLElement)) return;
		event.preventDefault();
		field.focus();
	}
});

document.documentElement.dataset['theme'] = chosen;
listen();
effect(() => {
	try {
		document.getElementById('unloaded')?.remove();
		render(frame(), document.body);
	} catch (error) {
		untracked(() => failed(error));
	}
});
while (who.value === null) await identify().catch(() => new Promise((resolve) => setTimeout(resolve, 2_000)));
let shown = '';
effect(() => {
	const now = `${place.value.page} ${place.value.param}`;
	untracked(who.peek() === false ? closeAll : closeAction);
	document.querySelector('nav.main [aria-current=page]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
	if (who.value === false) visit?.close();
	else if (now !== shown) {
		shown = now;
		untracked(() => show(place.peek()));
	}
});
addEventListener('pageshow', (event) => event.persisted && show(place.peek()));
