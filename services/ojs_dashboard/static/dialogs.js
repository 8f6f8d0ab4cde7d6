/** What stands above a page: dialogs, what is said for a few seconds, and what is to be copied. */

import { plain } from './format.js';
import { html, nothing } from './lit-html.js';
import { signal } from './signals-core.js';

/**
 * A dialog that its buttons and Escape alone do something with: Enter in a field does nothing. Escape closes it, and `closed` is
 * called; where there is `closing`, that is called in its place, and the dialog stays.
 * @param {string} title
 * @param {import('./parts.js').Part} content
 * @param {{closed?: () => void, closing?: () => void}} options
 */
export function modal(title, content, { closed, closing } = {}) {
	const cancel = (/** @type {Event} */ event) => {
		if (!closing) return;
		event.preventDefault();
		closing();
	};
	const end = () => {
		closed?.();
		closing?.(); // browsers close a dialog at the second Escape whatever is said
		shown();
	};
	shown();
	return html`<dialog aria-label=${title} @cancel=${cancel} @close=${end}>
		<form method="dialog" @submit=${(/** @type {Event} */ event) => event.preventDefault()}>
			<h2>${title}</h2>
			${content}
		</form>
	</dialog>`;
}

/** Open the dialogs that are there but not open, the last one above the others. */
function shown() {
	queueMicrotask(() => {
		for (const found of document.querySelectorAll('dialog'))
			if (!found.open) {
				found.showModal();
				/** @type {HTMLElement | null} */ (
					found.querySelector('input, textarea, select') ?? found.querySelector('.close')
				)?.focus();
			}
	});
}

/** @typedef {{message: string, bad: boolean}} Toast */

export const toast = signal(/** @type {Toast | null} */ (null));

/** Say something for a few seconds. */
export function say(/** @type {string} */ message, { bad = false } = {}) {
	const said = { message, bad };
	toast.value = said;
	setTimeout(() => {
		if (toast.peek() === said) toast.value = null;
	}, 6_000);
}

/** Select all of a field that has got the focus. */
export const whole = (/** @type {Event} */ event) => /** @type {HTMLTextAreaElement} */ (event.currentTarget).select();

/** What is to be copied by hand, since browsers give pages over plain HTTP no clipboard; '' for nothing. */
export const uncopied = signal('');

/** A button that copies a text; without a clipboard it shows the text in a field. */
export function copier(/** @type {string} */ label, /** @type {string} */ what) {
	const copy = async () => {
		try {
			await navigator.clipboard.writeText(what);
			say('Copied.');
		} catch {
			uncopied.value = what;
		}
	};
	return html`<button type="button" class="quiet" title=${plain(what.slice(0, 1_000))} @click=${copy}>${label}</button>`;
}

/** The dialog of what is to be copied by hand. */
export function byHand() {
	if (!uncopied.value) return nothing;
	const close = () => (uncopied.value = '');
	return modal(
		'Copy',
		html`<div class="field">
				<label for="uncopied">This browser gives the page no clipboard. Copy the text from here.</label>
				<textarea id="uncopied" rows="6" readonly spellcheck="false" .value=${uncopied.value} @focus=${whole}></textarea>
			</div>
			<footer><button type="button" class="close" @click=${close}>Close</button></footer>`,
		{ closed: close },
	);
}
