/** What can be done: a button, a dialog that says what will happen, the request, and what came of it. */

import { exact, may, Problem, request } from './api.js';
import { copier, modal, say, uncopied, whole } from './dialogs.js';
import { text } from './format.js';
import { html, nothing } from './lit-html.js';
import { commands } from './parts.js';
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
 *   choices?: readonly string[], shown?: (choice: string) => string, hint?: import('./parts.js').Part, required?: boolean, min?: number, max?: number}} Field
 */

/** @typedef {{action: Action, values: import('./signals-core.js').Signal<Values>, busy: boolean, problem: Problem | null}} Open */
export const open = signal(/** @type {Open | null} */ (null));
/** What is shown this once, one after the other: titles and secrets. */
const revealed = signal(/** @type {readonly (readonly [title: string, secret: string])[]} */ ([]));
/** Whether somebody has tried to leave a secret by another way than its button. */
const leaving = signal(false);

/** Close the dialog of an action, since another page is shown. A secret stays. */
export function closeAction() {
	open.value = null;
	uncopied.value = '';
}

/** Close everything: nobody is signed in any more. */
export function closeAll() {
	closeAction();
	revealed.value = [];
}

/** Show a secret that can't be read again, until its dialog is closed by its button. */
export function reveal(/** @type {string} */ title, /** @type {string} */ secret) {
	revealed.value = [...revealed.peek(), [title, secret]];
	return `${title}: made.`;
}
addEventListener('beforeunload', (event) => {
	if (revealed.peek().length) event.preventDefault();
});

/**
 * A button for an action; nothing for whoever may not do it. The second of two quick clicks is none of its own.
 * @template {import('./api.js').Name} K
 * @param {Action<K>} action
 */
export function button(action) {
	if (!may(action.needs)) return nothing;
	return html`<button type="button" class=${action.danger ? 'danger' : ''} @click=${(/** @type {MouseEvent} */ event) => event.detail > 1 || begin(action)}>${action.label}</button>`;
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

/** Whether the word that an action asks for was typed, letter by letter. */
const confirmed = (/** @type {Open} */ { action, values }) => !action.typed || values.value['typed'] === action.typed;

/** Carry out the action that is open. Only the action's own button calls it, and `begin` for what is quick. */
async function perform() {
	const now = open.peek();
	if (!now || now.busy || !confirmed(now)) return;
	open.value = { ...now, busy: true, problem: null };
	try {
		const answer = await (now.action.run?.(now.values.value) ?? request(callOf(now)));
		if (open.peek()?.action === now.action) open.value = null;
		say(now.action.done?.(answer) || `${now.action.label}: done.`);
		now.action.after?.();
	} catch (error) {
		const problem = error instanceof Problem ? error : new Problem(0, { message: String(error) });
		if (open.peek()?.action === now.action) open.value = { ...now, busy: false, problem };
		else say(`${now.action.label}: ${problem.whole}`, { bad: true });
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

/**
 * The dialog of the action that is open. Its button acts and nothing else does: Enter in a field does nothing, and at first the
 * first field or *Close* has the focus.
 */
export function dialog() {
	const now = open.value;
	if (!now || (now.action.quick && !now.problem)) return revealed.value[0] ? secret(...revealed.value[0]) : nothing;
	const { action, values, busy, problem } = now;
	const close = () => (open.value = null);
	const act = (/** @type {MouseEvent} */ event) => {
		const form = /** @type {HTMLButtonElement} */ (event.currentTarget).form;
		if (event.detail <= 1 && form?.reportValidity()) perform();
	};
	return modal(
		action.label,
		html`${action.about ? html`<div>${action.about}</div>` : nothing}
			${(action.fields ?? []).map((field) => input(field, values))} ${action.preview?.(values.value) ?? nothing}
			${action.typed ? input({ name: 'typed', label: `Type ${action.typed} to confirm`, required: true }, values) : nothing}
			${problem ? refused(problem) : nothing}
			<footer>${request_(now)}
				<button type="button" class="close" @click=${close}>Close</button>
				<button type="button" class=${action.danger ? 'danger' : 'first'} ?disabled=${busy || !confirmed(now)} @click=${act}>${busy ? 'Working…' : action.label}</button>
			</footer>`,
		{ closed: close },
	);
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

/** A secret in a field of its own. Escape, Enter, *Copy* and another page leave it there. */
function secret(/** @type {string} */ title, /** @type {string} */ value) {
	const close = (/** @type {MouseEvent} */ event) => {
		if (event.detail > 1) return; // or a double click would close the next one, too
		leaving.value = false;
		revealed.value = revealed.peek().slice(1);
		document.getElementById('secret')?.focus();
	};
	return modal(
		title,
		html`<div class="field">
				<label for="secret">It is shown this once. Copy it before you close this.</label>
				<textarea id="secret" class="id" rows="3" readonly spellcheck="false" .value=${value} @focus=${whole}></textarea>
			</div>
			${leaving.value ? html`<p class="notice warn" role="alert">It can't be read again. Press Close if you have it.</p>` : nothing}
			<footer>${copier('Copy', value)}<button type="button" @click=${close}>Close</button></footer>`,
		{ closing: () => (leaving.value = true) },
	);
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
				? html`<select id=${id} @change=${take}>${(field.choices ?? []).map((choice) => html`<option value=${choice} ?selected=${choice === value}>${field.shown?.(choice) ?? choice}</option>`)}</select>`
				: html`<input id=${id} type=${field.kind ?? 'text'} .value=${value} ?required=${field.required} min=${field.min ?? nothing} max=${field.max ?? nothing} autocomplete="off" @input=${take} />`;
	return html`<div class="field"><label for=${id}>${field.label}</label>${control}${field.hint ? html`<small>${field.hint}</small>` : nothing}</div>`;
}
