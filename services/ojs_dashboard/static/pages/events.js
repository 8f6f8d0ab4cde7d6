/** Events as they happen. */

import { follow } from '../api.js';
import { copier } from '../dialogs.js';
import { moment, text } from '../format.js';
import { html, nothing } from '../lit-html.js';
import { head, jobLink, queueLink, submitted, table, tree } from '../parts.js';
import { setQuery } from '../router.js';
import { computed, effect, signal } from '../signals-core.js';
import { paused, seen } from '../visit.js';

export const title = () => 'Events';

const MOST = 200;
/** @typedef {{event: import('../openapi.js').Event, id: string}} Heard */

/** @type {import('../app.js').PageModule['open']} */
export function open(visit) {
	const events = signal(/** @type {readonly Heard[]} */ ([]));
	const waiting = signal(0);
	let held = /** @type {Heard[]} */ ([]);
	let queued = false;
	const asked = { types: visit.query('types'), queue: visit.query('queue') };
	const ask = () => ({ call: /** @type {const} */ ('GET /events/stream'), query: asked });

	const shown = () => {
		events.value = [...held.toReversed(), ...events.peek()].slice(0, MOST);
		held = [];
		waiting.value = 0;
	};
	const heard = (/** @type {Heard['event']} */ event, /** @type {string} */ id) => {
		held = [...held, { event, id }].slice(-MOST);
		if (paused.peek()) waiting.value = held.length;
		else if (!queued) {
			queued = true;
			setTimeout(() => {
				queued = false;
				if (!paused.peek()) shown();
			}, 100);
		}
	};
	const after = visit.query('after');
	const last = signal(after);
	const listen = () =>
		follow(
			{ ...asked, last_event_id: last.peek() },
			heard,
			(open) => (visit.connected.value = open),
			(id) => (last.value = id),
		);
	/** Follow while the tab is seen, each time from where it was left, and in any case until it is known where that is. */
	const followed = computed(() => seen.value || !last.value);
	visit.finally(effect(() => (followed.value ? listen() : undefined)));
	const field = (/** @type {string} */ name, /** @type {string} */ label, /** @type {string} */ value, hint = label) =>
		html`<input name=${name} type="search" placeholder=${hint} aria-label=${label} .value=${value} data-search />`;

	return () => html`${head('Events', { ask }, { cli: ['events', '-f', ...(asked.types ? ['--type', asked.types] : [])] })}
		<form class="search" role="search" @submit=${apply}>
			${field('types', 'Types', asked.types, 'Types: job.failed, job.*, workflow.*')} ${field('queue', 'Queue', asked.queue)}
			${field('after', 'After cursor', after)}
			<button type="submit">Follow</button>
		</form>
		${waiting.value ? html`<p class="notice">${waiting.value} more have come. <button type="button" @click=${shown}>Show them</button></p>` : nothing}
		<section>
			${
				events.value.length
					? table('Events', events.value, [
							['When', ({ event }) => moment(event.time)],
							['What', ({ event }) => text(event.type)],
							['Job', ({ event: { data, subject } }) => (data['job_id'] ? jobLink(String(data['job_id'])) : text(subject, 40))],
							['Type', ({ event }) => text(event.data['job_type'], 60)],
							['Queue', ({ event: { data } }) => (data['queue'] ? queueLink(String(data['queue'])) : '–')],
							['Data', ({ event }) => tree(event.data, nothing, false)],
							['Cursor', ({ id }) => copier(id, id)],
						])
					: html`<div class="empty">Nothing has happened since this page was opened. It shows events as they come.</div>`
			}
		</section>`;
}

function apply(/** @type {Event} */ event) {
	setQuery(submitted(event));
	location.reload();
}
