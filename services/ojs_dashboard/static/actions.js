/** What can be done: a button, a dialog that says what will happen, the request, and what came of it. */

import { exact, offered, Problem, request } from './api.js';
import { text } from './format.js';
import { html, nothing } from './lit-html.js';
import { commands, copier, say } from './parts.js';
import { signal } from './signals-core.js';

/**
 * An action. `fields` are asked for before it is done; `body` and `of` are made of their values. `run` takes the place of the
 * request where there is more to do than one. `after` is called when it was done.
 * @template {import('./api.js').Name} [K=any]
 * @typedef {{
 *   label: string, needs: import('./api.js').Operations[K]['permission'], call: K,
 *   of?: string | readonly string[] | ((values: Values) => string),
 *   body?: import('./api.js').Call<K>['body'] | ((values: Values) => import('./api.js').Call<K>['body']),
 *   cli?: readonly string[] | ((values: Values) => readonly string[]),
 *   danger?: boolean, quick?: boolean, typed?: string, about?: import('./parts.js').Part, fields?: readonly Field[],
 *   preview?: (values: Values) => import('./parts.js').Part, run?: (values: Values) => Promise<void>,
 *   done?: (answer: import('./api.js').Operations[K]['answer']) => string, after?: () => void,
 * }} Action
 */
/**
 * @typedef {Record<string, any>} Values
 * @typedef {{name: string, label: string, value?: string, kind?: 'text' | 'number' | 'json' | 'choice',
 *   choices?: readonly string[], hint?: import('./parts.js').Part, required?: boolean, min?: number, max?: number}} Field
 */

/** @typedef {{action: Action, values: import('./signals-core.js').Signal<Values>, busy: boolean, problem: Problem | null}} Open */
export const open = signal(/** @type {Open | null} */ (null));
/** What is shown this once: a title and a secret. */
const revealed = signal(/** @type {readonly [title: string, secret: string] | null} */ (null));

/** Close what is open, since whoever looks has gone to another page or signed out. */
export function closeAll() {
	open.value = null;
	revealed.value = null;
}

/** Show a secret that nobody can read again, until it is closed. */
export function reveal(/** @type {string} */ title, /** @type {string} */ secret) {
	revealed.value = [title, secret];
	return `${title}: made.`;
}

/**
 * A button for an action; nothing for whoever may not do it. The second of two quick clicks is none of its own.
 * @template {import('./api.js').Name} K
 * @param {Action<K>} action
 */
export function button(action) {
	if (!offered(action.needs)) return nothing;
	return html`<button class=${action.danger ? 'danger' : ''} @click=${(/** @type {MouseEvent} */ event) => event.detail > 1 || begin(action)}>${action.label}</button>`;
}

/**
 * Ask, then do; an action that is `quick` is done at once.
 * @template {import('./api.js').Name} K
 * @param {Action<K>} action
 */
export function begin(action) {
	const values = Object.fromEntries((action.fields ?? []).map((field) => [field.name, field.value ?? '']));
	open.value = { action, values: signal(values), busy: false, problem: null };
	if (action.quick) perform();
}

async function perform() {
	const now = open.peek();
	if (!now || now.busy) return;
	open.value = { ...now, busy: true, problem: null };
	try {
		const answer = await (now.action.run?.(now.values.value) ?? request(callOf(now)));
		if (open.peek()?.action === now.action) open.value = null;
		say(now.action.done?.(answer) || `${now.action.label}: done.`);
		now.action.after?.();
	} catch (error) {
		const problem = error instanceof Problem ? error : new Problem(0, { message: String(error) });
		if (open.peek()?.action === now.action) open.value = { ...now, busy: false, problem };
		else say(`${now.action.label}: ${problem.message}`, { bad: true });
	}
}

/** @returns {import('./api.js').Call<any>} */
function callOf(/** @type {Open} */ { action, values }) {
	const { call, of, body } = action;
	return {
		call,
		of: typeof of === 'function' ? of(values.value) : of,
		body: typeof body === 'function' ? body(values.value) : body,
	};
}

/** @returns {any} What a field for JSON holds; undefined if it is empty. Throws Problem. */
export function json(/** @type {string} */ typed, /** @type {string} */ label) {
	if (!typed.trim()) return undefined;
	try {
		return exact(typed);
	} catch (error) {
		throw new Problem(400, { message: `${label} isn't JSON: ${error instanceof Error ? error.message : error}` });
	}
}

/** The dialog of the action that is open. */
export function dialog() {
	const now = open.value;
	if (!now) return revealed.value ? secret(...revealed.value) : nothing;
	const { action, values, busy, problem } = now;
	const close = () => (open.value = null);
	const submit = (/** @type {Event} */ event) => {
		event.preventDefault();
		perform();
	};
	shown();
	const ready = !action.typed || values.value['typed'] === action.typed;
	return html`<dialog aria-labelledby="dialog-title" @close=${close} @cancel=${close}>
		<form method="dialog" @submit=${submit}>
			<h2 id="dialog-title">${action.label}</h2>
			${action.about ? html`<div>${action.about}</div>` : nothing}
			${(action.fields ?? []).map((field) => input(field, values))} ${action.preview?.(values.value) ?? nothing}
			${action.typed ? input({ name: 'typed', label: `Type ${action.typed} to confirm`, required: true }, values) : nothing}
			${problem ? refused(problem) : nothing}
			<footer>${request_(now)}
				<button type="button" @click=${close}>Close</button>
				<button class=${action.danger ? 'danger' : 'first'} ?disabled=${busy || !ready}>${busy ? 'Working…' : action.label}</button>
			</footer>
		</form>
	</dialog>`;
}

/** Why it wasn't done, with each place that doesn't fit a schema. */
function refused(/** @type {Problem} */ problem) {
	const places = /** @type {{path: string, message: string}[]} */ (problem.details['validation_errors'] ?? []);
	return html`<div class="notice bad" role="alert">
		<p>${text(problem.message, 500)}</p>
		${problem.hint ? html`<p>${text(problem.hint, 500)}</p>` : nothing}
		${places.length ? html`<ul>${places.map((one) => html`<li><code>${one.path}</code> ${text(one.message)}</li>`)}</ul>` : nothing}
	</div>`;
}

function secret(/** @type {string} */ title, /** @type {string} */ value) {
	const close = () => (revealed.value = null);
	shown();
	return html`<dialog aria-labelledby="dialog-title" @close=${close}>
		<form method="dialog">
			<h2 id="dialog-title">${title}</h2>
			<p>It is shown this once. <code class="id">${value}</code></p>
			<footer>${copier('Copy', value)}<button class="first">Close</button></footer>
		</form>
	</dialog>`;
}

/** The request as command lines; nothing while what was typed makes none. */
function request_(/** @type {Open} */ now) {
	try {
		const cli = typeof now.action.cli === 'function' ? now.action.cli(now.values.value) : now.action.cli;
		return commands(callOf(now), cli);
	} catch {
		return nothing;
	}
}

function input(/** @type {Field} */ field, /** @type {import('./signals-core.js').Signal<Values>} */ values) {
	const take = (/** @type {Event} */ event) => {
		const target = /** @type {HTMLInputElement} */ (event.target);
		values.value = { ...values.peek(), [field.name]: target.value };
	};
	const value = values.value[field.name] ?? '';
	const id = `field-${field.name}`;
	const control =
		field.kind === 'json'
			? html`<textarea id=${id} rows="8" spellcheck="false" .value=${value} @input=${take}></textarea>`
			: field.kind === 'choice'
				? html`<select id=${id} @change=${take}>${(field.choices ?? []).map((choice) => html`<option ?selected=${choice === value}>${choice}</option>`)}</select>`
				: html`<input id=${id} type=${field.kind ?? 'text'} .value=${value} ?required=${field.required} min=${field.min ?? nothing} max=${field.max ?? nothing} autocomplete="off" @input=${take} />`;
	return html`<div class="field"><label for=${id}>${field.label}</label>${control}${field.hint ? html`<small>${field.hint}</small>` : nothing}</div>`;
}

/** Open the dialog above everything as soon as it is there. */
function shown() {
	queueMicrotask(() => {
		const found = document.querySelector('dialog');
		if (found && !found.open) {
			found.showModal();
			/** @type {HTMLElement | null} */ (found.querySelector('input, textarea, select, button.first'))?.focus();
		}
	});
}
