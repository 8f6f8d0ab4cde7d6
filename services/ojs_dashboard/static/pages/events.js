/** Events as they happen. */

import { follow } from '../api.js';
import { moment, text } from '../format.js';
import { html, nothing } from '../lit-html.js';
import { copier, head, jobLink, queueLink, table, tree } from '../parts.js';
import { setQuery } from '../router.js';
import { signal } from '../signals-core.js';
import { paused } from '../visit.js';

export const title = () => 'Events';

const MOST = 200;

/** @type {import('../app.js').PageModule['open']} */
export function open(visit) {
	const events = signal(/** @type {readonly {event: any, id: string}[]} */ ([]));
	const waiting = signal(0);
	let held = /** @type {{event: any, id: string}[]} */ ([]);
	let queued = false;
	const query = () => ({ types: visit.query('types'), queue: visit.query('queue') });
	const asked = query();

	const shown = () => {
		events.value = [...held.toReversed(), ...events.peek()].slice(0, MOST);
		held = [];
		waiting.value = 0;
	};
	const heard = (/** @type {any} */ event, /** @type {string} */ id) => {
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
	visit.finally(follow({ ...asked, last_event_id: after }, heard, (open) => (visit.connected.value = open)));

	return () => html`${head('Events', { path: '/events/stream', query: asked, cli: ['events', '-f', ...(asked.types ? ['--type', asked.types] : [])] })}
		<form class="search" role="search" @submit=${apply}>
			<input name="types" type="search" placeholder="Types: job.failed, job.*, workflow.*" aria-label="Types" .value=${asked.types} data-search />
			<input name="queue" type="search" placeholder="Queue" aria-label="Queue" .value=${asked.queue} />
			<input name="after" type="search" placeholder="After cursor" aria-label="After cursor" .value=${after} />
			<button>Follow</button>
		</form>
		${waiting.value ? html`<p class="notice">${waiting.value} more have come. <button @click=${shown}>Show them</button></p>` : nothing}
		<section>
			${
				events.value.length
					? table(
							events.value,
							[
								{ title: 'When', cell: ({ event }) => moment(event.time) },
								{ title: 'What', cell: ({ event }) => text(event.type) },
								{
									title: 'Job',
									cell: ({ event }) => (event.data?.job_id ? jobLink(event.data.job_id) : text(event.subject, 40)),
								},
								{ title: 'Type', cell: ({ event }) => text(event.data?.job_type, 60) },
								{ title: 'Queue', cell: ({ event }) => (event.data?.queue ? queueLink(event.data.queue) : '–') },
								{ title: 'Data', cell: ({ event }) => tree(event.data, nothing, false) },
								{ title: 'Cursor', cell: ({ id }) => copier(id, id) },
							],
							{ label: 'Events' },
						)
					: html`<div class="empty">Nothing has happened since this page was opened. It shows events as they come.</div>`
			}
		</section>`;
}

function apply(/** @type {Event} */ event) {
	event.preventDefault();
	const form = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
	setQuery(Object.fromEntries(['types', 'queue', 'after'].map((name) => [name, String(form.get(name) ?? '').trim()])));
	location.reload();
}
